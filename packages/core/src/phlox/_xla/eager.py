"""Running single operations at once: the same lowering as everywhere, compiled once for each kind of argument.

A program of one equation is built for the types, places and parameters met, and kept in the primitive's own
`cache`. Python and NumPy numbers become device arrays first.
"""

from __future__ import annotations

from typing import Any

from .._base import config
from .._ir.jaxpr import Jaxpr, JaxprEqn, Var
from .._ir.primitive import Primitive, execute_with
from .array import Array, ArrayImpl, wrap
from .compile import JaxRuntimeError
from .host_values import operand
from .program import Program, explain_failure, lower

_CACHE_LIMIT = 4096


def execute(primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any], compiled: bool = False) -> Any:
    """The result of one operation on concrete arguments, by its rule `eager` or `compiled`."""
    if primitive.eager is not None and not compiled:
        return primitive.eager(*args, **params)
    arrays = [x if type(x) is ArrayImpl else operand(x) for x in args]
    key = (*[x._key for x in arrays], *params.items(), config.current().executed)
    try:
        program = primitive.cache[key]
    except KeyError:
        program = _prepare(primitive, arrays, params, key)
    if program.arrange or not program.single:
        outs = program.run(arrays)
        return outs if primitive.multiple_results else outs[0]
    run = program.execute  # read first: as a method Python would look it up, in caches that jaxlib left cold
    try:
        buf = run([x._buf for x in arrays]).consume_with_handlers(program.handlers)[0]
    except (JaxRuntimeError, ValueError, RuntimeError):
        explain_failure(arrays)
        raise
    out = wrap(buf, program.out_avals[0], program.out_keys[0])
    return [out] if primitive.multiple_results else out


def _prepare(primitive: Primitive, arrays: list[Array], params: dict[str, Any], key: Any) -> Program:
    invars = [Var(x.aval) for x in arrays]
    if primitive.lower is None:
        primitive.rule("eager")  # which raises, as there is none
    avals = primitive.find_types(tuple(v.aval for v in invars), params)
    outvars = [Var(a) for a in avals] if primitive.multiple_results else [Var(avals)]
    jaxpr = Jaxpr([], invars, outvars, [JaxprEqn(list(invars), outvars, primitive, params)])
    program = lower(jaxpr, primitive.name, [x._key for x in arrays]).compile()
    if len(primitive.cache) >= _CACHE_LIMIT:
        primitive.cache.clear()
    primitive.cache[key] = program
    return program


execute_with(execute)
