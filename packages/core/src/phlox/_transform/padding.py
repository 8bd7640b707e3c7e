"""Padding: runs a program of symbolic shapes on arrays of a fixed, larger shape.

A name of a size stands for a length that varies. Its bucket is the length that arrays have: the program is compiled
once for each bucket. The true length is a number that the program computes with.

    f32[n,4]  ->  f32[8,4], of which the first `n` rows are the array, and the others are anything

`Padding.run` evaluates a Jaxpr whose types hold symbolic dimensions. The rule `pad` of a primitive computes the results
of an equation from padded operands such that the first elements along each padded axis are those of the unpadded call:

    pad(padding, eqn, *args)    -> the padded result, or a list of them

A rule may read elements behind the true length only if they do not reach a result: it replaces them with `filled`, by
a selection. A product with zero would keep nan.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from .._base.errors import SizesError
from .._ir import dtypes
from .._ir.avals import ShapedArray, shaped
from .._ir.bounds import bounds
from .._ir.dimensions import Operation, evaluated, is_symbolic, names_in
from .._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, jaxprs_in, memoized
from .._ir.primitive import primitive, tracing
from .._trace.interpret import eval_jaxpr
from .._trace.program_primitive import ProgramPrimitive
from .._trace.trace import typeof
from .jaxprs import restage

#: the largest int32, in which lengths and positions are computed
MAX_ELEMENTS = 2**31 - 1
#: a length whose largest value is found by trying all has at most this many
_MAX_TRIES = 1 << 16
#: The least number of elements of a row, and of bytes of one of them, for which rows are reduced before others
_MIN_ROW, _MIN_BYTES = 16, 4


class Padding:
    """The buckets and the true lengths of the names of sizes.

    Attributes:
      ranges: for each name the least and the largest length; the largest is the bucket.
      lengths: for each name the true length, an int32 scalar.
    """

    def __init__(self, ranges: Mapping[str, tuple[int, int]], lengths: Mapping[str, Any]):
        self.ranges = ranges
        self.lengths = lengths
        self._capacities: dict[Any, int] = {}
        #: values of the programs that are being written, by their traces: polynomials of lengths, and masks
        self._values: dict[Any, Any] = {}
        #: arrays and their filled forms, by their traces and ids
        self._filled: dict[Any, tuple[Any, Any]] = {}

    # -- programs

    def run(self, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        """The padded results of a program for padded `args`."""
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *args, run=self._equation)
        # Rules make arrays of zeros and write into them, which loses weak types.
        return [_with_weak_type(x, v.aval.weak_type) for x, v in zip(outs, closed.jaxpr.outvars, strict=True)]

    def program(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        """The program on padded arrays. Its constants may be values of the current trace."""
        avals = [self.aval(a) for a in closed.in_avals]
        return restage(lambda *args: self.run(closed, args), avals, closed.jaxpr)

    def _equation(self, eqn: JaxprEqn, args: Sequence[Any]) -> Any:
        if not _has_symbols(eqn):
            return eqn.primitive.bind(*args, **eqn.params)
        if eqn.primitive.program is not None:  # the derivative of a program is taken before it is padded
            return self.run(eqn.params[eqn.primitive.program], args)
        if eqn.primitive.pad is None:
            refuse(eqn, "it has no rule for padded axes")
        # An array whose padding was filled is read in this form from then on: two forms of it would be two arrays in
        # memory, where XLA otherwise fills in the pass that computes the array.
        trace = tracing()
        args = [self._filled.get((trace, id(x)), (x, x))[1] for x in args]
        return eqn.primitive.pad(self, eqn, *args)

    # -- lengths

    def capacity(self, dim: Any) -> int:
        """The length of a padded axis whose true length is `dim`."""
        if not is_symbolic(dim):
            return int(dim)
        if dim not in self._capacities:
            self._capacities[dim] = self._largest(dim)
        return self._capacities[dim]

    def _largest(self, dim: Any) -> int:
        names = sorted(names_in(dim))
        # A length such as ``n - floordiv(n, 2)`` need not be largest at the largest n.
        if grows(dim):
            return int(evaluated(dim, {name: self.ranges[name][1] for name in names}))
        low, high = self.ranges[names[0]]
        if len(names) > 1 or high - low > _MAX_TRIES:
            raise SizesError(f"the length {dim} may be larger for smaller values of {', '.join(names)}", dimension=dim)
        return max(int(evaluated(dim, {names[0]: n})) for n in range(low, high + 1))

    def shape(self, shape: Sequence[Any]) -> tuple[int, ...]:
        """The padded shape."""
        return tuple(self.capacity(n) for n in shape)

    def aval(self, aval: ShapedArray) -> ShapedArray:
        """The type of the padded array."""
        return shaped(self.shape(aval.shape), aval.dtype, aval.weak_type) if is_padded(aval) else aval

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        """A value that a program computes once, though many equations read it."""
        key = (tracing(), key)
        if key not in self._values:
            self._values[key] = make()
        return self._values[key]

    def length(self, dim: Any) -> Any:
        """The true length of an axis, an int32 scalar."""
        return self._once(dim, lambda: self._length(dim)) if is_symbolic(dim) else np.int32(dim)

    def _length(self, dim: Any) -> Any:
        total: Any = None
        for term, n in dim.terms.items():
            # Lengths are computed in int32 on the device, where an overflow would go unnoticed.
            if abs(n) * self._most(term, dim) > MAX_ELEMENTS:
                raise SizesError(f"the length {dim} may be larger than an int32", dimension=dim)
            product: Any = np.int32(n)
            for factor, power in term:
                value = self._operation(factor) if isinstance(factor, Operation) else self.lengths[factor]
                for _ in range(power):
                    product = bind("mul", product, value)
            total = product if total is None else bind("add", total, product)
        return total

    def _most(self, term: Any, dim: Any) -> int:
        """The largest absolute value of a product of factors."""
        low, high = bounds(type(dim)({term: 1}, dim.scope)) if term else (1, 1)
        return max(abs(low), abs(high))

    def _operation(self, factor: Operation) -> Any:
        x, y = map(self.length, factor.args)
        if factor.name in ("max", "min"):
            return bind(factor.name, x, y)
        rest = bind("rem", x, y)  # has the sign of x, where Python's has that of y
        rest = bind("rem", bind("add", rest, y), y)
        # x less its remainder divides without rest, so that truncation is no matter.
        return rest if factor.name == "mod" else bind("div", bind("sub", x, rest), y)

    def params(self, eqn: JaxprEqn) -> dict[str, Any]:
        """The parameters of an equation, with padded lengths."""
        return {name: self._parameter(value) for name, value in eqn.params.items()}

    def _parameter(self, value: Any) -> Any:
        if is_symbolic(value):
            return self.capacity(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self._parameter, value))
        return type(value)(map(self._parameter, value)) if type(value) in (tuple, list) else value

    # -- arrays

    def inside(self, aval: ShapedArray, axes: Sequence[int]) -> Any:
        """A mask of the padded shape: whether an element is within the true length of each of `axes`."""
        shape, mask = self.shape(aval.shape), None
        for axis in axes:
            key = (shape, axis, aval.shape[axis])
            here = self._once(key, functools.partial(self._before_end, aval, axis))
            mask = here if mask is None else bind("and", mask, here)
        return mask

    def _before_end(self, aval: ShapedArray, axis: int) -> Any:
        positions = bind("iota", dtype=dtypes.int32, shape=self.shape(aval.shape), dimension=axis)
        return bind("lt", positions, self.length(aval.shape[axis]))

    def filled(self, x: Any, aval: ShapedArray, value: Any, axes: Sequence[int] | None = None) -> Any:
        """`x`, whose true type is `aval`, with `value` behind the true lengths of `axes`; of all, if that is None."""
        among = range(aval.ndim) if axes is None else axes
        axes = [axis for axis in among if is_symbolic(aval.shape[axis])]
        if not axes:
            return x
        scalar = value if hasattr(value, "aval") else np.asarray(value, aval.dtype)[()]
        other = bind("broadcast_in_dim", scalar, shape=self.shape(aval.shape), broadcast_dimensions=())
        filled = bind("select_n", self.inside(aval, axes), other, x)
        self._filled[tracing(), id(x)] = x, filled  # `x` stays alive, so that no other array gets its id
        return filled

    def fit(self, x: Any, aval: ShapedArray) -> Any:
        """`x` with the padded shape of `aval`: cut off, or longer by anything, at the ends of its axes."""
        shape, target = typeof(x).shape, self.shape(aval.shape)
        if shape == target:
            return x
        # A negative width cuts off.
        widths = tuple((0, want - have, 0) for have, want in zip(shape, target, strict=True))
        return bind("pad", x, np.zeros((), aval.dtype)[()], padding_config=widths)

    def from_position(self, x: Any, axis: int, start: Any, most: int, end: Any = 0) -> Any:
        """`x` from the position `start`, an int32 scalar of at most `most`, along `axis`, then `end`."""
        shape = typeof(x).shape
        widths = tuple((0, most if i == axis else 0, 0) for i in range(len(shape)))
        # `dynamic_slice` moves a slice that reaches beyond the end back inside, so the array is made longer first.
        longer = bind("pad", x, np.asarray(end, typeof(x).dtype)[()], padding_config=widths)
        starts = [start if i == axis else np.int32(0) for i in range(len(shape))]
        return bind("dynamic_slice", longer, *starts, slice_sizes=shape)


def bind(name: str, *args: Any, **params: Any) -> Any:
    """Binds the primitive of this name: rules in `_ops` use it too, where an import would make a circle."""
    return primitive(name).bind(*args, **params)


def is_padded(aval: ShapedArray) -> bool:
    """Whether an axis has a symbolic length."""
    return any(map(is_symbolic, aval.shape))


def padded_axes(aval: ShapedArray) -> list[int]:
    """The axes of symbolic length."""
    return [axis for axis, n in enumerate(aval.shape) if is_symbolic(n)]


def grows(dim: Any) -> bool:
    """Whether a length is never smaller for larger values of its names."""
    if not is_symbolic(dim):
        return True
    for term, n in dim.terms.items():
        if term and n < 0:
            return False
        for factor, power in term:
            if isinstance(factor, Operation):
                x, y = factor.args
                if factor.name == "mod" or not grows(x) or not grows(y):
                    return False
                # The quotient falls where the divisor grows, and where it is negative.
                if factor.name == "floordiv" and (is_symbolic(y) or y < 0):
                    return False
                # A product grows with its factors if none is negative. Names are positive, and operations may not be.
                single = len(term) == 1 and power == 1
                if not single and bounds(type(dim)({((factor, 1),): 1}, dim.scope))[0] < 0:
                    return False
    return True


def _with_weak_type(x: Any, weak_type: bool) -> Any:
    aval = typeof(x)
    if aval.weak_type == weak_type:
        return x
    return bind("convert_element_type", x, new_dtype=aval.dtype, weak_type=weak_type)


def _has_symbols(eqn: JaxprEqn) -> bool:
    """Whether an operand, a result or a parameter of an equation has a symbolic length."""
    if any(is_padded(v.aval) for v in (*eqn.invars, *eqn.outvars)):
        return True
    if any(map(_is_symbolic_parameter, eqn.params.values())):
        return True
    return any(map(_program_has_symbols, jaxprs_in(eqn.params)))


def _is_symbolic_parameter(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_is_symbolic_parameter, value))
    return is_symbolic(value)


def _program_has_symbols(jaxpr: Jaxpr) -> bool:
    return memoized(jaxpr, "has symbolic lengths", lambda: any(map(_has_symbols, jaxpr.eqns)))


def refuse(eqn: JaxprEqn, reason: str) -> NoReturn:
    """Raises for an operation whose result cannot be computed from padded operands."""
    types = ", ".join(v.aval.short for v in eqn.invars) or "no operands"
    raise SizesError(
        f"{eqn.primitive.name} of {types} cannot be padded: {reason}",
        where=eqn.source_info,
        primitive=eqn.primitive.name,
    )


# --- rules of many primitives ---------------------------------------------------------------------------


def pad_elementwise(padding: Padding, eqn: JaxprEqn, *args: Any) -> Any:
    """The rule `pad` of operations that compute each element from elements at the same positions."""
    return eqn.primitive.bind(*args, **padding.params(eqn))


def pads_programs(padding: Padding, eqn: JaxprEqn, *args: Any) -> list[Any]:
    """The rule `pad` of operations that hold programs, which are padded."""
    primitive = eqn.primitive
    assert isinstance(primitive, ProgramPrimitive)
    return primitive.rebind(args, eqn.params, [padding.program(body.program) for body in primitive.bodies(eqn.params)])


def fills(start: Callable[[Any], Any]) -> Callable[..., Any]:
    """The rule `pad` of a reduction with the parameter ``axes`` and the neutral element ``start(dtype)``."""

    def pad(padding: Padding, eqn: JaxprEqn, x: Any) -> Any:
        aval, params, axes = eqn.invars[0].aval, padding.params(eqn), eqn.params["axes"]
        whole = [axis for axis in axes if not is_symbolic(aval.shape[axis])]
        if len(whole) == len(axes):
            return eqn.primitive.bind(x, **params)
        # The selection ends XLA's fusion on CPUs, so rows are reduced before it, without rounding to 16 bits between:
        # 0.16 ms in place of 0.29 for the sum of 3072 rows of 256 squares. Short rows take longer alone.
        if math.prod(aval.shape[axis] for axis in whole) >= _MIN_ROW and aval.dtype.itemsize >= _MIN_BYTES:
            x = eqn.primitive.bind(x, **params | {"axes": tuple(whole)})
            rest = [axis for axis in range(aval.ndim) if axis not in whole]
            aval = shaped(tuple(aval.shape[axis] for axis in rest), aval.dtype, aval.weak_type)
            axes = tuple(rest.index(axis) for axis in axes if axis not in whole)
        filled = padding.filled(x, aval, start(aval.dtype), axes)
        return eqn.primitive.bind(filled, **params | {"axes": axes})

    return pad
