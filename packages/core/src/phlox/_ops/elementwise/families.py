"""Constructors of elementwise primitives.

`unary` and `binary` make the rules for types, lowering, jvp, transpose and batching, so that most operations are one
statement. Operands have equal shapes, or length one along an axis, or are scalars; `phlox.numpy` broadcasts everything
else explicitly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._base.errors import DtypeError, ShapeError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.primitive import Primitive, Series, Unfused, primitive
from ..._trace.staging import stage
from ..._trace.trace import not_an_array, typeof
from ..._transform import spectra
from ..._transform.array_operations import Zero, add, move_axis, sum_axes, weak_number
from ..._transform.batch import BatchAxis, Dim
from ..._transform.padding import pad_elementwise
from ..._transform.sharding_types import with_unreduced
from ..._transform.transpose import is_linear
from ..._xla.lower import lower_jaxpr
from ..._xla.text import Function, Value
from ..structure.numbers import keep_dtype
from .nan_operands import with_nan
from .symmetry import Symmetry, reflected

# Kinds of dtypes, one letter each: see dtypes.kind.
FLOAT = "f"
COMPLEX = "c"
INEXACT = "fc"
INTEGER = "iu"
SIGNED_NUMBER = "ifc"
REAL = "iuf"
NUMBER = "iufc"
BITS = "biu"
ORDERED = "biuf"
ANY = "biufc"

_KIND_NAMES = {"b": "bool", "i": "signed integers", "u": "unsigned integers", "f": "floats", "c": "complex numbers"}


def literal(like: Any, value: Any, weak: bool = True) -> Any:
    """`value` with the dtype of `like`: a NumPy scalar, or a weakly typed number if `like` is a weakly typed scalar.

    Without `weak` it is a NumPy scalar. Derivatives in which JAX has such constants are not weakly typed.
    """
    aval = typeof(like)
    if isinstance(aval.dtype, dtypes.ExtendedDtype):
        raise DtypeError(f"an operation on numbers got {aval.short}", aval=aval)
    if aval.dtype == dtypes.float0:
        raise DtypeError(f"{dtypes.NO_FLOAT0}: got {aval.short}", instead=dtypes.INSTEAD_OF_FLOAT0, aval=aval)
    number = np.asarray(value, aval.dtype)[()]
    number = weak_number(number) if weak and aval.weak_type and not aval.shape else keep_dtype(number)
    # Zero is unreduced where `like` is, so that the two can be added, or selected from.
    return number if aval.spec is None or number != 0 else with_unreduced(number, aval)


def check_kind(name: str, aval: ShapedArray, accepts: str, position: int | None = None) -> None:
    """Raises `DtypeError` unless the kind of the operand's dtype is among `accepts`."""
    if dtypes.kind(aval.dtype) not in accepts:
        if aval.dtype == dtypes.float0:
            what = f"{dtypes.NO_FLOAT0}: {name} got {aval.short}"
            raise DtypeError(what, instead=dtypes.INSTEAD_OF_FLOAT0, primitive=name, aval=aval)
        which = "" if position is None else f" at position {position}"
        raise DtypeError(
            f"{name} does not accept dtype {aval.dtype.name}{which}, got {aval.short}: it takes "
            + ", ".join(_KIND_NAMES[letter] for letter in accepts if letter in _KIND_NAMES),
            instead=dtypes.INSTEAD_OF_KEYS if dtypes.is_extended(aval.dtype) else "x.astype(...) first",
            primitive=name,
            aval=aval,
        )


def broadcast_shape(name: str, avals: Sequence[ShapedArray]) -> tuple[int, ...]:
    """The common shape of elementwise operands. Raises `ShapeError` when there is none."""
    first = avals[0].shape
    if all(a.shape == first for a in avals):
        return first
    shapes = [a.shape for a in avals if a.shape]
    if len({len(s) for s in shapes}) == 1:
        result = tuple(next((n for n in sizes if n != 1), 1) for sizes in zip(*shapes, strict=True))
        if all(size in (1, whole) for s in shapes for size, whole in zip(s, result, strict=True)):
            return result
    raise ShapeError(
        f"{name} got incompatible shapes for broadcasting: {', '.join(str(a.shape) for a in avals)}.",
        instead="reshape, or add axes with x[:, None], so that lengths agree or are 1",
        shapes=[a.shape for a in avals],
    )


def same_dtype(name: str, avals: Sequence[ShapedArray]) -> Any:
    """The dtype that all operands have. Raises `DtypeError` when their dtypes differ."""
    first = avals[0].dtype
    for aval in avals[1:]:
        if aval.dtype != first:
            raise DtypeError(
                f"{name} requires arguments to have the same dtypes, got {', '.join(a.short for a in avals)}",
                instead="x.astype(...), or a function of phlox.numpy, which promotes",
                avals=list(avals),
            )
    return first


def fit(f: Function, x: Value, shape: tuple[int, ...]) -> Value:
    """Writes the broadcast of `x` to `shape`; `x` is a scalar or has axes of length one where `shape` is longer."""
    if x.aval.shape == shape:
        return x
    return f.broadcast(x, shape, range(len(shape)) if x.aval.ndim else ())


def unbroadcast(cotangent: Any, aval: ShapedArray) -> Any:
    """The cotangent of an operand of type `aval` that was broadcast: summed over the broadcast axes."""
    shape = typeof(cotangent).shape
    if shape == aval.shape:
        return cotangent
    if not aval.shape:
        return sum_axes(cotangent, tuple(range(len(shape))))
    axes = tuple(i for i, (have, want) in enumerate(zip(shape, aval.shape, strict=True)) if have != want)
    return primitive("reshape").bind(sum_axes(cotangent, axes), new_sizes=aval.shape, dimensions=None)


def batch_elementwise(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim]) -> tuple[list[Any], int]:
    """The operands with their mapped axes at one position, and that position."""
    ranks = [typeof(x).ndim - (d is not None) for x, d in zip(args, dims, strict=True)]
    rank = max(ranks)
    # Nothing moves if the mapped axes have one position and all other operands are scalars: elementwise primitives
    # broadcast scalars by themselves.
    positions = {d for d in dims if d is not None}
    in_place = all((r == rank) if d is not None else (r == 0) for r, d in zip(ranks, dims, strict=True))
    if len(positions) == 1 and in_place:
        return list(args), next(iter(positions))
    operands = []
    for x, d, r in zip(args, dims, ranks, strict=True):
        # An operand that is not mapped gets an axis of length one, which the primitive broadcasts. No copies are made.
        if d is None:
            wide = {"shape": (1, *typeof(x).shape), "broadcast_dimensions": tuple(range(1, r + 1))}
            operands.append(primitive("broadcast_in_dim").bind(x, **wide) if r else x)
            continue
        x = move_axis(x, d, 0)
        if r < rank:  # each example has a scalar here and an array in another operand
            x = primitive("reshape").bind(x, new_sizes=(axis.size, *(1,) * rank), dimensions=None)
        operands.append(x)
    return operands, 0


def elementwise_batch(get_primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """The batching rule of an elementwise primitive, which `get_primitive` returns as it is defined after its rule."""

    def batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], **params: Any) -> tuple[Any, Dim]:
        operands, dim = batch_elementwise(axis, args, dims)
        return get_primitive().bind(*operands, **params), dim

    return batch


Lower = str | Callable[..., Value]
#: the derivative of piecewise constant functions
ZERO: Any = "zero"
#: the derivative of functions that are linear in their operand
LINEAR: Any = "linear"


def _lowering_rule(lower: Lower) -> Callable[..., Value]:
    """The lowering rule: `lower` itself, or the rule that writes the operation of this name."""
    if callable(lower):
        return lower
    if lower.startswith("chlo."):  # `f.same` and `f.unlike` write the short form, which CHLO does not have
        return lambda f, *operands: f.op(lower, operands, f.out)

    def short(f: Function, x: Value, *more: Value) -> Value:
        out = f.outs[0]
        return f.same(lower, x, *more) if x.aval.text == out.text else f.unlike(lower, x, out)

    return short


def unary(
    name: str,
    lower: Lower,
    *,
    accepts: str,
    derivative: Any = None,
    tangent: Callable[..., Any] | None = None,
    result: Callable[[Any], Any] | None = None,
    transpose: Callable[..., Any] | None = None,
    show: Callable[..., Any] | None = None,
    eager: Callable[..., Any] | None = None,
    keys: Callable[..., Any] | None = None,
    pad: Callable[..., Any] = pad_elementwise,
    nan_checked: bool | None = None,
    light: bool = False,
    costly: bool = False,
    unfused: Unfused | None = None,
    operation: str | None = None,
    undefined_at_nan: bool = False,
    symmetry: Symmetry | None = None,
    memory_in_types: bool = False,
) -> Primitive:
    """An elementwise function of one operand, as a primitive with its rules.

    Args:
      name: of the primitive.
      lower: the StableHLO operation by name, or a function ``(f, x, **params)`` that writes it; see `lowered_as`.
      accepts: kinds of dtypes that it takes, one letter each: `FLOAT`, `NUMBER`, `ANY` ...
      derivative: ``derivative(x, out)``, the factor of the tangent; `LINEAR` applies the primitive to the
        tangent (give `transpose` too), `ZERO` gives none. None without `tangent`: it cannot be differentiated.
      tangent: ``tangent(t, x, out)``, the tangent of the result, linear in `t`; for derivatives that are better not
        written as a product with `t`.
      result: ``result(dtype)``, the dtype of the result; None for that of the operand.
      transpose: ``transpose(ct, x)``, the cotangent of the operand; None where the primitive is not linear.
      show: ``show(eqn, printer)``, the parameters that a printed program shows; None for all.
      eager: the function that computes the result when no trace is current; None for the compiled operation.
      keys: how it uses PRNG keys, see `Rules.keys`; None where it takes none.
      pad: the rule for padded axes.
      nan_checked: whether `checkify` looks for nan in the result; None: where it takes floats.
      light, costly, unfused, operation, memory_in_types: see `Primitive`; a `lower` that is a name is the operation.
      undefined_at_nan: whether XLA's formula is undefined where the compiler knows the operand to be nan, see
        `constant_nan`.
      symmetry: how results for complex numbers are reflected from those of one half or quadrant of the plane.

    Returns:
      A `Primitive`, whose `bind` applies it.

    >>> cube = unary(
    ...     "documentation_cube", lowered_as(lambda x: x * x * x), accepts=FLOAT, derivative=lambda x, out: 3 * x * x
    ... )
    >>> float(phlox.grad(cube.bind)(2.0))
    12.0
    """

    def types(x: ShapedArray, **params: Any) -> ShapedArray:
        check_kind(name, x, accepts)
        return x if result is None else shaped(x.shape, result(x.dtype), x.weak_type)

    rule = _lowering_rule(lower)
    if symmetry is not None:
        rule = reflected(rule, symmetry)
    follow: spectra.Rule = spectra.elementwise
    if derivative is LINEAR:
        follow = spectra.conjugate if accepts == COMPLEX else spectra.linear
    prim = Primitive(
        name,
        types=types,
        lower=with_nan(rule) if undefined_at_nan else rule,
        jvp=None if derivative is None and tangent is None else _unary_jvp(lambda: prim, derivative, tangent),
        spectral=lambda *args, **params: follow(prim, *args, **params),
        transpose=transpose and (lambda ct, x, **params: [transpose(ct, x, **params)]),
        batch=lambda axis, args, dims, **params: (prim.bind(*args, **params), dims[0]),
        pad=pad,
        show=show,
        eager=eager,
        keys=keys,
        nan_checked=not set(INEXACT).isdisjoint(accepts) if nan_checked is None else nan_checked,
        light=light,
        costly=costly,
        series="linear" if derivative is LINEAR else None,
        unfused=unfused,
        operation=lower if isinstance(lower, str) else operation,
        memory_in_types=memory_in_types,
    )
    return prim


def _unary_jvp(
    primitive_of: Callable[[], Primitive], derivative: Any, tangent: Callable[..., Any] | None
) -> Callable[..., tuple[Any, Any]]:
    """The jvp rule of a `unary` primitive, from its `derivative` or `tangent`."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = primitive_of().bind(x, **params)
        if derivative is ZERO:
            return out, Zero(typeof(out).tangent())
        if derivative is LINEAR:
            return out, primitive_of().bind(t, **params)
        if tangent is not None:
            return out, tangent(t, x, out, **params)
        return out, primitive("mul").bind(t, derivative(x, out, **params))

    return jvp


def binary(
    name: str,
    lower: Lower,
    *,
    accepts: str,
    tangents: Any = None,
    transpose: tuple[Callable[..., Any] | None, Callable[..., Any] | None] | None = None,
    result: Callable[[Any], Any] | None = None,
    dtype_of: Callable[[str, Sequence[ShapedArray]], Any] = same_dtype,
    checked: Callable[..., None] | None = None,
    nan_checked: bool | None = None,
    light: bool = False,
    costly: bool = False,
    series: Series | None = None,
    unfused: Unfused | None = None,
    operation: str | None = None,
) -> Primitive:
    """An elementwise function of two operands, as a primitive with its rules.

    Scalars and operands with axes of length one are broadcast; their cotangents are summed over the broadcast axes.

    Args:
      name: of the primitive.
      lower: the StableHLO operation by name, or a function ``(f, x, y, **params)`` that writes it; see `lowered_as`.
      accepts: kinds of dtypes that it takes, one letter each: `FLOAT`, `NUMBER`, `ANY` ...
      tangents: for each operand a function ``(t, x, y, out)`` that is linear in its tangent `t`, or `ZERO` where the
        result does not depend on it; `ZERO` alone for both. None: it cannot be differentiated.
      transpose: for each operand a function ``(ct, x, y)`` that gives its cotangent, or None where the operation is not
        linear in it.
      result: ``result(dtype)``, the dtype of the result; None for that of the operands.
      dtype_of: ``dtype_of(name, avals)``, the common dtype of the operands; by default their dtypes must be equal.
      checked: ``checked(checks, x, y)`` states the conditions on the operands that `checkify` checks, such as a
        divisor that is not zero; None for none.
      nan_checked: whether `checkify` looks for nan in the result; None: where it takes floats.
      light, costly, series, unfused, operation: see `Primitive`; a `lower` that is a name is the operation.

    Returns:
      A `Primitive`, whose `bind` applies it.

    >>> norm = binary(
    ...     "documentation_norm",
    ...     lowered_as(lambda x, y: jnp.sqrt(x * x + y * y)),
    ...     accepts=FLOAT,
    ...     tangents=(lambda t, x, y, out: t * x / out, lambda t, x, y, out: t * y / out),
    ... )
    >>> [float(x) for x in phlox.grad(norm.bind, (0, 1))(3.0, 4.0)]
    [0.6000000238418579, 0.800000011920929]
    """

    def types(x: ShapedArray, y: ShapedArray, **params: Any) -> ShapedArray:
        check_kind(name, x, accepts, 0)
        dtype = dtype_of(name, (x, y))
        # Types are interned. The same object for both operands means one shape and one dtype.
        if x is y and result is None:
            return x
        shape = broadcast_shape(name, (x, y))
        if result is not None:
            dtype = result(dtype)
        return shaped(shape, dtype, x.weak_type and y.weak_type)

    rule = _lowering_rule(lower)

    def write(f: Function, x: Value, y: Value, **params: Any) -> Value:
        # Elementwise operations of StableHLO do not broadcast: all operands have the shape of the result.
        shape = f.outs[0].shape
        if x.aval.shape != shape:
            x = fit(f, x, shape)
        if y.aval.shape != shape:
            y = fit(f, y, shape)
        return rule(f, x, y, **params)

    rules = {"linear": spectra.linear, "bilinear": spectra.multiply, "quotient": spectra.divide}
    follow = spectra.elementwise if series is None else rules[series]
    prim = Primitive(
        name,
        types=types,
        lower=write,
        jvp=None if tangents is None else _binary_jvp(lambda: prim, tangents, series),
        spectral=lambda *args, **params: follow(prim, *args, **params),
        transpose=None if transpose is None else _binary_transpose(transpose),
        batch=elementwise_batch(lambda: prim),
        pad=pad_elementwise,
        checked=checked,
        nan_checked=not set(INEXACT).isdisjoint(accepts) if nan_checked is None else nan_checked,
        light=light,
        costly=costly,
        series=series,
        unfused=unfused,
        operation=lower if isinstance(lower, str) else operation,
    )
    return prim


def _binary_jvp(
    primitive_of: Callable[[], Primitive], rules: Any, series: Series | None
) -> Callable[..., tuple[Any, Any]]:
    """The jvp rule of a `binary` primitive, from the `tangents` of its operands."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        x, y = primals
        out = primitive_of().bind(x, y, **params)
        aval = typeof(out)
        total: Any = Zero(aval.tangent())
        if series == "linear" and not any(type(t) is Zero for t in tangents):
            # One operation, as in JAX: a broadcast operand's cotangent is then rounded as in JAX.
            total = primitive_of().bind(*tangents, **params)
        elif rules is not ZERO:
            for t, rule in zip(tangents, rules, strict=True):
                if type(t) is not Zero and rule is not ZERO:
                    # A rule may return `t` itself, which has the shape of its operand. The tangent has that of the
                    # result.
                    total = add(total, repeat_to(rule(t, x, y, out), aval.shape))
        return out, total

    return jvp


def _binary_transpose(rules: tuple[Callable[..., Any] | None, Callable[..., Any] | None]) -> Callable[..., list[Any]]:
    """The transpose rule of a `binary` primitive, from the rules of its operands."""

    def transpose(cotangent: Any, x: Any, y: Any, **params: Any) -> list[Any]:
        result: list[Any] = [None, None]
        for i, operand in enumerate((x, y)):
            if is_linear(operand):
                rule = rules[i]
                if rule is None:
                    raise not_an_array(operand)
                result[i] = unbroadcast(rule(cotangent, x, y), operand.aval)
        return result

    return transpose


def lowered_as(fun: Callable[..., Any], many: bool = False) -> Callable[..., Any]:
    """A lowering rule that traces a function of arrays and writes its primitives.

    Args:
      fun: ``fun(*operands, **params)``.
      many: whether `fun` returns a list of results instead of one result.

    Returns:
      A rule for `Primitive`.

    >>> twice = Primitive("documentation_twice", types=lambda x: x, lower=lowered_as(lambda x: x + x))
    >>> float(twice.bind(3.0))
    6.0
    """

    def lower(f: Function, *values: Value, **params: Any) -> Any:
        def flat(*args: Any) -> Sequence[Any]:
            out = fun(*args, **params)
            return out if many else [out]

        results = lower_function(f, flat, [v.aval for v in values], values)
        return results if many else results[0]

    return lower


def lower_function(
    f: Function, fun: Callable[..., Sequence[Any]], avals: Sequence[ShapedArray], values: Sequence[Value]
) -> list[Value]:
    """Writes the primitives of a function of arrays of types `avals`, whose physical types `values` have."""
    jaxpr, consts = stage(fun, avals)
    # A lowering rule cannot add operands to its equation, so constants are written into the text.
    constants = [f.constant(np.asarray(c), typeof(c).physical) for c in consts]
    return lower_jaxpr(f, jaxpr, [*constants, *values])


def repeat_to(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` broadcast to `shape`; `x` is a scalar or has axes of length one where `shape` is longer."""
    have = typeof(x).shape
    if have == shape:
        return x
    dims = tuple(range(len(shape))) if have else ()
    return primitive("broadcast_in_dim").bind(x, shape=shape, broadcast_dimensions=dims)
