"""Checks runs of programs, for the flags `debug_nans`, `debug_infs`, `debug_key_reuse`, `no_execution` and the
transfer guard.

A program that is compiled under such a flag has a `RunChecks`; all others have none and cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .._base import config
from .._base.errors import RefusedError
from .._ir.jaxpr import Jaxpr

_GUARD = "transfer_guard_host_to_device"


class RunChecks(NamedTuple):
    """The checks on runs of one program.

    Attributes:
      jaxpr, name: the program.
      invalid_values: values that are reported, "nan" and "inf".
      refuse: whether runs are forbidden.
      keys: the `Observer` of PRNG keys, or None.
    """

    jaxpr: Jaxpr
    name: str
    invalid_values: tuple[str, ...]
    refuse: bool
    keys: Any

    def before(self, arguments: Sequence[Any]) -> None:
        """Called before each run."""
        if self.refuse:
            raise RefusedError(f"{self.name} was to be run, but the flag no_execution is set", name=self.name)
        if self.keys is not None:
            self.keys.before(arguments)

    def after(self, arguments: Sequence[Any], results: Sequence[Any]) -> None:
        """Called with the results of each run; raises `InvalidValueError` when one is bad."""
        if self.keys is not None:
            self.keys.after(arguments, results)
        if self.invalid_values:
            from .invalid_values import check  # imported for these flags alone

            check(self.invalid_values, self.jaxpr, self.name, arguments, results)


def required_checks(jaxpr: Jaxpr, name: str, keys: Any = None) -> RunChecks | None:
    """The `RunChecks` that the current settings require for runs of `jaxpr`, or None.

    `keys` is the `Observer` of PRNG keys, see `key_records`, or None.
    """
    settings = config.current()
    flags = ("nan", settings.debug_nans), ("inf", settings.debug_infs)
    invalid_values = tuple(value for value, is_checked in flags if is_checked)
    if invalid_values or settings.no_execution or keys is not None or getattr(settings, _GUARD) not in (None, "allow"):
        return RunChecks(jaxpr, name, invalid_values, settings.no_execution, keys)
    return None


def may_rerun() -> bool:
    """Whether programs may be evaluated again with the same arguments, which must therefore not be donated."""
    settings = config.current()
    # Not for `no_execution` and key checks: they look before a run, and need no second evaluation.
    return settings.debug_nans or settings.debug_infs
