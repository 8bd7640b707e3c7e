"""``phlox.experimental.jet``: derivatives of high order along a curve (Taylor mode), as in ``jax.experimental.jet``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .._api.jit import arguments
from .._api.jit.user_functions import FlatFunction, user_call
from .._base import pytree
from .._base.errors import DerivativeError, OptionError, ShapeError
from .._base.public_names import publish
from .._base.pytree import flatten
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ops.elementwise.arithmetic import mul
from .._ops.elementwise.families import literal
from .._ops.structure.shape import as_array_or_tracer, convert_element_type
from .._trace.trace import typeof
from .._transform.jet import jet as jet_flat
from ..typing import ArrayLike

__all__ = ["fact", "jet", "jet2", "zero_series"]


@user_call
def jet(
    fun: Callable[..., Any],
    primals: Sequence[ArrayLike],
    series: Sequence[Sequence[ArrayLike]],
    factorial_scaled: bool = True,
    **_: Any,
) -> tuple[Any, Any]:
    """The Taylor polynomial of ``fun(x(t))`` for arguments that are polynomials in t.

    Its cost grows with the square of the order, that of nested `jvp` exponentially. The series of each operation is
    computed by its jvp rule.

    Args:
      fun: function of arrays.
      primals: the arguments at t = 0, arrays of a floating dtype, or bools, which are constants.
      series: for each argument a sequence of its derivatives in t at 0: the first, the second, and so on. All sequences
        have the same length, which is the order of the result.
      factorial_scaled: False if the k-th term is the derivative divided by k!, which is the polynomial coefficient;
        the results have the same form.
      **_: other options of JAX; not used.

    Returns:
      (out, series of out). The series is a tree like out with a list of derivatives for each array, of the shape and
      dtype of the array.

    Raises:
      DerivativeError: an argument is no array of a floating dtype.
      MissingRuleError: an operation has no jvp rule; the message names it.
      OptionError: the series differ in length, there is not one for each of `primals`, or one of `primals` is a tree.
      ShapeError: a derivative has another shape than its argument.

    >>> out, derivatives = jet(jnp.exp, (0.0,), ((2.0, 0.0, 0.0),))
    >>> [float(d) for d in derivatives]
    [2.0, 4.0, 8.0]
    """
    arguments.check_callable("jet", fun)
    if len(primals) != len(series):
        raise OptionError(f"jet: {len(primals)} primals, and series for {len(series)}")
    lengths = {len(terms) for terms in series}
    if len(lengths) != 1:
        raise OptionError(f"jet: the series have different lengths {sorted(lengths)}", instead="zeros at their ends")
    (order,) = lengths
    _, in_tree = flatten(tuple(primals))
    if not all(pytree.treedef_is_leaf(tree) for tree in pytree.treedef_children(in_tree)):
        raise OptionError("jet: each of primals must be an array", instead="a function of the leaves of a tree")
    avals = arguments.check_arrays("jet", fun, primals, {}, list(primals))
    names = arguments.leaf_names(fun, primals, {})
    # The k-th derivative is k! times the coefficient of the polynomial.
    scales = [1 / math.factorial(k) if factorial_scaled else 1.0 for k in range(1, order + 1)]
    in_coefficients = [
        None
        if aval.dtype == dtypes.bool_
        else [_term(x, aval, name, k, scale) for k, (x, scale) in enumerate(zip(terms, scales, strict=True), 1)]
        for terms, aval, name in zip(series, avals, names, strict=True)
    ]
    flat = FlatFunction(fun, in_tree)
    outs, out_coefficients = jet_flat(flat, [as_array_or_tracer(x) for x in primals], in_coefficients, order)
    terms = [
        [_scaled(as_array_or_tracer(c), 1 / scale) for c, scale in zip(cs, scales, strict=True)]
        for cs in out_coefficients
    ]
    return flat.out_tree.unflatten([as_array_or_tracer(x) for x in outs]), flat.out_tree.unflatten(terms)


jet2 = partial(jet, factorial_scaled=False)
#: JAX's mark of a series of zeros; `jet` returns zeros in its place
zero_series = object()


def fact(n: int) -> float:
    """The factorial n!, the ratio of the n-th derivative and the n-th polynomial coefficient.

    Args:
      n: a nonnegative integer.

    Returns:
      A float.

    >>> fact(4)
    24.0
    """
    return float(math.factorial(n))


def _term(x: Any, aval: ShapedArray, name: str, k: int, scale: float) -> Any:
    if not dtypes.is_inexact(aval.dtype):
        raise DerivativeError(f"jet: argument {name} has type {aval.short}", instead="a float (1.0 for 1)", aval=aval)
    if not pytree.treedef_is_leaf(pytree.tree_structure(x)):
        raise OptionError(f"jet: term {k} of argument {name} is no array")
    have = typeof(x)
    if have.shape != aval.shape:
        raise ShapeError(
            f"jet: term {k} of argument {name} has type {have.short}, and the argument {aval.short}",
            shapes=[have.shape, aval.shape],
        )
    x = (
        as_array_or_tracer(x)
        if have.dtype == aval.dtype
        else convert_element_type(x, new_dtype=aval.dtype, weak_type=aval.weak_type)
    )
    return _scaled(x, scale)


def _scaled(x: Any, factor: float) -> Any:
    return x if factor == 1 or not dtypes.is_inexact(typeof(x).dtype) else mul(x, literal(x, factor))


publish(__name__)
