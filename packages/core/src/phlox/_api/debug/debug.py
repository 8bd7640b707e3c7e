"""Looking at values while a program runs: debug.callback, debug.print and debug.log.

They follow the program through every transformation and change nothing in it: under vmap they see each example, under
grad the values of the forward pass, in a scan each turn.
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
    """Calls a Python function with the values that a program has where this stands.

    Args:
      callback: function whose result is not used. Without it, returns what takes the function and its arguments:
        ``callback(ordered=True)(f, x)``.
      *args, **kwargs: its arguments. Leaves of trees that are no arrays are handed on as they are.
      ordered: whether such calls happen in the order of the program.
      partitioned: on several devices, call with each device's part instead of the whole.

    Returns:
      None; without `callback`, a function.

    Raises:
      ArgumentError: `callback` is no function; or arguments without it.

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
    """Writes one line; `options` are NumPy's print options where the program was written."""

    fmt: str
    options: Any
    place: tuple[str, int] | None

    @property
    def __name__(self) -> str:
        return repr(self.fmt)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        with np.printoptions(**self.options):
            text = self.fmt.format(*args, **kwargs)
        if self.place is None:
            sys.stdout.write(text + "\n")
        else:
            file, line = self.place
            _logger.handle(_logger.makeRecord(_logger.name, logging.INFO, file, line, text, (), None))


class _AllUsed(string.Formatter):
    """Finds arguments that a format does not mention."""

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
      fmt: format as of `str.format`. Without it, returns what takes the format and its arguments.
      *args, **kwargs: what is filled in, trees of arrays and other things.
      ordered: whether such lines appear in the order of the program.
      partitioned: on several devices, print each device's part instead of the whole.
      skip_format_check: do not look for arguments that the format does not mention.
      _use_logging: write to the logger, as `log` does.

    Returns:
      None; without `fmt`, a function.

    Raises:
      ArgumentError: an argument that the format does not mention; or arguments without `fmt`.
      IndexError: the format mentions an argument by position that is not there.
      KeyError: the same by name.

    >>> phlox.debug.print("x = {x:.2f}", x=jnp.pi)
    x = 3.14
    """

    def call(fmt: str, *args: Any, **kwargs: Any) -> None:
        if not skip_format_check:
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
    """Like `print`, but the line goes to the logger "phlox.debug" at level INFO, with the place in the user's code.

    Args:
      fmt: format as of `str.format`. Without it, returns what takes the format and its arguments.
      *args, **kwargs: what is filled in, trees of arrays and other things.
      ordered: whether such lines appear in the order of the program.
      partitioned: on several devices, log each device's part instead of the whole.
      skip_format_check: do not look for arguments that the format does not mention.
      _use_logging: False prints instead.

    Returns:
      None; without `fmt`, a function.

    Raises:
      ArgumentError: an argument that the format does not mention; or arguments without `fmt`.

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
