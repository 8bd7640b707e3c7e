"""The calls of `jit` into the checks: when a function is compiled, when it is traced, and at some calls."""

from __future__ import annotations

from collections.abc import Callable
from types import CellType, CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any
from weakref import ref

from ..._base import monitoring
from ..._base.checks import is_on, is_strict, report
from ..._base.interning import clear_if_full
from ..._base.source import is_users, user_location
from ..._xla.compile import observers
from ..jit.counting import next_sample
from ..jit.entry import LIMIT, Entry
from ..jit.user_functions import check_returned
from . import effects, made_anew, recompiles, slow_compile, unrolled
from .reads import Reader, functions_in
from .stale_values import Watch

if TYPE_CHECKING:
    from ..jit.bodies import Staged
    from ..jit.bound_call import BoundCall
    from ..jit.jit_function import JitFunction
    from ..jit.traced import FunctionTrace

# By id, since hashing a code object hashes all of its contents.
#: (code, how often functions of it were transformed, at which number they are next checked) by id of the code, which is
#: stored so that its id stays its own
_transformed: dict[int, tuple[CodeType | None, int, int]] = {}
observers.append(slow_compile.watched)
_STAGES = (monitoring.TRACE, monitoring.LOWER, monitoring.COMPILE)


def compiled(jitted: JitFunction, key: Any, call: BoundCall) -> Entry:
    """Compiles a call of a user's function, notes its cost, and reports recompilation."""
    store, fun, label = jitted._store, jitted.fun, jitted.parameters.label
    # Found before compiling, while the user's frame is the innermost one.
    place = user_location()
    codes = made_anew.codes_of(fun)
    watches = (
        jitted.reports_recompiles
        and is_on()
        and (place is None or is_users(place.file))
        and all(is_users(c.co_filename) for c in codes[-1:])
    )
    # Only calls from the user's own code are reported: libraries compile as they see fit.
    line = None if place is None else (place.file, place.line)
    changes = recompiles.repeated(fun, label, store.history, key, line) if watches else []
    number = len(store.history) + 1
    # In strict mode the report is an error, which comes before the time is spent.
    if changes and is_strict():
        cost = recompiles.cost_text(
            recompiles.total(one.cost for one in store.history), "The earlier compilations cost"
        )
        report("recompiles", recompiles.message(fun, changes, number, cost), instead=changes[0].instead, location=place)
    # All compilations of a function share one list of counters, as `made_anew` asks how often it was called with
    # arguments of any types.
    spent = recompiles.Cost(store.history[0].cost.counters if store.history else [])
    if watches and not store.history:
        made_anew.check(fun, codes, key, store, spent, place)
    # The account sums the times of all compilations of the function; the differences are those of this one.
    before = [store.account.seconds.get(event, 0.0) for event in _STAGES]
    entry = jitted._compile(call)
    spent.seconds = tuple(store.account.seconds.get(event, 0.0) - t for event, t in zip(_STAGES, before, strict=True))
    # Bounded, as each entry keeps a key.
    if len(store.history) >= LIMIT:
        store.history.clear()
    store.history.append(recompiles.Compilation(key, spent, line))
    if changes:
        cost = recompiles.cost_text(spent.seconds, "This compilation cost")
        report("recompiles", recompiles.message(fun, changes, number, cost), instead=changes[0].instead, location=place)
    spent.counter = entry.counter
    spent.counters.append(entry.counter)
    # Calls 2, 3, 4, 8, … leave the fast path from now on, see `counting`.
    if entry.stale_values is not None:
        entry.counter.check_soon()
    return entry


def traced(jitted: JitFunction, call: BoundCall, program: FunctionTrace) -> Watch | None:
    """Checks a trace of a user's function that has ended. Returns the values from outside that it read."""
    reader = Reader(jitted.fun, call.statics)
    if reader.reads:
        effects.check(reader, jitted.fun, program.closed.jaxpr.name)
    unrolled.check(program.closed.jaxpr)
    check_returned(jitted.fun, program.out_tree)
    return values_of(jitted.fun, program, reader)


def values_of(fun: Callable[..., Any], program: FunctionTrace | Staged, reader: Reader | None = None) -> Watch | None:
    """The values from outside that the trace `program` of a function read; None if there are none."""
    reader = reader or Reader(fun)
    if not reader.reads and not reader.functions:
        return None
    watch = Watch(reader, fun, program)
    return watch if watch.values else None


def transformed(fun: Callable[..., Any], name: str) -> None:
    """Checks a user's function after a transformation, or after it became the body of a loop or a branch.

    This happens at each call of an eager `grad`, so only transformations 1, 2, 3, 4, 8, 16, … of one code are checked.
    """
    code = _users_code(fun)
    # The first transformation is always checked, see `next_sample`.
    _, count, due = _transformed.get(id(code), (code, 0, 1))
    count += 1
    if count >= due:
        reader = Reader(fun)
        if reader.reads:
            effects.check(reader, fun, name)
        due = next_sample(count)
        clear_if_full(_transformed)
    _transformed[id(code)] = code, count, due


def _users_code(fun: Any, depth: int = 3) -> CodeType | None:
    """The code of the user's function in `fun`, which may be one of phlox that closes over it, as loops have."""
    code: CodeType | None = None
    for one in functions_in(fun):
        if isinstance(one, FunctionType):
            code = one.__code__
            # Loops and branches wrap the user's function in one of phlox, which has it in its closure, or a weak
            # reference to it.
            if not is_users(code.co_filename) and depth:  # cells equal to `CellType()` have no value yet
                cells = (cell.cell_contents for cell in one.__closure__ or () if cell != CellType())
                inner = (_users_code(x, depth - 1) for x in cells if isinstance(x, FunctionType | MethodType | ref))
                code = next((c for c in inner if c is not None and is_users(c.co_filename)), code)
    return code
