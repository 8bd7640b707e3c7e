"""Recompilation: the argument whose type, value or structure differs each time, and what avoids it.

Two kinds of an argument are ordinary: training and evaluation, full batches and a short last one. So each argument is
counted by itself, and its third kind is reported. Kinds count that one line of the user calls, each a few times. The
reports and `explain` read the history of a function's compilations, which its `Caches` hold.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType, NoneType
from typing import Any, NamedTuple

from ..._base import config, monitoring, pytree
from ..._base.errors import CheckError
from ..._base.pytree import treedef_children
from ..._base.source import user_location
from ..._trace.refs import AbstractRef
from ..._xla.placement import Placed
from ..jit import arguments
from ..jit.counting import CallCounter
from ..jit.entry import NUMBERS, aval_of_leaf
from ..jit.references import RefKey

#: (treedef of the arguments, static arguments, fingerprint of settings, *keys of the leaves)
Key = tuple[Any, ...]
Label = Callable[[int], str | int]
#: how many kinds of one argument are reported
_MANY = 3
#: a program that was called so often was worth its compilation
OFTEN = 8
#: how many of the latest compilations are compared
_COMPARED = 16


class Cost:
    """The cost of a compilation and the use of it. It refers to no object of the user, and may be stored for long.

    Attributes:
      seconds: (tracing, lowering, compiling).
      counter: counts the calls of the program; None until it is compiled.
      counters: the counters of all programs of the function.
    """

    __slots__ = ("counter", "counters", "seconds")

    def __init__(self, counters: list[CallCounter]):
        self.seconds: tuple[float, ...] = (0.0, 0.0, 0.0)
        self.counter: CallCounter | None = None
        self.counters = counters


class Compilation(NamedTuple):
    """One compilation of a function.

    Attributes:
      key: the cache key of its calls.
      cost: what it took.
      line: (file, line) of the first call, in the user's code.
    """

    key: Key
    cost: Cost
    line: tuple[str, int] | None


class Change(NamedTuple):
    """A part of the cache key that differs between calls.

    Attributes:
      name: the part in the user's terms, as ``x`` or ``params['w']``.
      kind: "shape", "dtype", "weak type", "sharding", "identity", "value", "structure", "setting" or "axes".
      now: its value in the new call.
      before: its earlier values, latest first.
    """

    name: str
    kind: str
    now: str
    before: tuple[str, ...]

    def __str__(self) -> str:
        subject = {"value": "the static argument ", "identity": "the static argument ", "setting": "the flag "}
        what = {"structure": "the structure of the arguments"}.get(self.kind) or subject.get(self.kind, "") + self.name
        suffix = {"weak type": "weak type", "shape": "shape", "dtype": "dtype", "sharding": "sharding"}.get(self.kind)
        another = f" (another {suffix})" if suffix else ""
        anew = ", an object made anew, which is equal to no other" if self.kind == "identity" else ""
        return f"{what} is {self.now} and was {', then '.join(reversed(self.before))}{another}{anew}"

    @property
    def instead(self) -> str:
        """What avoids the recompilation."""
        name = self.name
        return {
            "shape": "one length for all calls, as phlox.pad_axes and jit(sizes=...) give it; or pad to a few lengths",
            "dtype": f"{name}.astype(...) before the call, so that all calls have one dtype",
            "weak type": f"jnp.float32({name}), or an array of another dtype: Python numbers are weakly typed",
            "sharding": f"phlox.device_put({name}, sharding) once, so that all calls have one sharding",
            "identity": f"make {name} once, outside of the loop; or give its class __eq__ and __hash__, as "
            "dataclass(frozen=True) does",
            "value": f"pass {name} as an array, not as a static argument, if the shapes do not depend on it",
            "structure": "the same keys, the same lengths of lists, and None at the same places in each call",
            "setting": "set the flag once, before the first call",
            "axes": "call the function under the same mapped axes",
        }[self.kind]


def differences(
    fun: Callable[..., Any], label: Label, keys: Sequence[Key], counts: Sequence[bool] | None = None
) -> list[Change]:
    """The parts of the last of `keys` that are new.

    With `counts`, only those of which there are too many kinds. `counts` tells of each earlier key whether its kinds
    count; choices among values that the program writes out do not, such as names of modes, functions of different code,
    and devices.
    """
    # The latest ones say what the program does now.
    *parts, now = [_parts(fun, label, key) for key in keys[-_COMPARED:]]
    changes = []
    for name, value in now.items():
        earlier: dict[Any, _Part] = {}
        uncounted = set()
        for i, other in enumerate(reversed(parts), 1):
            if name in other:
                earlier.setdefault(other[name].same, other[name])
                if counts is not None and not counts[-i]:
                    uncounted.add(other[name].same)
        if not earlier or value.same in earlier:
            continue
        before = [part for same, part in earlier.items() if same not in uncounted]
        if counts is not None and len(before) + 1 < _MANY:
            continue
        kind = _kind(name[0], value, before)
        if counts is not None and _is_choice(kind, name[1], [part.value for part in (value, *before)]):
            continue
        changes.append(Change(name[1], kind, value.text, tuple(part.text for part in before)))
    # With another structure, leaves have other paths, and their differences say nothing.
    if any(change.kind == "structure" for change in changes):
        return [change for change in changes if change.kind == "structure"]
    return changes


class _Part(NamedTuple):
    """One part of a key: what equal parts share, its text, and its value."""

    same: Any
    text: str
    value: Any


def _parts(fun: Callable[..., Any], label: Label, key: Key) -> dict[tuple[str, str], _Part]:
    """The parts of a key by (kind, name)."""
    tree, statics, settings, *leaves = key
    parts = {("structure", ""): _Part(tree, _short(_structure_text(tree)), tree)}
    for parameter, kind, value in statics:
        name = str(label(parameter) if isinstance(parameter, int) else parameter)
        parts["static", name] = _Part((kind, value), _static_text(value), value)
    # The first value of a fingerprint is its kind.
    for name, value in zip(config.flags_of("call_fingerprint"), settings.values[1:], strict=True):
        parts["setting", name] = _Part(value, repr(value), value)
    static_positions = {parameter for parameter, _, _ in statics if isinstance(parameter, int)}
    names = _leaf_names(fun, tree, static_positions, len(leaves))
    for name, leaf in zip(names, leaves, strict=True):
        # The value of a reference has a type of its own, which is compared as that of an array is.
        if type(leaf) in (RefKey, AbstractRef):  # a report names the types of arrays only
            parts["reference", name] = _Part(None, "a reference", None)
            continue
        aval = aval_of_leaf(leaf)
        sharding = leaf.sharding if type(leaf) is Placed else None
        parts["leaf", name] = _Part((aval, sharding), _type_text(leaf), leaf)
    return parts


def _structure_text(tree: Any) -> str:
    """The structures of the arguments, as ``{'x': *}, scale=*``."""
    args, kwargs = treedef_children(tree)
    # Keyword arguments are a dict, whose keys are the static data of its node.
    named = zip(kwargs.node_data()[1], treedef_children(kwargs), strict=True)
    parts = [*(("", child) for child in treedef_children(args)), *((f"{name}=", child) for name, child in named)]
    return ", ".join(name + str(child).removeprefix("PyTreeDef(").removesuffix(")") for name, child in parts)


def _leaf_names(fun: Callable[..., Any], tree: Any, static: set[int], count: int) -> list[str]:
    """The path of each leaf in the user's terms."""
    try:
        args, kwargs = pytree.placeholders(tree)
        names = arguments.leaf_names(fun, args, kwargs, static)
    except Exception:  # a class of the user's pytrees takes arrays only
        names = []
    return names if len(names) == count else [f"leaf {i} of the arguments" for i in range(count)]


def _type_text(leaf: Any) -> str:
    aval = aval_of_leaf(leaf)
    number = f" (a Python {leaf.__name__})" if leaf in NUMBERS else " (weakly typed)" if aval.weak_type else ""
    placement = f" on {getattr(leaf.sharding, 'spec', leaf.sharding)}" if type(leaf) is Placed else ""
    return f"{aval.short}{number}{placement}"


def _static_text(value: Any) -> str:
    code = getattr(value, "__code__", None)
    if code is not None:
        return f"{value.__qualname__} of line {code.co_firstlineno}"
    return _short(repr(value))


def _short(text: str) -> str:
    return text if len(text) < 100 else f"{text[:96]}..."


def _kind(category: str, now: _Part, before: Sequence[_Part]) -> str:
    if category == "static":
        return "identity" if any(_is_made_anew(now.value, part.value) for part in before) else "value"
    if category != "leaf":
        return category
    (aval, sharding), (other, earlier_sharding) = now.same, before[0].same
    if aval.shape != other.shape:
        return "shape"
    if aval.dtype != other.dtype:
        return "dtype"
    if aval.weak_type != other.weak_type:
        return "weak type"
    # Types that differ in nothing else differ along explicit axes of a mesh.
    return "sharding" if sharding is not earlier_sharding else "axes"


def _is_choice(kind: str, name: str, values: Sequence[Any]) -> bool:
    """Whether the kinds of an argument or a flag are a choice, so that there are few of them."""
    if kind == "setting":
        return name in ("default_device", "device_context", "entered_mesh", "mesh", "user_contexts")
    if kind == "shape":
        return _are_padded([aval_of_leaf(leaf).shape for leaf in values])
    return kind == "value" and isinstance(values[0], FunctionType | type | enum.Enum | str | bool | NoneType)


def _are_padded(shapes: Sequence[tuple[Any, ...]]) -> bool:
    """Whether shapes differ in powers of two only, as lengths do that were padded. Below any limit there are few."""
    if len({len(shape) for shape in shapes}) > 1:
        return False
    lengths = {n for axis in zip(*shapes, strict=True) if len(set(axis)) > 1 for n in axis}
    return all(isinstance(n, int) and n & (n - 1) == 0 for n in lengths)


def _is_made_anew(now: Any, before: Any) -> bool:
    """Whether two static arguments are equal in all but their identity: functions of one definition, or objects of one
    class without ``__eq__``."""
    if isinstance(now, FunctionType) and isinstance(before, FunctionType):
        return now.__code__ is before.__code__ and now.__qualname__ == before.__qualname__
    # There is one object of each class, and of each member of an enumeration.
    is_single = isinstance(now, type | enum.Enum)
    # Classes without an `__eq__` of their own: two objects are never one key.
    has_identity: bool = type(now).__eq__ is object.__eq__  # type: ignore[comparison-overlap]
    return type(now) is type(before) and has_identity and not is_single


def ordinal(number: int) -> str:
    """The number as text: 3rd."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def repeated(
    fun: Callable[..., Any], label: Label, history: Sequence[Compilation], key: Key, line: tuple[str, int] | None
) -> list[Change]:
    """The parts of a new key of which one line of the user calls too many kinds, each a few times."""
    # Helpers that are called in several lines have arguments of several types, but no more than there are lines.
    counts = [one.line == line and (one.cost.counter is None or one.cost.counter.calls < OFTEN) for one in history]
    # The history does not have the new compilation yet.
    if sum(counts) < _MANY - 1:
        return []
    return differences(fun, label, [*(one.key for one in history), key], counts)


def message(fun: Callable[..., Any], changes: Iterable[Change], number: int, cost: str) -> str:
    """The text of a report."""
    listed = list(changes)
    more = f", and {len(listed) - 3} more" if len(listed) > 3 else ""
    name = arguments.fun_name(fun)
    return f"{name} is compiled for the {ordinal(number)} time: {'; '.join(map(str, listed[:3]))}{more}{cost}"


def cost_text(seconds: Sequence[float], what: str) -> str:
    """The cost of a compilation as the end of a sentence."""
    trace, lower, compiling = (1e3 * s for s in seconds)
    return (
        f". {what} {trace + lower + compiling:.0f} ms (trace {trace:.0f}, lower {lower:.0f}, compile {compiling:.0f})"
    )


def total(costs: Iterable[Cost]) -> list[float]:
    """The summed (trace, lower, compile) seconds of these compilations."""
    return [sum(times) for times in zip(*(cost.seconds for cost in costs), strict=True)] or [0.0, 0.0, 0.0]


def check_limit(
    fun: Callable[..., Any], label: Label, limit: int, key: Key, known: Sequence[Key], account: Any
) -> None:
    """Raises `CheckError`: a function that may be traced `limit` times would be traced once more.

    Args:
      fun, label: the user's function, and the names of its parameters by position.
      limit: the option `max_traces` of `jit`.
      key: (tree, statics, settings, axes, *types) of the new trace.
      known: those of the earlier traces.
      account: the times of the function.
    """
    # Keys of traces have the mapped axes, which `_parts` does not know, and another fingerprint.
    keys = [(*one[:2], _called(one[2]), *one[4:]) for one in (*known, key)]
    changes = differences(fun, label, keys)
    seconds = [account.seconds.get(event, 0.0) for event in (monitoring.TRACE, monitoring.LOWER, monitoring.COMPILE)]
    text = "; ".join(map(str, changes)) or "its kind of arguments differs from all earlier ones"
    raise CheckError(
        f"{arguments.fun_name(fun)} is traced for the {ordinal(len(known) + 1)} time, and jit(max_traces={limit}) "
        f"allows {limit}: {text}{cost_text(seconds, 'The earlier traces cost')}",
        where=user_location(2),
        instead=changes[0].instead if changes else "arguments of the same types, or a larger max_traces",
        check="recompiles",
    )


def _called(traced: Any) -> Any:
    """A fingerprint of the flags `_parts` reads, from one of those that tracing depends on."""
    values = dict(zip(config.flags_of("trace_fingerprint"), traced.values[1:], strict=True))
    # None takes the place of the fingerprint's kind, which `_parts` skips.
    return _Values((None, *(values.get(name) for name in config.flags_of("call_fingerprint"))))


class _Values(NamedTuple):
    values: tuple[Any, ...]


def type_of_call(fun: Callable[..., Any], label: Label, key: Key) -> str:
    """The arguments of a call, as ``x: f32[3], n=2``."""
    parts = _parts(fun, label, key)
    shown = [f"{name}: {part.text}" for (kind, name), part in parts.items() if kind in ("leaf", "reference")]
    shown = shown if len(shown) <= 4 else [*shown[:3], f"{len(shown) - 3} more"]
    return ", ".join([*shown, *(f"{name}={part.text}" for (kind, name), part in parts.items() if kind == "static")])
