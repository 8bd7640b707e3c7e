"""Logs of the backward rules that `defvjp_with_logs` sets: dicts of trees of arrays, gathered in one backward pass."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from ..._base.errors import OptionError, TreeError, UnsupportedError
from ..._base.wrapping import wraps
from ..._ir.jaxpr import Jaxpr, JaxprEqn, jaxprs_in
from ..._ir.primitive import current_trace
from ..._ops.control.call import jit_p
from ..._ops.control.custom_rules import Rule
from ..._trace.interpret import eval_jaxpr
from ..._trace.staging import stage
from ..jit.arguments import as_arrays, fun_name

_INSTEAD = "a call of the function outside of vmap, checkpoint, loops and branches"


class Logs:
    """The logs of one backward pass."""

    def __init__(self) -> None:
        self.entries: dict[str, Any] = {}
        self._trace = current_trace.get()

    def add(self, rule: str, entries: dict[str, Any]) -> None:
        """Adds what a rule returned."""
        for key in entries:
            if key in self.entries:
                raise OptionError(
                    f"the backward rule {rule} logs {key!r} a second time in one backward pass",
                    instead="a key of its own for each call, such as one with the name of the layer",
                )
        # Values of an inner trace end with it.
        if current_trace.get() is not self._trace:
            raise UnsupportedError(f"with_logs: the backward rule {rule} runs inside of vmap", instead=_INSTEAD)
        self.entries.update(as_arrays(entries))


_current: ContextVar[Logs | None] = ContextVar("phlox_backward_logs", default=None)


@contextlib.contextmanager
def gather_logs() -> Iterator[Logs]:
    """A context in which backward rules add their logs to the result."""
    logs = Logs()
    token = _current.set(logs)
    try:
        yield logs
    finally:
        _current.reset(token)


def returns_logs(bwd: Callable[..., Any]) -> Callable[..., Any]:
    """The rule without the logs that `bwd` returns beside the cotangents; they are added to those of the pass."""

    @wraps(bwd)
    def rule(*args: Any) -> Any:
        result = bwd(*args)
        if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[1], dict | None):
            raise TreeError(
                f"the backward rule {fun_name(bwd)} must return a pair (cotangents, logs); logs is a dict or None",
                instead="return cotangents, None",
                path=(),
                expected="a pair (cotangents, logs)",
                got=type(result).__name__,
            )
        cotangents, entries = result
        if entries and (logs := _current.get()) is not None:
            logs.add(fun_name(bwd), entries)
        return cotangents

    rule.returns_logs = True  # type: ignore[attr-defined]
    return rule


def inline_calls_with_logs(jaxpr: Jaxpr) -> Jaxpr:
    """The program with the equations of the jitted functions whose rules have logs, instead of calls of them.

    Raises if such a rule is inside of another program, such as a loop: its logs cannot leave that.
    """
    if not any(map(_has_logs, _programs_in(jaxpr))):
        return jaxpr
    inputs, count = [*jaxpr.constvars, *jaxpr.invars], len(jaxpr.constvars)

    def run(eqn: JaxprEqn, values: list[Any]) -> Any:
        inner = jaxprs_in(eqn.params)
        if not any(map(_has_logs, inner)):
            return eqn.primitive.bind(*values, **eqn.params)
        if eqn.primitive is not jit_p:
            raise UnsupportedError(
                f"with_logs: a backward rule with logs runs inside of {eqn.primitive.name}", instead=_INSTEAD
            )
        closed = eqn.params["jaxpr"]
        return eval_jaxpr(closed.jaxpr, closed.consts, *values, run=run)

    flat = stage(
        lambda *xs: eval_jaxpr(jaxpr, xs[:count], *xs[count:], run=run), [v.aval for v in inputs], name=jaxpr.name
    )[0]
    return flat.replace(constvars=flat.invars[:count], invars=flat.invars[count:])


def _programs_in(jaxpr: Jaxpr) -> list[Jaxpr]:
    """The programs in the equations of `jaxpr`."""
    return [inner for eqn in jaxpr.eqns for inner in jaxprs_in(eqn.params)]


def _has_logs(jaxpr: Jaxpr) -> bool:
    """Whether a backward rule in the program, at any depth, has logs."""
    rules = (eqn.params.get("bwd") for eqn in jaxpr.eqns)
    return any(isinstance(rule, Rule) and rule.has_logs for rule in rules) or any(map(_has_logs, _programs_in(jaxpr)))
