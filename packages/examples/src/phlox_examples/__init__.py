"""phlox_examples: example programs. Run them with ``./train`` or ``python -m phlox_examples``.

Each program is one file, which reads from top to bottom as a chapter; `catalogue` lists them. Read `selu_mlp` first,
then `data_parallel`. The other modules are for options, data, checkpoints, terminal output and result files.
"""

__version__ = "0.1.0"
