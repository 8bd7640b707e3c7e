"""Instructions to the compiler that phlox does not pass on: where to compute, and equal shardings.

``jax.experimental.compute_on`` and ``shard_alike``. Libraries wrap functions in them to save memory or time. Values do
not depend on them, so the functions here return what they are given; only the memory of the results of `compute_on` is
as declared.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from phlox import device_put
from phlox.errors import ArgumentError, OptionError

_PLACES = ("device_host", "device", "tpu_sparsecore")


@contextlib.contextmanager
def _unchanged() -> Iterator[None]:
    """A context, and a decorator, that change nothing."""
    yield


def compute_on(
    f: Callable[..., Any] | str | None = None,
    *,
    compute_type: str | None = None,
    out_memory_spaces: Any = None,
    compiler_options: Any = None,
) -> Any:
    """The function `f`, or a decorator, which JAX runs on another part of the machine.

    Args:
      f: the function. A string is `compute_type`, as before JAX 0.12; the result is then a context manager too.
      compute_type: ``"device_host"``, ``"device"``, ``"tpu_sparsecore"`` or ``"gpu_stream:1"``.
      out_memory_spaces: a tree prefix of the result with a `memory.Space` for each, into which it is put.
      compiler_options: not used.

    Raises:
      ArgumentError: `compute_type` is no string.
      OptionError: there is no such `compute_type`.
    """
    place = f if isinstance(f, str) else compute_type
    if not isinstance(place, str):
        raise ArgumentError(f"compute_on: compute_type={place!r} is no string", instead="compute_type='device_host'")
    if place not in _PLACES and not place.startswith("gpu_stream:"):
        raise OptionError(
            f"Invalid compute type {place}. Current supported values are `device_host`, `device`, `tpu_sparsecore`, "
            "and `gpu_stream:#`."
        )
    if out_memory_spaces is None:
        return f if callable(f) else _unchanged()

    def with_spaces(g: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(g)
        def run(*args: Any, **kwargs: Any) -> Any:
            return device_put(g(*args, **kwargs), out_memory_spaces)

        return run

    return with_spaces(f) if callable(f) else with_spaces


def compute_on2(f: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`compute_on` by its name in JAX 0.10."""
    return compute_on(f, **options)


def shard_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """`x` and `y`; the compiler chooses their shardings."""
    return x, y
