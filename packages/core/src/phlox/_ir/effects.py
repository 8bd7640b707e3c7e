"""Effects: what an operation does besides computing its results.

An operation with an effect stays in a program though nothing reads its results. Where the effect is ordered, such
operations also run in the order in which they were written.
"""

from __future__ import annotations

from collections.abc import Iterable

from .._base.errors import EffectError


class Effect:
    """A kind of effect. Effects of one class are equal."""

    ordered = False

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return type(self).__name__.removesuffix("Effect")


class DebugEffect(Effect):
    """A callback that only looks at values."""


class OrderedDebugEffect(DebugEffect):
    """A callback that only looks at values, in the order of the program."""

    ordered = True


class IOEffect(Effect):
    """A callback that acts on the outside world."""


class OrderedIOEffect(IOEffect):
    """A callback that acts on the outside world, in the order of the program."""

    ordered = True


Effects = frozenset[Effect]
no_effects: Effects = frozenset()


def ordered(effects: Iterable[Effect]) -> bool:
    """True when one of the effects asks for the order of the program."""
    return any(effect.ordered for effect in effects)


def refuse_io(effects: Effects, where: str, why: str) -> None:
    """Raises `EffectError` where a transformation repeats operations, which callbacks that act would notice."""
    if any(isinstance(effect, IOEffect) for effect in effects):
        raise EffectError(
            f"an io_callback inside of {where}, {why}",
            instead="pure_callback or phlox.debug.callback, or the callback outside",
            effects=effects,
        )
