"""Errors of phlox_optim, subclasses of those of `phlox.errors`: a message, the user's line, and what to write instead.

PhloxError
├── MissingExtraError (ImportError)                         a package that an extra installs is not there
├── SkippedStepsError (FloatingPointError)                  too many steps in a row were skipped
└── CheckpointError (ValueError)                            a checkpoint cannot be written or read
    └── StepError (LookupError)                             there is no such step, or there is one already
"""

from phlox.errors import PhloxError

__all__ = ["CheckpointError", "MissingExtraError", "SkippedStepsError", "StepError"]


class MissingExtraError(PhloxError, ImportError):
    """A feature needs a package that is not installed. Attribute `command` is the command that installs it."""


class SkippedStepsError(PhloxError, FloatingPointError):
    """Many training steps in a row were skipped, because their loss or gradients were not finite.

    Attributes: `step` (the number of steps so far), `skipped` (how many of the latest were skipped), `scale` (of the
    loss; None if it is not scaled).
    """


class CheckpointError(PhloxError, ValueError):
    """A tree that cannot be saved, or a stored one that cannot be restored.

    Trees that differ from what is stored raise the errors of `phlox.errors`: `TreeError`, `ShapeError`, `DtypeError`.
    """


class StepError(CheckpointError, LookupError):
    """A step is not stored, or is stored already. Attributes: `step`, `directory`, `steps` (those that are stored)."""
