"""Effects: what an operation does besides computing its results.

An operation with an effect is kept even if nothing reads its results. Operations with ordered effects also run in
program order.
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
    """A callback that only observes values."""


class OrderedDebugEffect(DebugEffect):
    """A callback that only observes values, in program order."""

    ordered = True


class IOEffect(Effect):
    """A callback with side effects."""


class OrderedIOEffect(IOEffect):
    """A callback with side effects, in program order."""

    ordered = True


class RefEffect(Effect):
    """A read or write of a reference from outside of the program."""


Effects = frozenset[Effect]
no_effects: Effects = frozenset()


def ordered(effects: Iterable[Effect]) -> bool:
    """True when one of the effects requires program order."""
    return any(effect.ordered for effect in effects)


def refuse_io(effects: Effects, where: str, why: str) -> None:
    """Raises `EffectError` if one of `effects` is an `IOEffect`.

    For transformations that run operations again, or for examples that do not need them: `where` names the
    transformation, `why` completes the message.
    """
    if any(isinstance(effect, IOEffect) for effect in effects):
        raise EffectError(
            f"an io_callback inside of {where}, {why}",
            instead="pure_callback or phlox.debug.callback, or the callback outside",
            effects=effects,
        )
