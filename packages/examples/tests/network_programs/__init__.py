"""Ten programs that train networks, on phlox and in flax.nnx: the same network, data and optimizer, side by side.

``mlp.py`` is phlox's, ``mlp_flax.py`` its twin, and so on. Each has a function ``main(steps)`` that returns the losses of
its steps as floats, and often something more. test_network_programs.py runs both of a pair and counts their lines;
docs/networks.md shows the count.
"""
