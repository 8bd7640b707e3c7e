"""Why a jitted function has to be traced again, for the flags `explain_cache_misses` and `no_tracing`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .._base import config, monitoring, source
from .._base.errors import RefusedError

Key = tuple[Any, ...]
Label = Callable[[int], str | int]


def check_miss(name: str, key: Key, known: Iterable[Key], label: Label) -> None:
    """Called before the function `name` is traced, for a key that is not among those `known`.

    Keys are (structure of arguments, static arguments, settings, axes in scope, *types); `label` tells what to call an
    argument by position. Raises `RefusedError` under the flag `no_tracing`.
    """
    settings = config.current()
    if settings.no_tracing:
        raise RefusedError(
            f"re-tracing function {name} for `jit`, but the flag no_tracing is set: {_why(key, list(known), label)}",
            function=name,
        )
    if settings.explain_cache_misses:
        where = source.user_location(2)
        at = f" at {where}" if where is not None else ""
        monitoring.warn("Tracing %s%s, because %s", name, at, _why(key, list(known), label))


def _why(key: Key, known: list[Key], label: Label) -> str:
    """What about a key is new, compared with the known one that is most like it."""
    if not known:
        return "it has not been traced before"
    closest = min(known, key=lambda other: _distance(key, other))
    parts = []
    if key[0] != closest[0]:
        parts.append(f"different input pytree: arguments of structure {key[0]}, before {closest[0]}")
    if key[1] != closest[1]:
        parts.append(f"static arguments {_statics(key[1], label)}, before {_statics(closest[1], label)}")
    if key[2] is not closest[2]:
        changed = zip(config.flags_of("traced"), key[2].values[1:], closest[2].values[1:], strict=True)
        parts += [
            f"tracing context: flag {flag} is {now!r}, before {then!r}" for flag, now, then in changed if now != then
        ]
    if key[3] != closest[3]:
        parts.append(f"mapped axes {key[3]}, before {closest[3]}")
    if key[0] == closest[0]:
        names = range(len(key) - 4)
        for i, now, then in zip(names, key[4:], closest[4:], strict=True):
            if now is not then:
                parts.append(f"argument leaf {i} has type {_type(now)}, before {_type(then)}{_difference(now, then)}")
    return "; ".join(parts)


def _distance(key: Key, other: Key) -> tuple[int, int]:
    """How unlike two keys are: in kinds of things, then in types of arguments."""
    kinds = sum(a != b for a, b in zip(key[:4], other[:4], strict=True))
    return kinds, sum(a is not b for a, b in zip(key[4:], other[4:], strict=False)) + abs(len(key) - len(other))


def _statics(statics: Iterable[Any], label: Label) -> str:
    named = [(label(where) if isinstance(where, int) else where, value) for where, _, value in statics]
    return ", ".join(f"{name}={value!r}" for name, value in named) or "none"


def _type(aval: Any) -> str:
    return aval.short + (" (weak)" if aval.weak_type else "")


def _difference(now: Any, then: Any) -> str:
    if now.shape != then.shape:
        return " (another shape)"
    return " (different input types: another dtype)" if now.dtype != then.dtype else " (another weak_type)"
