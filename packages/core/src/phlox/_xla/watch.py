"""Checks runs of programs, for the flags `debug_nans`, `debug_infs`, `debug_key_reuse`, `no_execution` and the
transfer guard.

A program that is compiled under such a flag has a `Watch`; all others have none and cost nothing. If a result contains
a nan (or an infinity), the Jaxpr is evaluated again equation by equation, including inner Jaxprs. The first equation
with a bad result is reported to the user.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._base import config, source
from .._base.errors import InvalidValueError, RefusedError
from .._ir import dtypes
from .._ir.dtypes import ExtendedDtype
from .._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, hoisted
from .._ir.primitive import primitive
from .._trace.interpret import eval_jaxpr
from .._trace.trace import typeof

_GUARD = "transfer_guard_host_to_device"
_TESTS: dict[str, Callable[[np.ndarray], Any]] = {"nan": np.isnan, "inf": np.isinf}


class Watch(NamedTuple):
    """The checks on runs of one program: `looks` is what to look for ("nan", "inf"); `refuse`: runs are forbidden;
    `keys`: the `Uses` of PRNG keys, or None."""

    jaxpr: Jaxpr
    name: str
    looks: tuple[str, ...]
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
        for look in self.looks:
            if _any_bad(look, results):
                raise _explain(look, self, arguments)


def watch(jaxpr: Jaxpr, name: str) -> Watch | None:
    """The `Watch` that the current settings require for runs of `jaxpr`, or None.

    Raises `KeyReuseError` if `jaxpr` uses a PRNG key twice and the flag `debug_key_reuse` is set.
    """
    settings = config.current()
    looks = tuple(look for look, on in (("nan", settings.debug_nans), ("inf", settings.debug_infs)) if on)
    keys = None
    if settings.debug_key_reuse:
        from .._trace.key_reuse import uses_by  # imported for this flag alone

        keys = uses_by(jaxpr, name)
    if looks or settings.no_execution or keys is not None or getattr(settings, _GUARD) not in (None, "allow"):
        return Watch(jaxpr, name, looks, settings.no_execution, keys)
    return None


def watched() -> bool:
    """Whether programs may be evaluated again with the same arguments, which must therefore not be donated."""
    settings = config.current()
    return settings.debug_nans or settings.debug_infs


def _any_bad(look: str, values: Sequence[Any]) -> bool:
    return any(_bad(look, x) for x in values)


def _bad(look: str, x: Any) -> bool:
    dtype = typeof(x).dtype
    if isinstance(dtype, ExtendedDtype) or not dtypes.is_inexact(dtype):
        return False
    if getattr(x, "is_fully_addressable", True):
        return bool(_TESTS[look](np.asarray(x)).any())
    return any(_bad(look, shard.data) for shard in x.addressable_shards)


class _InvalidEquation(Exception):
    """Carries the first equation with a bad result, and the names of the Jaxprs that contain it."""

    def __init__(self, eqn: JaxprEqn, path: tuple[str, ...]):
        super().__init__(eqn, path)
        self.eqn = eqn
        self.path = path


def _explain(look: str, watching: Watch, arguments: Sequence[Any]) -> InvalidValueError:
    name = watching.name
    try:
        with config.scope(debug_nans=False, debug_infs=False):
            _search(look, watching.jaxpr, [], arguments, ())
    except _InvalidEquation as error:
        eqn, path = error.eqn, error.path
        inside = "".join(f", in {part}" for part in reversed((name, *path)) if part != eqn.primitive.name)
        return InvalidValueError(
            f"invalid value ({look}) encountered in {eqn.primitive.name}: {eqn}{inside}",
            where=eqn.source_info or source.user_location(),
            value=look,
            primitive=eqn.primitive.name,
            equation=str(eqn),
            path=path,
        )
    return InvalidValueError(
        f"invalid value ({look}) encountered in a result of {name}; none of its operations gives one by itself",
        value=look,
        primitive=None,
        equation=None,
        path=None,
    )


def _search(look: str, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], path: tuple[str, ...]) -> list[Any]:
    """Evaluates a Jaxpr one equation after the other; raises `_InvalidEquation` at the first bad result."""

    def run(eqn: JaxprEqn, values: list[Any]) -> Any:
        out = eqn.primitive.bind(*values, **eqn.params)
        if _any_bad(look, out if eqn.primitive.multiple_results else [out]):
            if eqn.primitive.steps is not None:
                _search_steps(look, eqn, values, path)
            raise _InvalidEquation(eqn, path)
        return out

    return eval_jaxpr(jaxpr, consts, *args, run=run)


def _search_steps(look: str, eqn: JaxprEqn, values: list[Any], path: tuple[str, ...]) -> None:
    """Evaluates the Jaxprs that an equation runs, in its order, and searches those that have a bad result."""
    steps = eqn.primitive.steps(*values, **eqn.params)
    outs: list[Any] | None = None
    try:
        while True:
            closed, args, note = steps.send(outs)
            outs = _run(closed, args)
            if _any_bad(look, outs):
                _search(look, closed.jaxpr, closed.consts, args, (*path, note))
    except StopIteration:
        return


def _run(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    name = closed.jaxpr.name or "step"
    return primitive("jit").bind(*closed.consts, *args, jaxpr=hoisted(closed), name=name, inline=False)
