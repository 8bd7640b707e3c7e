"""The reason why a jitted function is traced again, for the flags `explain_cache_misses` and `no_tracing`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..._base import config, monitoring, pytree, source
from ..._base.errors import RefusedError
from .arguments import fun_name, leaf_names

Key = tuple[Any, ...]
Label = Callable[[int], str | int]


def check_miss(fun: Callable[..., Any], key: Key, known: Iterable[Key], label: Label) -> None:
    """Reports a cache miss as the flags ask for; called before the function `fun` is traced.

    Keys are (treedef of the arguments, static arguments, settings, axes in scope, *types), and `known` has those in
    the cache. `label` returns the name of the argument at a position. Raises `RefusedError` under `no_tracing`.
    """
    settings, name, why = config.current(), fun_name(fun), _why(fun, key, list(known), label)
    if settings.no_tracing:
        raise RefusedError(
            f"re-tracing function {name} for `jit`, but the flag no_tracing is set: {why}", function=name
        )
    if settings.explain_cache_misses:
        where = source.user_location(2)
        at = f" at {where}" if where is not None else ""
        monitoring.warn("Tracing %s%s, because %s", name, at, why)


def _why(fun: Callable[..., Any], key: Key, known: list[Key], label: Label) -> str:
    """How `key` differs from the most similar known key."""
    if not known:
        return "it has not been traced before"
    # Fewest differing parts first: the message names what the user most likely changed.
    closest = min(known, key=lambda other: _distance(key, other))
    parts = []
    if key[0] != closest[0]:
        parts.append(f"different input pytree: now {key[0]} and before {closest[0]}")
    if key[1] != closest[1]:
        now, before = _statics(key[1], label), _statics(closest[1], label)
        parts.append(f"different value of static arguments: now {now} and before {before}")
    # Fingerprints are interned, and their first value is no flag.
    if key[2] is not closest[2]:
        changed = zip(config.flags_of("trace_fingerprint"), key[2].values[1:], closest[2].values[1:], strict=True)
        context = [f"{flag}, now {now} and before {then}" for flag, now, then in changed if now != then]
        parts.append(f"different tracing context: {', '.join(context)}")
    if key[3] != closest[3]:
        parts.append(f"different mapped axes: now {key[3]} and before {closest[3]}")
    if key[0] == closest[0]:
        leaves = zip(_leaf_names(fun, key), key[4:], closest[4:], strict=True)
        types = [f"at {leaf}, {_change(now, then)}" for leaf, now, then in leaves if now is not then]
        if types:
            parts.append(f"different input types: {', '.join(types)}")
    return "; ".join(parts)


def _leaf_names(fun: Callable[..., Any], key: Key) -> list[str]:
    """Paths of the leaves of the arguments that are not static."""
    args, kwargs = pytree.placeholders(key[0])
    return leaf_names(fun, args, kwargs, {parameter for parameter, _, _ in key[1]})


def _distance(key: Key, other: Key) -> tuple[int, int]:
    """How much two keys differ: in how many of the first four parts, then in how many types of arguments."""
    kinds = sum(a != b for a, b in zip(key[:4], other[:4], strict=True))
    return kinds, sum(a is not b for a, b in zip(key[4:], other[4:], strict=False)) + abs(len(key) - len(other))


def _statics(statics: Iterable[Any], label: Label) -> str:
    named = [(label(parameter) if isinstance(parameter, int) else parameter, value) for parameter, _, value in statics]
    return "{" + ", ".join(f"{name}: {value!r}" for name, value in named) + "}"


def _change(now: Any, then: Any) -> str:
    if now.shape == then.shape and now.dtype == then.dtype:
        weak = [f"{aval.short}{{weak_type={aval.weak_type}}}" for aval in (now, then)]
        return f"now {weak[0]} and before {weak[1]}: one is of a Python number, which gives way in promotions"
    what = "shape" if now.shape != then.shape else "dtype"
    return f"now {_type(now)} and before {_type(then)} (another {what})"


def _type(aval: Any) -> str:
    return aval.short + ("{weak_type=True}" if aval.weak_type else "")
