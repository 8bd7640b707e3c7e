"""``phlox_optim.checkpoint``: trees of arrays saved step by step, and restored, with orbax.

    from phlox_optim.checkpoint import CheckpointManager

    with CheckpointManager("out/checkpoints", max_to_keep=3) as checkpoints:
        if checkpoints.latest_step() is not None:
            state = checkpoints.restore(like=state)
        for step in range(...):
            ...
            checkpoints.save(step, state)

Needs the extra ``checkpoint`` (``pip install "phlox-optim[checkpoint]"``). The files are orbax's own: programs on jax
read them with `orbax.checkpoint`, and what those programs write can be read here.
"""

from ._manager import CheckpointManager

__all__ = ["CheckpointManager"]
