"""Reductions of ``phlox.lax`` by a user's function, over axes and over sliding windows; reduce_precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._api.devices.out_sharding import OutSharding, lay_out, operands_for
from .._api.jit.bodies import operands_of, staged
from .._api.jit.user_functions import user_call
from .._base.errors import ArgumentError, OptionError, TreeError
from .._base.pytree import are_equal, flatten
from .._ir import dtypes
from .._ir.jaxpr import ClosedJaxpr, memoized
from .._operands.checks import check_one, integer, integers, per_axis, sequence, type_of
from .._ops.elementwise import arithmetic as e
from .._ops.reductions import programs as folding, reduce as _reduce
from .._ops.windows import pooling
from .._ops.windows.geometry import dilated, padtype_to_pads, positions
from .._trace.refs import captured
from .._trace.trace import Tracer
from ..typing import Array, ArrayLike
from . import _declared as words
from ._elementwise import mul

Ints = Sequence[int]


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """`operand` rounded to fewer bits of exponent and mantissa, with its dtype unchanged (StableHLO's
    ``reduce_precision``).

    Args:
      operand: array of floats, of any shape.
      exponent_bits: number of bits of the exponent, at least 1.
      mantissa_bits: number of bits of the mantissa, at least 0.

    Returns:
      An array of the shape and dtype of `operand`.

    Raises:
      DtypeError: the elements of `operand` are not floats.
      OptionError: a number of bits is too small.

    >>> reduce_precision(np.float32(0.1), 5, 2)
    Array(0.09375, dtype=float32)
    """
    operand = check_one("reduce_precision", operand)
    exponent, mantissa = (
        integer("reduce_precision", "exponent_bits", exponent_bits),
        integer("reduce_precision", "mantissa_bits", mantissa_bits),
    )
    if exponent < 1 or mantissa < 0:
        raise OptionError(f"reduce_precision: exponent_bits={exponent}, mantissa_bits={mantissa}")
    return e.reduce_precision(operand, exponent_bits=exponent, mantissa_bits=mantissa)


# --- primitives of known computations -------------------------------------------------------------------


#: functions of `phlox.lax` that have a reduction primitive, used if the initial value is the neutral element
_OVER_AXES: dict[Any, tuple[Any, Callable[[Any], Any], str]] = {
    words.add: (_reduce.reduce_sum, lambda dtype: 0, "iufc"),
    mul: (_reduce.reduce_prod, lambda dtype: 1, "iufc"),
    words.max: (_reduce.reduce_max, dtypes.lowest, "biufc"),
    words.min: (_reduce.reduce_min, dtypes.highest, "biufc"),
    words.bitwise_and: (_reduce.reduce_and, lambda dtype: ~np.zeros((), dtype), "biu"),
    words.bitwise_or: (_reduce.reduce_or, lambda dtype: 0, "biu"),
    words.bitwise_xor: (_reduce.reduce_xor, lambda dtype: 0, "biu"),
}
_OVER_WINDOWS: dict[Any, tuple[Any, Callable[[Any], Any], str]] = {
    words.add: (pooling.reduce_window_sum, lambda dtype: 0, "iufc"),
    words.max: (pooling.reduce_window_max, dtypes.lowest, "biufc"),
    words.min: (pooling.reduce_window_min, dtypes.highest, "biufc"),
}


def _known(table: Any, computation: Any, operands: Sequence[Any], starts: Sequence[Any]) -> Any:
    """The primitive that reduces by `computation`, if there is one and the initial value is its neutral element."""
    # A traced initial value may be any number, and only a known one can be seen to be neutral.
    if len(operands) != 1 or isinstance(starts[0], Tracer) or np.shape(starts[0]):
        return None
    try:
        primitive, neutral, kinds = table[computation]
    # Functions that cannot be hashed are no keys of the table.
    except (KeyError, TypeError):
        return None
    dtype = type_of(starts[0]).dtype
    if dtypes.kind(dtype) not in kinds:
        return None
    return primitive if np.equal(np.asarray(starts[0]), np.asarray(neutral(dtype), dtype)) else None


def _program(function: str, computation: Callable[..., Any], starts: Sequence[Any], tree: Any) -> ClosedJaxpr:
    """The computation as a closed jaxpr, from two lists of elements to one."""
    types = [type_of(x).update(shape=()) for x in starts]
    in_tree = flatten((tree.unflatten(types), tree.unflatten(types)))[1]
    program = staged(function, "computation", computation, in_tree, [*types, *types])
    if not are_equal(program.out_tree, tree):
        raise TreeError(
            f"{function} output must have the same tree structure as the operands: {program.out_tree} and {tree}",
            instead=program.advice("computation", "the combined elements"),
        )
    if program.refs:
        raise captured(program.refs, program.name)
    inner, count = program.closed.jaxpr, len(program.consts)

    def make() -> ClosedJaxpr:
        return ClosedJaxpr(inner.replace(constvars=inner.invars[:count], invars=inner.invars[count:]), program.consts)

    return memoized(inner, "consts inside", make)


def _leaves(caller: Callable[..., Any], operands: Any, init_values: Any) -> tuple[list[Any], list[Any], Any]:
    function = caller.__name__
    (xs, _), (starts, _) = (operands_of(function, caller, (t,)) for t in (operands, init_values))
    tree, other = flatten(operands)[1], flatten(init_values)[1]
    if not are_equal(tree, other):
        raise TreeError(f"{function}: Operands must have the same tree structure as init_values: {tree} and {other}")
    if not xs:
        raise ArgumentError(f"{function} needs at least one operand")
    return xs, starts, tree


# --- over axes ------------------------------------------------------------------------------------------


@user_call
def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Ints,
    out_sharding: OutSharding = None,
) -> Any:
    """A reduction over axes with a function that combines two elements (StableHLO's ``reduce``).

    Args:
      operands: array, or pytree of arrays of one shape that are reduced together.
      init_values: initial value of the accumulator: a pytree of scalars, with the structure and dtypes of `operands`.
        It should be the identity of `computation`, since it may be combined several times.
      computation: associative function of two pytrees of scalars like `init_values` that combines them into one.
        `lax.add`, `lax.max` and similar functions are recognized and become the specialised reductions.
      dimensions: axis numbers to reduce over, not negative.
      out_sharding: a `NamedSharding`, or a `PartitionSpec` of the mesh of the context, for the result; None: derived
        from the operands, or chosen by the compiler.

    Returns:
      A pytree like `operands`, its arrays without the axes `dimensions`.

    Raises:
      ArgumentError: `operands` has no arrays.
      TreeError: `init_values` or the result of `computation` differs from `operands` in structure.
      ShapeError: the operands have different shapes, an initial value is not a scalar, or an axis is out of range or
        named twice.
      DtypeError: operands, initial values and results of `computation` have different dtypes.
      UnsupportedError: `computation` closes over a traced value.

    >>> from phlox import lax
    >>> lax.reduce(jnp.array([1.0, 2.0, 3.0]), 0.0, lambda x, y: x + y, (0,))
    Array(6., dtype=float32)
    """
    operands, init_values = operands_for(out_sharding, operands, init_values)
    xs, starts, tree = _leaves(reduce, operands, init_values)
    axes = integers("reduce", "dimensions", dimensions)
    primitive = _known(_OVER_AXES, computation, xs, starts)
    if primitive is not None:
        outs = [primitive(xs[0], axes=axes)]
    else:
        jaxpr = _program("reduce", computation, starts, tree)
        outs = folding.reduce(*xs, *starts, jaxpr=jaxpr, dimensions=axes)
    return tree.unflatten([lay_out("reduce", x, out_sharding) for x in outs])


# --- over windows ---------------------------------------------------------------------------------------


@user_call
def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Ints,
    window_strides: Ints | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Ints | None = None,
    window_dilation: Ints | None = None,
) -> Any:
    """A reduction over each position of a window that moves over the array (StableHLO's ``reduce_window``).

    Derivatives in both modes are available for `lax.add`, `lax.max` and `lax.min` (sum, max and min pooling).

    Args:
      operand, init_value, computation: as for `reduce`.
      window_dimensions: length of the window along each axis.
      window_strides: stride of the window along each axis; None means 1.
      padding: 'VALID', 'SAME', 'SAME_LOWER' (see `padtype_to_pads`), or a pair (low, high) of numbers of elements to
        add for each axis, whose value is `init_value`; negative numbers remove elements.
      base_dilation, window_dilation: dilation factors of the array and of the window along each axis; None means 1.

    Returns:
      A pytree like `operand`, its arrays with one element for each position of the window.

    Raises:
      ArgumentError: `operand` has no arrays.
      TreeError: `init_value` or the result of `computation` differs from `operand` in structure.
      ShapeError: the window options are not one positive number for each axis, or shapes are incompatible as in
        `reduce`.
      DtypeError: operands, initial values and results of `computation` have different dtypes.
      PaddingError: `padding` is unknown.
      UnsupportedError: `computation` closes over a traced value.

    >>> from phlox import lax
    >>> lax.reduce_window(jnp.array([1.0, 3.0, 2.0, 0.0]), -jnp.inf, lax.max, (2,), (2,))
    Array([3., 2.], dtype=float32)
    """
    xs, starts, tree = _leaves(reduce_window, operand, init_value)
    dimensions = integers("reduce_window", "window_dimensions", window_dimensions)
    numbers = {"window_strides": window_strides, "base_dilation": base_dilation, "window_dilation": window_dilation}
    strides, base, gaps = (per_axis("reduce_window", *option, len(dimensions)) for option in numbers.items())
    if isinstance(padding, str):
        window = [dilated(n, d) for n, d in zip(dimensions, gaps, strict=True)]
        padding = padtype_to_pads(type_of(xs[0]).shape, window, strides, padding)
    pads = [integers("reduce_window", "padding", row) for row in sequence("reduce_window", "padding", padding)]
    options = {
        "window_dimensions": dimensions,
        "window_strides": strides,
        "padding": tuple(pads),
        "base_dilation": base,
        "window_dilation": gaps,
    }
    primitive = _known(_OVER_WINDOWS, computation, xs, starts)
    if primitive is not None:
        return tree.unflatten([primitive(xs[0], **options)])
    jaxpr = _program("reduce_window", computation, starts, tree)
    return tree.unflatten(folding.reduce_window(*xs, *starts, jaxpr=jaxpr, **options))


def reduce_window_shape_tuple(
    operand_shape: Ints,
    window_dimensions: Ints,
    window_strides: Ints,
    padding: Sequence[tuple[int, int]],
    base_dilation: Ints | None = None,
    window_dilation: Ints | None = None,
) -> tuple[int, ...]:
    """The shape of the result of `reduce_window` (as ``jax.lax.reduce_window_shape_tuple``).

    Args:
      operand_shape: shape of the array.
      window_dimensions, window_strides: length and stride of the window along each axis.
      padding: a pair (low, high) for each axis.
      base_dilation, window_dilation: dilation factors of the array and of the window along each axis; None means 1.

    Returns:
      A tuple: the number of window positions along each axis.

    >>> from phlox import lax
    >>> lax.reduce_window_shape_tuple((10, 8), (3, 2), (1, 2), [(1, 1), (0, 0)])
    (10, 4)
    """
    ones = (1,) * len(operand_shape)
    return tuple(
        positions(dilated(n, b) + low + high, dilated(k, d), s)
        for n, k, s, (low, high), b, d in zip(
            operand_shape,
            window_dimensions,
            window_strides,
            padding,
            base_dilation or ones,
            window_dilation or ones,
            strict=True,
        )
    )
