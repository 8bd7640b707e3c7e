"""Permits, logs or forbids transfers between host and devices, by the flags `transfer_guard_*`.

A transfer is explicit if the user requests it (`device_put`, `device_get`), and implicit if it happens because a number
or NumPy array is an operand. As in JAX, reading an array in host memory is no transfer.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar
from operator import attrgetter

from .._base import config, monitoring, source
from .._base.errors import TransferError
from .._base.scoped import scoped
from .._ir.avals import ShapedArray
from .sharding import Sharding

# A context variable, so that an explicit transfer in one thread does not permit implicit ones in another.
_explicit: ContextVar[bool] = ContextVar("phlox_explicit_transfer", default=False)
_FLAG = {d: attrgetter(f"transfer_guard_{d}") for d in ("host_to_device", "device_to_device", "device_to_host")}
_INSTEAD = {
    "host_to_device": "phlox.device_put(x), before",
    "device_to_device": "phlox.device_put(x, where), before",
    "device_to_host": "phlox.device_get(x)",
}


def explicit() -> AbstractContextManager[None]:
    """A context in which transfers are explicit."""
    return scoped(_explicit, True)


def is_allowed(direction: str) -> bool:
    """Whether the current settings permit all transfers in this direction without a log entry."""
    return _FLAG[direction](config.current()) in (None, "allow")


def check(direction: str, aval: ShapedArray, there: Sharding | None = None, here: Sharding | None = None) -> None:
    """Checks a transfer in `direction` ("host_to_device" …) of an array of this type against the settings.

    Logs it, or raises `TransferError` if it is forbidden.
    """
    if is_allowed(direction):
        return
    level = _FLAG[direction](config.current())
    explicit = _explicit.get()
    # "disallow" and "log" concern implicit transfers, "disallow_explicit" and "log_explicit" both kinds.
    if explicit and not level.endswith("_explicit"):
        return
    words = f"{'explicit' if explicit else 'implicit'} {direction.replace('_', '-')} transfer of {aval.short}"
    words += "".join(f" {word} {where}" for word, where in (("from", here), ("to", there)) if where is not None)
    if level.startswith("log"):
        where = source.user_location(2)
        monitoring.warn("%s%s", words, f" at {where}" if where is not None else "")
        return
    raise TransferError(
        f"disallowed {words}, because transfer_guard_{direction} is {level!r}",
        instead="" if explicit else _INSTEAD[direction],
        direction=direction,
    )
