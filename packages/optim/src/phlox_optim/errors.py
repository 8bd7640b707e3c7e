"""Errors of phlox_optim, subclasses of those of `phlox.errors`: a message, the user's line, and what to write instead.

PhloxError
├── MissingNameError (AttributeError, NotImplementedError)  optax uses a name of jax that phlox does not have
├── MissingExtraError (ImportError)                         a package that an extra installs is not there
└── CheckpointError (ValueError)                            a checkpoint cannot be written or read
    └── StepError (LookupError)                             there is no such step, or there is one already
"""

from phlox.errors import PhloxError

__all__ = ["CheckpointError", "MissingExtraError", "MissingNameError", "StepError"]


class MissingNameError(PhloxError, AttributeError, NotImplementedError):
    """A used part of optax needs a name of jax that phlox does not have yet.

    Attribute `jax_name` is the full name, such as ``jax.lax.cond``.
    Fix: the names in ``phlox_optim.__all__`` do not need it; report the missing name.
    """


class MissingExtraError(PhloxError, ImportError):
    """A feature needs a package that is not installed. Attribute `command` is the command that installs it."""


class CheckpointError(PhloxError, ValueError):
    """A tree that cannot be saved, or a stored one that cannot be restored.

    Trees that differ from what is stored raise the errors of `phlox.errors`: `TreeError`, `ShapeError`, `DtypeError`.
    """


class StepError(CheckpointError, LookupError):
    """A step is not stored, or is stored already. Attributes: `step`, `directory`, `steps` (those that are stored)."""
