"""Reports of traps: a warning once a line, or an error in strict mode. Set by the flag `checks`."""

from __future__ import annotations

import warnings
from contextvars import ContextVar
from typing import Any

from .config import current
from .errors import CheckError, CheckWarning
from .source import Location, user_location, warn, with_caller

#: the list of warning filters under which a warning was given, by (check, file, line). `catch_warnings`, and with it
#: each test of pytest, makes a list of its own, in which the line may warn again.
_reported: dict[tuple[str, str, int], Any] = {}
#: while a function is traced anew to compare the trace with an old one, whose parts are not taken from caches either
retracing: ContextVar[bool] = ContextVar("phlox_retracing", default=False)


def is_on() -> bool:
    """Whether traps are reported at all."""
    return current().checks != "off"


def is_strict() -> bool:
    """Whether traps raise errors, and checks that cost time are made."""
    return current().checks == "strict"


def report(check: str, message: str, *, instead: str, location: Location | None = None) -> None:
    """Warns of a trap once for each line of the user, or raises in strict mode.

    Args:
      check: the name of the check, as "recompiles".
      message: what happened, in the user's terms.
      instead: what to write instead.
      location: the user's line; by default the innermost one, also if that calls an installed package.

    Raises:
      CheckError: in strict mode.
    """
    mode = current().checks
    if mode == "off":
        return
    if location is None and (location := user_location(2)) is not None:
        # A trap in an installed package is reported at the user's line which called it.
        location = with_caller(location).caller or location
    if mode == "strict":
        raise CheckError(message, where=location, instead=instead, check=check)
    key = (check, location.file, location.line) if location else (check, message, 0)
    # By identity: `warnings.filters` is a new list inside of each `catch_warnings`.
    if _reported.get(key) is warnings.filters:
        return
    _reported[key] = warnings.filters
    place = f" (at {location})" if location else ""
    warn(f"{check}: {message}{place}; instead: {instead}", CheckWarning)
