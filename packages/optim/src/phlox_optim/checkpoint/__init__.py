"""``phlox_optim.checkpoint``: saves trees of arrays as numbered steps, and restores them, with orbax.

    from phlox_optim.checkpoint import CheckpointManager

    with CheckpointManager("out/checkpoints", max_to_keep=3) as checkpoints:
        if checkpoints.latest_step() is not None:
            state = checkpoints.restore(like=state)
        for step in range(...):
            ...
            checkpoints.save(step, state)

Needs the extra ``checkpoint`` (``pip install "phlox-optim[checkpoint]"``). The files are in orbax's format: programs on
jax can read them with `orbax.checkpoint`, and phlox reads files of such programs.
"""

from ._manager import CheckpointManager

__all__ = ["CheckpointManager"]
