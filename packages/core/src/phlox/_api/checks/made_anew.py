"""Functions made anew in a loop: jitted functions with the same code, compiled for the same types on the same line.

Programs are stored with the function. A lambda, an inner function or a bound method made in each turn is a new
function, and is compiled again. Functions that are called often are no trap: a script may train several networks, one
after another. Neither are functions that are still alive, as those in a cache or in the layers of a network are: who
stores a function calls it again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any
from weakref import ref

from ..._base.checks import report
from ..._base.interning import clear_if_full, forgettable
from ..._base.source import Location, is_users
from ..jit import arguments
from ..jit.caches import Caches
from .reads import functions_in
from .recompiles import OFTEN, Cost, cost_text, ordinal, total

# Two may be intended: training and evaluation. The third is a pattern.
_MANY = 3
#: (codes, [(caches of a function, cost)]) by ids of codes, types and place of the call
_known: dict[Any, tuple[list[CodeType], list[tuple[ref[Caches], Cost]]]] = forgettable({})


def check(
    fun: Callable[..., Any], codes: list[CodeType], key: Any, caches: Caches, cost: Cost, place: Location | None
) -> None:
    """Notes the cost of the first compilation of a function, and reports it if it is the third of the same code.

    Args:
      fun, codes: the user's function, and the code objects of it and of the functions that it wraps.
      key: (tree, statics, settings, *types) of the call.
      caches: those of the function, which die with it.
      cost: the cost of the compilation, which follows.
      place: the line of the call.
    """
    # Builtins and objects without Python code cannot be recognized.
    if not codes:
        return
    # Values of static arguments are left out: they may differ from turn to turn. Static data of trees may have no
    # equality, such as arrays, so that trees are told apart by their hashes.
    mark = (*map(id, codes), hash(key[0]), *(parameter for parameter, _, _ in key[1]), *key[2:], *_stack())
    earlier = clear_if_full(_known, 1024).setdefault(mark, (codes, []))[1]
    # Two threads may compile one function, and `clear_cache` makes its next compilation the first one again.
    if any(reference() is caches for reference, _ in earlier):
        return
    # Those without a counter were not compiled, as their trace raised an error.
    dead = [one for reference, one in earlier if reference() is None and one.counter is not None]
    earlier.append((ref(caches), cost))
    # With arguments of any types.
    if len(dead) < _MANY - 1 or any(sum(counter.calls for counter in one.counters) >= OFTEN for one in dead):
        return
    name = arguments.fun_name(fun)
    text = cost_text(total(dead), "The earlier compilations cost")
    report(
        "recompiles",
        f"{name} is compiled for the {ordinal(len(dead) + 1)} time for arguments of the same types, as it is a new "
        f"function each time, made in a loop{text}",
        instead=f"phlox.jit of {name} once, outside of the loop, with what differs between turns as an argument",
        location=place,
    )


def codes_of(fun: Any) -> list[CodeType]:
    """The code objects of a function and of the functions that it wraps."""
    return [one.__code__ for one in functions_in(fun) if isinstance(one, FunctionType)]


def _stack() -> list[Any]:
    """The places of the user's frames. Tests that run again with other parameters are at different places."""
    # pytest runs a test again with other parameters on the same lines: these are no loop.
    frames: list[Any] = [os.environ.get("PYTEST_CURRENT_TEST")]
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            frames += [id(frame.f_code), frame.f_lasti]
        frame = frame.f_back
    return frames
