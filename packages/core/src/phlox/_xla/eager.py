"""Eager execution of single operations: a Jaxpr of one equation is lowered and compiled as any other.

The program is cached in `Primitive.cache`, by the placements of the operands (types and shardings), the parameters and
the settings. Python and NumPy numbers become device arrays first.
"""

from __future__ import annotations

from typing import Any

from .._base import config
from .._base.interning import clear_if_full
from .._ir.jaxpr import Jaxpr, JaxprEqn, Var
from .._ir.primitive import Primitive, execute_with
from .array import Array, ArrayImpl, wrap
from .compile import JaxRuntimeError
from .host_values import operand
from .program import Program, explain_failure, keep, lower


def execute(primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any], compiled: bool = False) -> Any:
    """The result of one operation on concrete operands: by its rule `eager`, or by a compiled program if it has no such
    rule or if `compiled` is True."""
    # Operations that hold programs run these, and some others only pass an array on.
    if primitive.eager is not None and not compiled:
        return primitive.eager(*args, **params)
    arrays = [x if type(x) is ArrayImpl else operand(x) for x in args]
    # The items of `params` are in the order in which `bind` passes them, which is the same for each call of a
    # primitive.
    key = (*[x._placement for x in arrays], *params.items(), config.current().execution_fingerprint)
    # A hit raises nothing, and then `try` costs nothing.
    try:
        program = primitive.cache[key]
    except KeyError:
        program = _prepare(primitive, arrays, params, key)
    if not program.is_direct:
        outs = program.run(arrays)
        return outs if primitive.multiple_results else outs[0]
    # Not called as `program.execute(...)`: a method call does one more attribute lookup, and jaxlib leaves the CPU's
    # caches cold for Python (docs/notes/dispatch.md).
    run = program.execute
    try:
        buf = run([x._buf for x in arrays]).consume_with_handlers(program.handlers)[0]
    except (JaxRuntimeError, ValueError, RuntimeError):
        explain_failure(arrays)
        raise
    out = wrap(buf, program.out_avals[0], program.out_placements[0])
    return [out] if primitive.multiple_results else out


def _prepare(primitive: Primitive, arrays: list[Array], params: dict[str, Any], key: Any) -> Program:
    invars = [Var(x.aval) for x in arrays]
    # Before the types are found, so that the error is about the rule and not about the operands.
    if primitive.lower is None:
        primitive.rule("eager")  # raises MissingRuleError: it has neither rule
    avals = primitive.find_types(tuple(v.aval for v in invars), params)
    outvars = [Var(a) for a in avals] if primitive.multiple_results else [Var(avals)]
    jaxpr = Jaxpr([], invars, outvars, [JaxprEqn(list(invars), outvars, primitive, params)])
    program = lower(jaxpr, primitive.name, [x._placement for x in arrays]).compile_for_calls()
    keep(clear_if_full(primitive.cache), key, program, primitive.name)
    return program


execute_with(execute)
