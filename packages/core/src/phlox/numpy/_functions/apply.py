"""Functions applied along axes (apply_along_axis …), and choices among arrays (piecewise, select, choose)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._api.batching.vmap import vmap
from ..._api.jit.jit import jit
from ..._base.errors import ArgumentError, ConcretizationTypeError, OptionError, ShapeError
from ..._ir import dtypes
from ..._operands.checks import as_shape, canonical_axis, check, check_one, refuse_out, sequence, type_of
from ..._operands.promotion import promote_dtypes, to_dtype
from ..._ops.elementwise import logic
from ..._ops.elementwise.arithmetic import stop_gradient
from ..._trace.trace import Tracer
from ...typing import Array, ArrayLike, DTypeLike, Shape
from .._creation.fill import arange, full
from .._creation.from_data import asarray
from .._elementwise.binary import maximum, minimum, remainder
from .._elementwise.unary import as_bool, is_kind
from .._manipulation.broadcasting import broadcast_arrays
from .._manipulation.shapes import expand_dims


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """``func1d(vector, *args, **kwargs)`` applied to the vectors along `axis` of `arr` (as ``numpy.apply_along_axis``).

    The axes of its results replace `axis`. It is called once, under `vmap`.

    Args:
      func1d: traceable function of a vector; it may return an array of any shape, or a pytree of arrays.
      axis: axis along which the vectors lie.
      arr: array with at least one axis.
      *args, **kwargs: further arguments of `func1d`.

    Returns:
      An array of the shape of `arr` with the axes of one result in place of `axis`, of the dtype that `func1d` returns.

    >>> jnp.apply_along_axis(jnp.sum, 1, jnp.ones((2, 3)))
    Array([3., 3.], dtype=float32)
    """
    arr = check_one("apply_along_axis", arr)
    rank = type_of(arr).ndim
    at = canonical_axis(axis, rank, "apply_along_axis")

    def function(vector: Any) -> Any:
        return func1d(vector, *args, **kwargs)

    for _ in range(rank - 1 - at):
        function = vmap(function, in_axes=-1, out_axes=-1)
    for _ in range(at):
        function = vmap(function, in_axes=0, out_axes=0)
    return function(arr)


def apply_over_axes(func: Callable[[Any, int], Any], a: ArrayLike, axes: Sequence[int]) -> Array:
    """``func(a, axis)`` applied for one axis after another, keeping the number of axes (as ``numpy.apply_over_axes``).

    Args:
      func: function of an array and an axis number, whose result keeps or drops this axis, as a reduction does.
      a: array of any shape.
      axes: sequence of axis numbers, in the order of the calls.

    Returns:
      The last result, an array with as many axes as `a`; an axis that `func` drops has length one.

    Raises:
      ShapeError: `func` returns an array with any other number of axes.

    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3)), (0, 1))
    Array([[6.]], dtype=float32)
    """
    a = check_one("apply_over_axes", a)
    for axis in axes:
        out = func(a, axis)
        if type_of(out).ndim == type_of(a).ndim - 1:
            out = expand_dims(out, axis)
        if type_of(out).ndim != type_of(a).ndim:
            raise ShapeError(f"apply_over_axes: the function makes {type_of(out).short} of {type_of(a).short}")
        a = out
    return asarray(a)


def fromfunction(function: Callable[..., Any], shape: Shape, *, dtype: DTypeLike = float, **kwargs: Any) -> Array:
    """An array of the results of ``function(i, j, …)`` at each index (as ``numpy.fromfunction``).

    The function is called once, under `vmap`, with scalars of `dtype`.

    Args:
      function: function of ``len(shape)`` scalars, the indices along each axis.
      shape: shape of the array, a sequence of integers.
      dtype: dtype of the indices that are passed to `function`; by default the default float dtype.
      **kwargs: further arguments of `function`.

    Returns:
      An array of `shape`, followed by the axes of one result, of the dtype that `function` returns.

    >>> fromfunction(lambda i, j: 10 * i + j, (2, 2), dtype=int)
    Array([[ 0,  1],
           [10, 11]], dtype=int32)
    """
    lengths = as_shape(shape, "fromfunction")
    out_dtype = dtypes.user_dtype(dtype, "fromfunction")
    mapped: Callable[..., Any] = functools.partial(function, **kwargs)
    for axis in reversed(range(len(lengths))):
        mapped = vmap(mapped, in_axes=tuple(0 if i == axis else None for i in range(len(lengths))))
    return mapped(*(arange(n, dtype=out_dtype) for n in lengths))


# --- choosing -------------------------------------------------------------------------------------------


def piecewise(
    x: ArrayLike,
    condlist: Array | Sequence[ArrayLike],
    funclist: list[ArrayLike | Callable[..., Array]],
    *args: Any,
    **kw: Any,
) -> Array:
    """A piecewise function: each element uses the last one whose condition is true (as ``numpy.piecewise``).

    A function is called once, with one element, under `vmap`; all are computed everywhere.

    Args:
      x: array of any shape.
      condlist: sequence of arrays of bools that broadcast to `x`.
      funclist: sequence with a function or a number for each condition, and optionally one more for elements where no
        condition is true, by default 0.
      *args, **kw: further arguments of the functions.

    Returns:
      An array of the broadcast shape, of the dtype of `x`.

    Raises:
      ArgumentError: the length of `funclist` is neither that of `condlist` nor one more.

    >>> x = jnp.array([-1.0, 2.0])
    >>> jnp.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: 10 * v])
    Array([ 1., 20.], dtype=float32)
    """
    x = check_one("piecewise", x)
    conditions, functions = list(condlist), list(funclist)
    if len(functions) == len(conditions):
        functions.append(0)
    if len(functions) != len(conditions) + 1:
        raise ArgumentError(f"piecewise: {len(functions)} functions for {len(conditions)} conditions")
    dtype = type_of(x).dtype
    *conditions, x = broadcast_arrays(*(as_bool(asarray(c)) for c in conditions), asarray(x))
    chosen = full(type_of(x).shape, 0, np.int32)
    # The last condition that holds decides, as in NumPy.
    for number, condition in enumerate(conditions, 1):
        chosen = logic.select(condition, full(type_of(x).shape, number, np.int32), chosen)
    return _elements_by_function(chosen, [functions[-1], *functions[:-1]], x, dtype, args, kw)


def _elements_by_function(
    chosen: Any, functions: Sequence[Any], x: Any, dtype: Any, args: tuple[Any, ...], kw: dict[str, Any]
) -> Any:
    """Elementwise ``functions[chosen](x)``. Derivatives of functions that are not chosen are zero, even if nan."""

    def element(number: Any, value: Any) -> Any:
        cases = []
        for i, f in enumerate(functions):
            argument = value
            if dtypes.kind(dtype) in "fc":
                argument = logic.select(logic.eq(number, np.int32(i)), value, stop_gradient(value))
            case = check_one("piecewise", f(argument, *args, **kw) if callable(f) else f)
            cases.append(to_dtype(case, dtype))
        return logic.select_n(number, *cases)

    mapped: Any = element
    for _ in type_of(x).shape:
        mapped = vmap(mapped)
    return mapped(chosen, x)


@jit(inline=True)
def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Array:
    """The elements of the first array whose condition is true, or `default` (as ``numpy.select``).

    Args:
      condlist: sequence of arrays of bools.
      choicelist: sequence of arrays, one for each condition, whose elements are used where this condition is the first
        that is true.
      default: array or number used where no condition is true.

    Returns:
      An array of the shape to which all arguments broadcast, of the dtype to which `choicelist` and `default` promote.

    Raises:
      ArgumentError: the lists are of different lengths, or empty.

    >>> x = jnp.arange(4)
    >>> jnp.select([x < 1, x < 3], [x, 10 * x], -1)
    Array([ 0, 10, 20, -1], dtype=int32)
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ArgumentError(f"select: {len(condlist)} conditions for {len(choicelist)} arrays", instead="one for each")
    conditions = check("select", *condlist)
    *choices, out = promote_dtypes(*check("select", *choicelist, default))
    conditions = [as_bool(c) for c in conditions]
    *conditions_and_choices, out = broadcast_arrays(*conditions, *choices, out)
    n = len(choices)
    # In reverse, so that the first condition that holds is the last to choose
    for holds, choice in zip(conditions_and_choices[:n][::-1], conditions_and_choices[n:][::-1], strict=True):
        out = logic.select_n(holds, out, choice)
    return out


def choose(
    a: ArrayLike, choices: Array | np.ndarray | Sequence[ArrayLike], out: None = None, mode: str = "raise"
) -> Array:
    """Elements chosen from the arrays `choices` by the indices `a` (as ``numpy.choose``).

    Args:
      a: integer array: for each element, the index of the array in `choices` to take it from.
      choices: sequence of arrays, or one array whose rows are these; they broadcast against `a`.
      out: not supported, must be None.
      mode: treatment of indices out of ``range(len(choices))``: "raise" an error, for which `a` must not be traced;
        "clip" takes the nearest one inside; "wrap" takes the remainder of the division by ``len(choices)``.

    Returns:
      An array of the broadcast shape, of the dtype to which `choices` are promoted.

    Raises:
      ArgumentError: `a` is not of an integer dtype, or with mode "raise" has an index out of bounds.
      ConcretizationTypeError: `a` is traced, with mode "raise".
      OptionError: `mode` is not one of the listed names.
      UnsupportedError: `out` is not None.

    >>> jnp.choose(np.array([0, 1]), [jnp.array([1, 2]), jnp.array([30, 40])])
    Array([ 1, 40], dtype=int32)
    """
    refuse_out("choose", out)
    a, *arrays = check("choose", a, *sequence("choose", "choices", choices))
    if not is_kind(a, "iu"):
        raise ArgumentError(f"choose: takes integers to choose by, got {type_of(a).short}", instead="a.astype(int)")
    count = len(arrays)
    if not count:
        raise ArgumentError("choose: there are no choices", instead="at least one array", argument="choices")
    if mode == "raise":
        if isinstance(a, Tracer):
            a._refuse(ConcretizationTypeError, "choose with mode='raise'", "mode='clip' or mode='wrap'")
        host = np.asarray(a)
        if np.any((host < 0) | (host >= count)):
            raise ArgumentError(f"choose: a number that is none of {count} choices", instead="mode='clip' or 'wrap'")
    elif mode == "wrap":
        a = remainder(a, count)
    elif mode == "clip":
        a = minimum(maximum(a, 0), count - 1)
    else:
        raise OptionError(f"choose: mode={mode!r}", instead="'raise', 'clip' or 'wrap'")
    which, *arrays = broadcast_arrays(a, *(to_dtype(x, type_of(x).dtype) for x in promote_dtypes(*arrays)))
    chosen = arrays[0]
    for number, array in enumerate(arrays[1:], 1):
        chosen = logic.select_n(which == number, chosen, array)
    return chosen
