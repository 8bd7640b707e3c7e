"""``python -m phlox.launch``: starts a program in several processes that work together, on one machine or on several.

    python -m phlox.launch -n 4 train.py --epochs 10
    python -m phlox.launch -n 2 --devices 4 -m package.train
    python -m phlox.launch -n 8 --hosts alpha,beta train.py

In the program, ``phlox.distributed.initialize()`` needs no arguments. Each line that a process prints begins with its
number. If one process fails, the others are ended, and the exit status is that of the first that failed. Inside of a
job of SLURM, Open MPI or Kubernetes their own launchers start the processes; see docs/guides/processes.md.
"""

from .._base.public_names import publish
from ._command import main

__all__ = ["main"]


publish(__name__)
