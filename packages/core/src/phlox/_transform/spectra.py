"""Derivatives through eigenvectors and eigenvalues of which some are equal.

For A = V W Vᴴ and a direction dA, the derivative dW of the matrix W is the part of Vᴴ dA V between equal eigenvalues.
The vector w of eigenvalues has only its diagonal. So the tangent of w does not suffice for f(A) = V f(W) Vᴴ, computed
as ``(v * f(w)) @ v.T``: the derivative of f(W) has the elements f'(w[i]) dW[i, j] off the diagonal.

A `JVPTracer` that depends on a decomposition has a `Spectrum`: the axes that number eigenvectors, and for axes that
number eigenvalues the slope, its elementwise derivative by the eigenvalue. Operations pass it on by their rules
`spectral`. Where eigenvectors are multiplied by a function of the eigenvalues, the rule adds the missing part to the
tangent. All is linear in dA. An operation without the rule drops the spectrum.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._ir import dtypes
from .._ir.primitive import primitive
from .._trace.trace import typeof
from .array_operations import Zero, add, move_axis


class Decomposition:
    """One eigenvalue or singular value decomposition of a stack of matrices, in one direction of differentiation.

    Attributes:
      mixing: [..., n, n], the derivative of the matrix of values where some are equal; rows and columns of values that
        no other is equal to are zero.
      tangent: [..., n], the tangent of the values, which is the real part of the diagonal of dW.
      has_equal: [..., n] bools, the values that others are equal to.
    """

    __slots__ = ("has_equal", "mixing", "tangent")

    def __init__(self, mixing: Any, tangent: Any, has_equal: Any):
        self.mixing = mixing
        self.tangent = tangent
        self.has_equal = has_equal


class Vectors(NamedTuple):
    """An axis that numbers vectors: the columns of V, or with `are_rows` the rows of Vᴴ."""

    of: Decomposition
    are_rows: bool


class Slope(NamedTuple):
    """An axis that numbers values: the derivative of each element by its value."""

    of: Decomposition
    slope: Any


class Spectrum(NamedTuple):
    """How an array depends on decompositions, by axis."""

    vectors: dict[int, Vectors]
    slopes: dict[int, Slope]


NOTHING = Spectrum({}, {})


class Followed(NamedTuple):
    """A tangent with the spectrum of its primal value, as jvp rules of decompositions and rules `spectral` give it."""

    tangent: Any
    spectrum: Spectrum


def tangent_of(x: Any) -> Any:
    """The tangent that a jvp rule returned, without its spectrum."""
    return x.tangent if type(x) is Followed else x


class Operand(NamedTuple):
    """An operand of a rule `spectral`."""

    primal: Any
    spectrum: Spectrum


Rule = Callable[..., Any]


def _axes(operands: Sequence[Operand]) -> list[int]:
    return sorted({axis for x in operands for kind in x.spectrum for axis in kind})


def _slope(primitive: Any, operands: Sequence[Operand], axis: int, params: dict[str, Any]) -> Slope | None:
    """The slope of an elementwise result, by the jvp rule of the operation."""
    slopes = [x.spectrum.slopes.get(axis) for x in operands]
    origins = {id(s.of): s.of for s in slopes if s is not None}
    # A product of functions of two decompositions is no function of the values of one.
    if len(origins) != 1:
        return None
    tangents = [
        Zero(typeof(x.primal).tangent()) if s is None else s.slope for x, s in zip(operands, slopes, strict=True)
    ]
    # The chain rule: the slopes of the operands are tangents in the direction in which each value grows.
    _, slope = primitive.rule("jvp")([x.primal for x in operands], tangents, **params)
    return None if type(slope) is Zero else Slope(next(iter(origins.values())), slope)


def elementwise(primitive: Any, operands: Sequence[Operand], out: Any, tangent: Any, **params: Any) -> Any:
    """The rule of elementwise functions: results depend on values as their operands do; vectors are lost."""
    slopes = {}
    for axis in _axes(operands):
        if not any(axis in x.spectrum.vectors for x in operands):
            slope = _slope(primitive, operands, axis, params)
            if slope is not None:
                slopes[axis] = slope
    return Followed(tangent, Spectrum({}, slopes))


def linear(primitive: Any, operands: Sequence[Operand], out: Any, tangent: Any, **params: Any) -> Any:
    """The rule of sums, differences, selections and conversions: vectors stay vectors.

    One operand with vectors suffices. The others are zeros, the condition of a selection, or come from operations
    without the rule: a sum of vectors with something else does not occur in results that do not depend on the choice of
    vectors.
    """
    result = elementwise(primitive, operands, out, tangent, **params)
    kind = dtypes.kind(typeof(out).dtype)
    for axis in _axes(operands):
        entries = {x.spectrum.vectors[axis]: x for x in operands if axis in x.spectrum.vectors}
        # Real numbers do not distinguish V and conj(V), as complex ones do.
        if len({(id(of), are_rows and kind == "c") for of, are_rows in entries}) == 1:
            entry, x = next(iter(entries.items()))
            if dtypes.kind(typeof(x.primal).dtype) == kind:
                result.spectrum.vectors[axis] = entry
    return result


def conjugate(primitive: Any, operands: Sequence[Operand], out: Any, tangent: Any) -> Any:
    """The rule of the complex conjugate, and of real and imaginary parts, which are no vectors."""
    result = linear(primitive, operands, out, tangent)
    for axis, (of, are_rows) in result.spectrum.vectors.items():
        # The columns of conj(V) are the rows of Vᴴ.
        result.spectrum.vectors[axis] = Vectors(of, not are_rows)
    return result


def multiply(primitive: Any, operands: Sequence[Operand], out: Any, tangent: Any) -> Any:
    """The rule of products: vectors times a function of the values."""
    result = elementwise(primitive, operands, out, tangent)
    x, y = operands
    for axis in _axes(operands):
        for vectors, factor in ((x, y), (y, x)):
            if axis in vectors.spectrum.vectors and axis not in factor.spectrum.vectors:
                entry = vectors.spectrum.vectors[axis]
                result.spectrum.vectors[axis] = entry
                change = _Change(vectors.primal, factor.spectrum.slopes.get(axis), entry, (axis, axis, axis))
                tangent = add(tangent, change.missing(primitive.bind))
    return Followed(tangent, result.spectrum)


def divide(primitive: Any, operands: Sequence[Operand], out: Any, tangent: Any) -> Any:
    """The rule of quotients: vectors divided by a function of the values."""
    x, y = operands
    result = elementwise(primitive, operands, out, tangent)
    for axis, entry in x.spectrum.vectors.items():
        if axis in y.spectrum.vectors:
            continue
        result.spectrum.vectors[axis] = entry
        change = _Change(x.primal, y.spectrum.slopes.get(axis), entry, (axis, axis, axis))

        def by_divisor(vectors: Any, slope: Any) -> Any:
            """The tangent of ``vectors / y``, linear in both."""
            return primitive.rule("jvp")([vectors, y.primal], [Zero(typeof(vectors).tangent()), slope])[1]

        tangent = add(tangent, change.missing(by_divisor))
    return Followed(tangent, result.spectrum)


class _Change(NamedTuple):
    """Vectors and the slope of a factor, with the axes of the vectors, of the values in it, and of the product."""

    vectors: Any
    slope: Slope | None
    entry: Vectors
    axes: tuple[int, int, int]

    def missing(self, times: Callable[[Any, Any], Any]) -> Any:
        """The part of the tangent of the product that the tangent of the vector `factor` does not have.

        ``times(vectors, t)`` is the tangent of the product for the tangent t of the factor. With vectors X and slopes F
        the part is X (F ∘ dW) - X (F ∘ diag(dW)), where F is taken by rows and by columns of dW: the mean of both is
        differentiated correctly again. The diagonal is not left out of dW beforehand for the same reason.
        """
        own, other, result = self.axes
        vectors, slope, of = self.vectors, self.slope, self.entry.of
        nothing = Zero(typeof(vectors).tangent())
        if slope is None or slope.of is not of:
            return nothing
        t = slope.slope
        if not all(_has_stack(typeof(x).shape, axis, of) for x, axis in ((vectors, own), (t, other))):
            return nothing  # the axes of the stack were moved
        # Where no other value is equal the slope may be infinite.
        t = primitive("select_n").bind(_along(of.has_equal, t, other, of), _filled(t, 0), t)
        by_rows = _mixed(times(vectors, t), result, self.entry)
        by_columns = times(_mixed(vectors, own, self.entry), t)
        mean = primitive("mul").bind(add(by_rows, by_columns), np.asarray(0.5, typeof(by_rows).dtype)[()])
        diagonal = primitive("convert_element_type").bind(of.tangent, new_dtype=typeof(t).dtype, weak_type=False)
        known = times(vectors, primitive("mul").bind(t, _along(diagonal, t, other, of)))
        return primitive("sub").bind(mean, known)


def _filled(x: Any, value: float) -> Any:
    number = np.asarray(value, typeof(x).dtype)[()]
    return primitive("broadcast_in_dim").bind(number, shape=typeof(x).shape, broadcast_dimensions=())


def _along(vector: Any, x: Any, axis: int, of: Decomposition) -> Any:
    """A vector for each matrix of the stack, broadcast to the shape of `x`, whose `axis` it has."""
    stack = range(typeof(of.mixing).ndim - 2)
    return primitive("broadcast_in_dim").bind(vector, shape=typeof(x).shape, broadcast_dimensions=(*stack, axis))


def _has_stack(shape: tuple[int, ...], axis: int, of: Decomposition) -> bool:
    stack = typeof(of.mixing).shape[:-2]
    return axis >= len(stack) and shape[: len(stack)] == stack


def _mixed(x: Any, axis: int, entry: Vectors) -> Any:
    """The vectors along an axis times the mixing matrix."""
    of, are_rows = entry
    aval = typeof(x)
    stack = tuple(range(typeof(of.mixing).ndim - 2))
    # V dW for columns, dW Vᴴ for rows.
    contracted = len(stack) + (1 if are_rows else 0)
    out = primitive("dot_general").bind(
        x,
        of.mixing,
        dimension_numbers=(((axis,), (contracted,)), (stack, stack)),
        precision=None,
        preferred_element_type=aval.dtype,
    )
    return move_axis(out, aval.ndim - 1, axis)


# --- operations that move axes --------------------------------------------------------------------------


def moved(get_primitive: Callable[[], Any], axis_map_of: Callable[..., dict[int, int]]) -> Rule:
    """The rule of a linear operation on one operand.

    Args:
      get_primitive: returns the primitive, which is defined after its rule.
      axis_map_of: ``axis_map_of(aval, **params)`` maps axes of the operand to axes of the result.
    """

    def rule(operands: Sequence[Operand], out: Any, tangent: Any, **params: Any) -> Followed:
        (x,) = operands
        axis_map = axis_map_of(typeof(x.primal), **params)
        vectors = {axis_map[axis]: entry for axis, entry in x.spectrum.vectors.items() if axis in axis_map}
        slopes = {
            axis_map[axis]: Slope(of, get_primitive().bind(slope, **params))
            for axis, (of, slope) in x.spectrum.slopes.items()
            if axis in axis_map
        }
        return Followed(tangent, Spectrum(vectors, slopes))

    return rule


def contract(
    primitive: Any,
    operands: Sequence[Operand],
    out: Any,
    tangent: Any,
    dimension_numbers: Any,
    **params: Any,
) -> Any:
    """The rule of `dot_general`. Free axes keep their vectors.

    A batch axis multiplies as `multiply` does. So does a contraction of vectors with the diagonal matrix of values,
    which the free axis of the product numbers then.
    """
    contracting, batches = dimension_numbers
    count = len(batches[0])
    axis_maps: list[dict[int, int]] = []
    start = count
    for x, summed, batch in zip(operands, contracting, batches, strict=True):
        free = [i for i in range(typeof(x.primal).ndim) if i not in summed and i not in batch]
        axis_maps.append({axis: i for i, axis in enumerate(batch)} | {axis: start + i for i, axis in enumerate(free)})
        start += len(free)

    def times(i: int, vectors: Any, factor: Any) -> Any:
        """The product, where the vectors are operand i."""
        ordered = (vectors, factor) if i == 0 else (factor, vectors)
        return primitive.bind(*ordered, dimension_numbers=dimension_numbers, **params)

    result: dict[int, Vectors] = {}
    for i, (x, factor) in enumerate(((operands[0], operands[1]), (operands[1], operands[0]))):
        paired = dict(zip(batches[i], batches[1 - i], strict=True))
        for axis, entry in x.spectrum.vectors.items():
            if axis in axis_maps[i] and paired.get(axis) not in factor.spectrum.vectors:
                result[axis_maps[i][axis]] = entry
        for own, other, out_axis, diagonal in _pairs(i, x, factor, contracting, batches, axis_maps):
            entry = x.spectrum.vectors[own]
            change = _Change(x.primal, factor.spectrum.slopes[other], entry, (own, other, out_axis))
            tangent = add(tangent, change.missing(functools.partial(times, i)))
            if diagonal:
                result[out_axis] = entry
    return Followed(tangent, Spectrum(result, {}))


def _pairs(
    i: int, x: Operand, factor: Operand, contracting: Any, batches: Any, axis_maps: Sequence[dict[int, int]]
) -> list[tuple[int, int, int, bool]]:
    """(axis of vectors in x, axis of values in factor, axis of the product, whether factor is a diagonal matrix)."""
    pairs = []
    for own, other in zip(batches[i], batches[1 - i], strict=True):
        if own in x.spectrum.vectors and other in factor.spectrum.slopes and other not in factor.spectrum.vectors:
            pairs.append((own, other, axis_maps[i][own], False))
    for own, other in zip(contracting[i], contracting[1 - i], strict=True):
        if own not in x.spectrum.vectors or other in factor.spectrum.vectors:
            continue
        rest = [axis for axis in axis_maps[1 - i] if axis not in batches[1 - i]]
        shape = typeof(factor.primal).shape
        if len(rest) == 1 and shape[rest[0]] == shape[other]:  # a diagonal matrix is square
            axis = other if other in factor.spectrum.slopes else rest[0]
            if axis in factor.spectrum.slopes and rest[0] not in factor.spectrum.vectors:
                pairs.append((own, axis, axis_maps[1 - i][rest[0]], True))
    return pairs
