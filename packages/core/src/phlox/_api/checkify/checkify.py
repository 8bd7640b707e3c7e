"""`checkify`: a function that returns the first failed check as a value.

A compiled program cannot raise. `checkify` traces the function and evaluates its Jaxpr with an `Error` that is passed
from equation to equation: a `check` adds to it, other operations add the enabled checks (nan, division by zero, index
out of bounds), and inner Jaxprs take and return it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._base.errors import ArgumentError
from ..._base.pytree import PyTreeDef, flatten
from ..._base.source import user_location
from ..._base.wrapping import wraps
from ..._ops.elementwise.logic import not_
from ..._ops.host.check import Categories, Error, JaxException, Report, init_error, raise_failed
from ..._trace.staging import stage
from ..._trace.trace import ArrayBase
from ..jit import arguments
from ..jit.user_functions import user_call
from .programs import run_checked


class FailedCheckError(JaxException):
    """A user's `check` failed."""

    def __init__(self, fmt_string: str, *args: Any, **kwargs: Any):
        super().__init__(fmt_string, *args)
        self.fmt_string = fmt_string
        self.args = args
        self.kwargs = kwargs

    @staticmethod
    def restore(details: tuple[Any, ...], payload: Sequence[Any]) -> FailedCheckError:
        fmt_string, tree = details
        args, kwargs = tree.unflatten(payload)
        return FailedCheckError(fmt_string, *args, **kwargs)

    def __str__(self) -> str:
        return f"{self.fmt_string.format(*self.args, **self.kwargs)} (`check` failed{self.place()})"


user_checks: Categories = frozenset({FailedCheckError})


def checkify(f: Callable[..., Any], errors: Categories = user_checks) -> Callable[..., tuple[Error, Any]]:
    """A function that returns ``(error, f(…))`` instead of raising when a check in `f` fails.

    Args:
      f: function of trees of arrays.
      errors: the enabled checks: `user_checks` are calls of `check`; `nan_checks`, `div_checks` and `index_checks` are
        checks of all operations. Combine them with ``|``.

    Returns:
      A function that is called as `f` is and returns (error, out). ``error.get()`` is the message of the first check
      that failed, or None, and ``error.throw()`` raises it. Both this function and `f` may be transformed and compiled.

    >>> from phlox.experimental import checkify
    >>> def f(x):
    ...     checkify.check(x > 0, "{} is not positive", x)
    ...     return jnp.log(x)
    >>> error, out = phlox.jit(checkify.checkify(f))(-1.0)
    >>> error.get()
    '-1.0 is not positive (`check` failed at ...)'
    """
    arguments.check_callable("checkify", f)
    # Frozen, as it is part of a cache key.
    enabled = frozenset(errors)

    @wraps(f)
    @user_call
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        trees: list[PyTreeDef] = []

        def flat() -> list[Any]:  # arguments are closed over, so that concrete ones stay concrete in `f`
            out = f(*args, **kwargs)
            leaves, tree = flatten(out)
            arguments.check_outputs(f, out, leaves)
            trees.append(tree)
            return leaves

        jaxpr, consts = stage(flat, [], name=arguments.fun_name(f))
        # Evaluated at once: outside of a trace the checks are values, inside of one they are operations.
        error, outs = run_checked(jaxpr, consts, enabled, init_error, [])
        return error, trees[0].unflatten(outs)

    return checked


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Raises `JaxRuntimeError` when `pred` is False. Functions that are compiled must be wrapped in `checkify`.

    Args:
      pred: one truth value, a bool or an array without axes.
      msg: the message, a format for the further arguments as for `str.format`.
      *fmt_args, **fmt_kwargs: arrays or trees of them.
      debug: do nothing unless `checkify` is applied.

    Raises:
      ArgumentError: `pred` is not one truth value, or a further argument holds something that is no array.
      JaxRuntimeError: `pred` is False, outside of compiled functions.
      UncheckedError: in a compiled function without `checkify`.

    >>> from phlox.experimental import checkify
    >>> checkify.check(jnp.array(1) > 2, "{x} is not above 2", x=jnp.array(1))
    Traceback (most recent call last):
    phlox.experimental.checkify.JaxRuntimeError: 1 is not above 2 (`check` failed at ...)
    """
    function = "debug_check" if debug else "check"
    if not _is_truth_value(pred):
        what = f"{function} takes one truth value, got {pred!r}"
        raise ArgumentError(what, instead="phlox.numpy.all(…)", argument="pred")
    # Trees of arrays are allowed in messages; their structure travels with the format.
    payload, tree = flatten((fmt_args, fmt_kwargs))
    for x in payload:
        if not isinstance(x, ArrayBase | np.ndarray):
            raise ArgumentError(
                f"{function}: Formatting arguments must be arrays, got {x!r} of type {type(x).__name__}",
                instead="an f-string for what is known while tracing",
            )
    # The line is found here, while the user's frame is on the stack.
    report = Report(FailedCheckError, (msg, tree), user_location())
    raise_failed(init_error.adding(not_(pred), report, payload), debug=debug)


def _is_truth_value(pred: Any) -> bool:
    # An array of one element with axes is refused, as its truth value would be ambiguous in a batch.
    return isinstance(pred, bool) or (isinstance(pred, ArrayBase) and not pred.shape and pred.dtype == np.bool_)


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """A `check` that is made only under `checkify`, and costs nothing otherwise.

    Args:
      pred: one truth value, a bool or an array without axes.
      msg: the message, a format for the further arguments as for `str.format`.
      *fmt_args, **fmt_kwargs: arrays or trees of them.

    Raises:
      ArgumentError: `pred` is not one truth value, or a further argument holds something that is no array.

    >>> from phlox.experimental import checkify
    >>> checkify.debug_check(False, "no")
    >>> checkify.checkify(lambda: checkify.debug_check(False, "no"))()[0].get()
    'no (`check` failed at ...)'
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raises if `error` holds a failed check, like `error.throw()`. Under `checkify` it fails as a check there.

    Args:
      error: the first result of a function that `checkify` returned.

    Returns:
      None, when no check failed.

    Raises:
      ArgumentError: `error` is no `Error`.
      JaxRuntimeError: a check failed, outside of compiled functions.
      UncheckedError: in a compiled function without `checkify`.

    >>> from phlox.experimental import checkify
    >>> checkify.check_error(checkify.init_error)
    """
    if not isinstance(error, Error):
        raise ArgumentError(f"check_error takes an Error, got {error!r}", argument="error")
    raise_failed(error)
