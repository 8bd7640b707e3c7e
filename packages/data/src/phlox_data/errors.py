"""The one error class that this package adds to those of `phlox.errors`."""

from phlox.errors import PhloxError

__all__ = ["MissingExtraError"]


class MissingExtraError(PhloxError, ImportError):
    """A library that phlox_data can read from, but does not need otherwise, is not installed.

    Attributes `library` (its import name) and `command` (a line that installs it).
    """

    library: str
    command: str
