"""What a case is. A case is a function of the library that returns what is to be timed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

BOTH = ("jax", "phlox")


@dataclasses.dataclass(frozen=True)
class Case:
    """One thing that is measured.

    Attributes:
      name: what to call it by; the part before the slash is the group.
      make: function of the library that returns a function to be timed; or a pair of functions, the first of which
        prepares, untimed, what the second takes.
      libraries: those that it is written for; phlox's time is divided by jax's.
      budget: the ratio that phlox has promised, or None.
      quick: whether `./bench --quick` runs it.
      process: measured in a process of its own each time; `make` is then the text of a program with the library as
        ``LIBRARY``, which prints what it measured.
      unit: of what is printed: s, B, or "of 1" for a ratio or a share, of which the median counts.
      needs: modules without which it is left out.
      same: libraries whose first result has to be jax's, but for rounding; else the case is an error of that library.
      environment: variables of such a process; ``FOLDER`` stands for a folder that its runs share.
      on: the only platform that it is measured on, for work that would take minutes elsewhere; None for all.
    """

    name: str
    make: Any
    libraries: tuple[str, ...] = BOTH
    budget: float | None = None
    quick: bool = True
    process: bool = False
    unit: str = "s"
    needs: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    on: str | None = None

    @property
    def group(self) -> str:
        return self.name.partition("/")[0]


CASES: dict[str, Case] = {}
#: The environment of a process of which both libraries keep compiled programs on disk. `measure` runs each program once
#: before it measures.
KEPT_ON_DISK = (
    ("PHLOX_ENABLE_COMPILATION_CACHE", "1"),
    ("JAX_COMPILATION_CACHE_DIR", "FOLDER"),
    ("PHLOX_COMPILATION_CACHE_DIR", "FOLDER"),
    ("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0"),
    ("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1"),
)
#: programs whose compiled form is compared: name -> function of the library that returns (function, arguments)
PROGRAMS: dict[str, Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]] = {}


def case(name: str, **options: Any) -> Callable[[Any], Any]:
    """States that the decorated function is the case of this name."""

    def state(make: Any) -> Any:
        assert name not in CASES, name
        CASES[name] = Case(name, make, **options)
        return make

    return state


def started(name: str, program: str, **options: Any) -> None:
    """States a case that is a program, run in a fresh process each time."""
    CASES[name] = Case(name, program, process=True, **options)


def load() -> dict[str, Case]:
    """All cases, in the order in which they are reported."""
    from .cases import (
        compiled,
        devices,
        dispatch,
        eager,
        generation,
        growth,
        kernels,
        libraries,
        loading,
        loops,
        networks,
        programs,
        results,
        staging,
        starting,
    )

    assert all((starting, results, staging, dispatch, eager, compiled, programs, kernels, devices, growth, networks))
    assert generation and libraries and loading and loops
    return CASES
