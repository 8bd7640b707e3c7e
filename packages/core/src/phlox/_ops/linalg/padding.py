"""The rules `pad` of factorizations: a padded matrix continues with ones on the diagonal, and zeros elsewhere.

The factors of such a matrix begin with those of the matrix itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ir.dimensions import is_symbolic
from ..._ir.jaxpr import JaxprEqn
from ..._transform.padding import Padding, pad_elementwise, refuse
from ..elementwise.logic import eq, select_n
from ..structure.iota import iota
from ..structure.shape import convert


def stack_pad(ranks: Sequence[int]) -> Any:
    """The rule of operations on stacks: the stack may be padded, matrices and vectors may not."""

    def pad(padding: Padding, eqn: JaxprEqn, *args: Any) -> Any:
        for v, rank in zip(eqn.invars, ranks, strict=True):
            if any(map(is_symbolic, v.aval.shape[v.aval.ndim - rank :])):
                refuse(eqn, "the length of the matrix varies")
        return pad_elementwise(padding, eqn, *args)

    return pad


def with_identity(padding: Padding, x: Any, aval: ShapedArray) -> Any:
    """The square matrices `x`, continued by the identity."""
    return with_diagonal(padding, x, aval, lambda diagonal: convert(diagonal, aval.dtype))


def with_diagonal(padding: Padding, x: Any, aval: ShapedArray, block: Callable[[Any], Any]) -> Any:
    """The square matrices `x`, continued by the matrix that `block` makes of the mask of the diagonal."""
    shape, rank = padding.shape(aval.shape), aval.ndim
    if not is_symbolic(aval.shape[-1]):
        return x
    rows, columns = (iota(dtype=dtypes.int32, shape=shape, dimension=rank - i) for i in (2, 1))
    return select_n(padding.inside(aval, (rank - 2, rank - 1)), block(eq(rows, columns)), x)


def square_pad(padding: Padding, eqn: JaxprEqn, x: Any) -> Any:
    aval = eqn.invars[0].aval
    if aval.shape[-1] != aval.shape[-2]:
        refuse(eqn, "the length of the matrix varies, and it is not square")
    return pad_elementwise(padding, eqn, with_identity(padding, x, aval))


def triangular_solve_pad(padding: Padding, eqn: JaxprEqn, a: Any, b: Any) -> Any:
    left, right = (v.aval for v in eqn.invars)
    contracted = right.ndim - (2 if eqn.params["left_side"] else 1)
    # The equations of padding say x = 0, so that it reaches no other unknown.
    return pad_elementwise(padding, eqn, with_identity(padding, a, left), padding.filled(b, right, 0, (contracted,)))


def permutation_pad(padding: Padding, eqn: JaxprEqn, pivots: Any) -> Any:
    """Rows behind the true length are exchanged with themselves."""
    aval = eqn.invars[0].aval
    last = aval.ndim - 1
    if is_symbolic(aval.shape[last]):
        itself = iota(dtype=aval.dtype, shape=padding.shape(aval.shape), dimension=last)
        pivots = select_n(padding.inside(aval, (last,)), itself, pivots)
    return pad_elementwise(padding, eqn, pivots)


def symmetric_product_pad(padding: Padding, eqn: JaxprEqn, a: Any, c: Any) -> Any:
    aval = eqn.invars[0].aval
    return pad_elementwise(padding, eqn, padding.filled(a, aval, 0, (aval.ndim - 1,)), c)


def qr_pad(padding: Padding, eqn: JaxprEqn, x: Any) -> Any:
    """Matrices continue with zeros, on which Householder's reflections do not act."""
    aval = eqn.invars[0].aval
    if eqn.params["pivoting"] and is_symbolic(aval.shape[-1]):
        refuse(eqn, "the number of columns varies, and they are exchanged")
    filled = padding.filled(x, aval, 0, (aval.ndim - 2, aval.ndim - 1))
    outs = eqn.primitive.bind(filled, **padding.params(eqn))
    return [padding.fit(out, v.aval) for out, v in zip(outs, eqn.outvars, strict=True)]
