"""`debug.callback`, `debug.print` and `debug.log`, which show values while a program runs.

All transformations keep them and they change no results: under vmap they are called for each example, under grad with
the values of the forward pass, in a scan in each iteration.
"""

from __future__ import annotations

import dataclasses
import logging
import string
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._base.errors import ArgumentError
from ..._base.pytree import flatten
from ..._base.source import user_location
from ..._ops.host import callbacks as ops
from .callbacks import split_leaves

_logger = logging.getLogger("phlox.debug")


def callback(
    callback: Callable[..., None] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Calls a Python function with values of the running program.

    Args:
      callback: function whose result is ignored. Without it, `callback` returns a function that takes the callback and
        its arguments: ``callback(ordered=True)(f, x)``.
      *args, **kwargs: arguments of the callback, trees of arrays and other objects; the latter are passed unchanged.
      ordered: make such calls in program order.
      partitioned: on several devices, call with the part of each device instead of the whole array.

    Returns:
      None; without `callback`, a function.

    Raises:
      ArgumentError: `callback` is no function; or arguments are given without it.

    >>> seen = []
    >>> phlox.jit(lambda x: phlox.debug.callback(lambda v: seen.append(float(v)), x))(2.0)
    >>> phlox.effects_barrier()
    >>> seen
    [2.0]
    """

    def call(fun: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        if not callable(fun):
            raise ArgumentError(f"debug.callback takes a function first, got {fun!r}", argument="callback", value=fun)
        arrays, called = _callback(fun, args, kwargs)
        ops.debug_callback.bind(*arrays, callback=called, ordered=ordered, partitioned=partitioned)

    if callback is not None:
        return call(callback, *args, **kwargs)
    _refuse_arguments("callback", args, kwargs)
    return call


def _callback(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], ops.Callback]:
    leaves, in_tree = flatten((tuple(args), kwargs))
    arrays, fixed = split_leaves(leaves)
    return arrays, ops.Callback(fun, in_tree, fixed)


def _refuse_arguments(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    if args or kwargs:
        raise ArgumentError(
            f"debug_{name} received unexpected arguments in the two-call form: {args} {kwargs}",
            instead=f"debug.{name}(ordered=True)(...), with the arguments in the second call",
        )


@dataclasses.dataclass(frozen=True)
class _Printer:
    """Writes one line; `options` are NumPy's print options at the time of tracing."""

    fmt: str
    options: Any
    place: tuple[str, int] | None

    @property
    def __name__(self) -> str:
        return repr(self.fmt)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        # Options of the time of tracing: the program may run on a thread with others.
        with np.printoptions(**self.options):
            text = self.fmt.format(*args, **kwargs)
        if self.place is None:
            # One write for line and end, so that lines of several threads do not mix.
            sys.stdout.write(text + "\n")
        else:
            file, line = self.place
            # A record made by hand has the user's line, where the logger would find one of phlox.
            _logger.handle(_logger.makeRecord(_logger.name, logging.INFO, file, line, text, (), None))


class _AllUsed(string.Formatter):
    """Raises for arguments that a format does not mention."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""

    def check_unused_args(self, used_args: Any, args: Sequence[Any], kwargs: Any) -> None:
        unused = [str(i) for i in range(len(args)) if i not in used_args]
        unused += [name for name in kwargs if name not in used_args]
        if unused:
            raise ArgumentError(
                f"debug.print: the format does not mention argument {', '.join(unused)}",
                instead="'x = {x}', x=x; an f-string is filled in while the program is traced, before there are values",
            )


def print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: Any,
) -> Any:
    """Prints values of a running program.

    Args:
      fmt: format as for `str.format`. Without it, `print` returns a function that takes the format and its arguments.
      *args, **kwargs: arguments of the format, trees of arrays and other objects.
      ordered: print such lines in program order.
      partitioned: on several devices, print the part of each device instead of the whole array.
      skip_format_check: do not check for arguments that the format does not mention.
      _use_logging: write to the logger, as `log` does.

    Returns:
      None; without `fmt`, a function.

    Raises:
      ArgumentError: the format does not mention an argument; or arguments are given without `fmt`.
      IndexError: the format mentions a positional argument that is not given.
      KeyError: the format mentions a keyword argument that is not given.

    >>> phlox.debug.print("x = {x:.2f}", x=jnp.pi)
    x = 3.14
    """

    def call(fmt: str, *args: Any, **kwargs: Any) -> None:
        if not skip_format_check:
            # Checked while tracing, where the user sees the error at the line.
            _AllUsed().format(fmt, *args, **kwargs)
        where = user_location() if _use_logging else None
        place = (where.file, where.line) if where is not None else ("", 0) if _use_logging else None
        arrays, called = _callback(_Printer(fmt, np.get_printoptions(), place), args, kwargs)
        ops.debug_print.bind(*arrays, callback=called, ordered=ordered, partitioned=partitioned)

    if fmt is not None:
        return call(fmt, *args, **kwargs)
    _refuse_arguments("print", args, kwargs)
    return call


def log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = True,
    **kwargs: Any,
) -> Any:
    """Like `print`, but writes to the logger "phlox.debug" at level INFO, with the user's source line.

    Args:
      fmt: format as for `str.format`. Without it, `log` returns a function that takes the format and its arguments.
      *args, **kwargs: arguments of the format, trees of arrays and other objects.
      ordered: log such lines in program order.
      partitioned: on several devices, log the part of each device instead of the whole array.
      skip_format_check: do not check for arguments that the format does not mention.
      _use_logging: False prints instead.

    Returns:
      None; without `fmt`, a function.

    Raises:
      ArgumentError: the format does not mention an argument; or arguments are given without `fmt`.

    >>> phlox.debug.log("x = {}", 1.5)
    """
    return print(
        fmt,
        *args,
        ordered=ordered,
        partitioned=partitioned,
        skip_format_check=skip_format_check,
        _use_logging=_use_logging,
        **kwargs,
    )
