"""Functions of numbers and arrays that kernels use."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator, Sequence
from typing import Any

import phlox
from phlox import numpy as jnp

_checks = contextvars.ContextVar("debug checks", default=False)


def cdiv(a: Any, b: Any) -> Any:
    """``a / b`` rounded up."""
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    return (a + (b - 1)) // b


def align_to(a: Any, alignment: Any) -> Any:
    """`a` rounded up to a multiple of `alignment`."""
    return cdiv(a, alignment) * alignment


def broadcast_to(a: Any, shape: Sequence[int]) -> Any:
    """`a` with this shape (as ``numpy.broadcast_to``)."""
    return jnp.broadcast_to(a, shape)


def next_power_of_2(x: int) -> int:
    """The smallest power of 2 that is at least `x`."""
    if x < 0:
        raise ValueError("`next_power_of_2` requires a non-negative integer.")
    return 1 if x == 0 else 2 ** (x - 1).bit_length()


def strides_from_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The number of elements from one index to the next along each axis of a row-major array."""
    strides, stride = [], 1
    for length in reversed(shape):
        strides.append(stride)
        stride *= length
    return tuple(reversed(strides))


def multiple_of(x: Any, values: Sequence[int] | int) -> Any:
    """`x`, which is declared to be a multiple of `values`; interpret mode makes no use of it."""
    return x


def reciprocal(x: Any, *, approx: bool = False, full_range: bool = True) -> Any:
    """``1 / x``; with `approx` rounded to bfloat16 in between, as JAX's interpreter does."""
    if approx:
        return jnp.reciprocal(x.astype(jnp.bfloat16)).astype(x.dtype)
    return jnp.reciprocal(x)


def debug_print(fmt: str, *args: Any) -> None:
    """Prints values while the kernel runs; see `phlox.debug.print`."""
    if args and "{" not in fmt:
        fmt += " " + " ".join("{}" for _ in args)
    phlox.debug.print(fmt, *args)


@contextlib.contextmanager
def enable_debug_checks(new_val: bool = True) -> Iterator[None]:
    """A context in which `debug_check` checks."""
    token = _checks.set(new_val)
    try:
        yield
    finally:
        _checks.reset(token)


@contextlib.contextmanager
def enable_poison_buffers(new_val: bool = True) -> Iterator[None]:
    """A context without effect: memory that nothing was written to always has nan, or the smallest integers."""
    yield


def debug_check(condition: Any, message: str) -> None:
    """Raises an error with `message` if `condition` is false, inside of `enable_debug_checks`."""
    if _checks.get():
        phlox.experimental.checkify.check(condition, message)


def delay(nanos: Any) -> None:
    """Waits on the hardware; in interpret mode it does nothing."""
