"""The only error class of this package beside those of `phlox.errors`."""

from phlox.errors import PhloxError

__all__ = ["MissingExtraError"]


class MissingExtraError(PhloxError, ImportError):
    """An optional library, from which phlox_data can read data, is not installed.

    Attributes `library` (its import name) and `command` (a command that installs it).
    """

    library: str
    command: str
