"""``phlox.experimental.checkify``: runtime checks in compiled functions, as in ``jax.experimental.checkify``."""

from .._api.checkify.checkify import check, check_error, checkify, debug_check, user_checks
from .._api.checkify.operations import automatic_checks, div_checks, float_checks, index_checks, nan_checks
from .._base.public_names import publish
from .._ops.host.check import Error, ErrorCategory, JaxRuntimeError, init_error

all_checks = automatic_checks | user_checks

__all__ = [
    "Error",
    "ErrorCategory",
    "JaxRuntimeError",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "checkify",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]


publish(__name__)
