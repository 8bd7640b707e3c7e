"""``phlox.errors``: the errors that phlox raises. `phlox._base.errors` shows the tree of classes."""

from ._base import errors as _errors, name_errors as _name_errors
from ._base.errors import *  # noqa: F403  (its __all__ is the list of all errors of programs)
from ._base.name_errors import *  # noqa: F403
from ._base.public_names import publish
from ._xla.compile import JaxRuntimeError as JaxRuntimeError

__all__ = ["JaxRuntimeError"]
__all__ += _errors.__all__
__all__ += _name_errors.__all__


publish(__name__)
