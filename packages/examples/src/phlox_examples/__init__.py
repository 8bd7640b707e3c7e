"""phlox_examples: example programs. Run them with ``./train`` or ``python -m phlox_examples``.

Read `selu_mlp` first, then `data_parallel`, then `network`, which both of them train. The other modules are for data,
checkpoints, terminal output and result files.
"""
