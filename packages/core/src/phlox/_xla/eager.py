"""Running single operations at once: the same lowering as everywhere, compiled once for each kind of argument.

A program of one equation is built for the types, places and parameters met, and kept in the primitive's own
`cache`. Python and NumPy numbers become device arrays first; small numbers come from a bounded store of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import config
from .._base.errors import UnexpectedTracerError
from .._ir.avals import shaped, typeof_value
from .._ir.jaxpr import Jaxpr, JaxprEqn, Var
from .._ir.primitive import Primitive, execute_with
from .._trace.trace import Tracer, check_live, not_an_array
from .array import Array, put
from .placement import aval_of
from .program import Program, build, explain_failure
from .compile import JaxRuntimeError
from .array import wrap

_CACHE_LIMIT = 4096


def execute(primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """The result of one operation on concrete arguments."""
    if primitive.eager is not None:
        return primitive.eager(*args, **params)
    arrays = [x if type(x) is Array else as_array(x) for x in args]
    key = (*[x._key for x in arrays], *params.items(), config.current().default_device)
    try:
        program = primitive.cache[key]
    except KeyError:
        program = _prepare(primitive, arrays, params, key)
    if program.arrange or not program.single:
        outs = program.run(arrays)
        return outs if primitive.multiple_results else outs[0]
    try:
        buf = program.execute([x._buf for x in arrays]).consume_with_handlers(program.handlers)[0]
    except (JaxRuntimeError, ValueError, RuntimeError):
        explain_failure(arrays)
        raise
    out = wrap(buf, program.out_avals[0], program.out_keys[0])
    return [out] if primitive.multiple_results else out


def _prepare(primitive: Primitive, arrays: list[Array], params: dict[str, Any], key: Any) -> Program:
    invars = [Var(x.aval) for x in arrays]
    avals = primitive.rule("types")(*[v.aval for v in invars], **params)
    outvars = [Var(a) for a in avals] if primitive.multiple_results else [Var(avals)]
    jaxpr = Jaxpr([], invars, outvars, [JaxprEqn(list(invars), outvars, primitive, params)])
    program = build(jaxpr, primitive.name, [x._key for x in arrays])
    if len(primitive.cache) >= _CACHE_LIMIT:
        primitive.cache.clear()
    primitive.cache[key] = program
    return program


execute_with(execute)


# --- numbers as device arrays ---------------------------------------------------------------------------

_SCALAR_LIMIT = 512
_scalars: dict[Any, Array] = {}


def as_array(x: Any) -> Array:
    """A concrete array of what `x` is: an array, a NumPy array, or a number."""
    kind = type(x)
    if kind is Array:
        return x
    if kind in (float, int, bool, complex):
        return scalar(x)
    if isinstance(x, Tracer):
        check_live(x)
        raise UnexpectedTracerError(
            f"a traced value of type {x.aval.short} reached an operation outside of its transformation",
            instead="return the value from the transformed function",
            aval=x.aval,
        )
    aval = typeof_value(x)
    if aval is None:
        raise not_an_array(x, "an operand")
    return put(np.asarray(x, aval.dtype), aval)


def scalar(x: Any) -> Array:
    """A Python number as a weakly typed device array, out of a bounded store."""
    settings = config.current()
    # 0.0 and -0.0 are equal as keys and must not be confused.
    key = (x, type(x), settings.enable_x64, settings.default_device, str(x) if x == 0 else None)
    found = _scalars.get(key)
    if found is None:
        aval = typeof_value(x)
        found = put(np.asarray(x, aval.dtype), shaped((), aval.dtype, aval.weak_type))  # type: ignore[union-attr]
        if len(_scalars) >= _SCALAR_LIMIT:
            _scalars.clear()
        _scalars[key] = found
    return found


__all__ = ["aval_of", "as_array", "execute", "scalar"]
