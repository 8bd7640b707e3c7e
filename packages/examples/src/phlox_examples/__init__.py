"""phlox_examples: the programs to run first. ``./train`` starts them, and so does ``python -m phlox_examples``.

Read `selu_mlp` first, then `data_parallel`, and for what both of them train `network`. The other modules are what is
around a training: data, checkpoints, the screen and the files written.
"""
