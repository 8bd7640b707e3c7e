"""`sparsify`: functions of arrays, applied to sparse arrays.

The function is staged on the shapes of its arguments, and its Jaxpr is evaluated with a rule for each operation that
meets a sparse array. The operators of `BCOO` are such functions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ... import lax, numpy as jnp
from ..._api.jit.programs import ShapeDtypeStruct, make_jaxpr
from ..._base import pytree
from ..._trace.interpret import eval_jaxpr
from ..._trace.trace import Tracer
from ._base import DENSE, JAXSparse, is_sparse, todense
from ._bcoo import BCOO, parts
from ._gather import bcoo_gather
from ._layouts import bcoo_update_layout, distinct
from ._products import bcoo_dot_general, bcoo_multiply_sparse, bcoo_reduce_sum, times_dense
from ._rows import BCSR
from ._shapes import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
    bcoo_transpose,
)


class _Rule(NamedTuple):
    """The rule of an operation that meets a sparse array.

    Attributes:
      apply: function of the operands and parameters of the operation; sparse operands are `BCOO`.
      keeps_format: whether the result is a `BCSR` if all sparse operands are.
      takes_all_formats: whether `apply` takes sparse operands as they are.
      takes_shape: whether `apply` also takes the shape of the result, as ``out``.
    """

    apply: Callable[..., Any]
    keeps_format: bool = False
    takes_all_formats: bool = False
    takes_shape: bool = False


_RULES: dict[str, _Rule] = {}


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """A function of arrays that also takes sparse arrays.

    Args:
      f: function of arrays, composed of operations that have a sparse rule: elementwise ones that keep zero, sums and
        products, `dot_general`, sums over axes, shapes, slices, `concatenate`, `jit`, `cond`, `scan`, `while_loop`.
      use_tracer: not used; there is one way to do this.

    Returns:
      A function with the arguments of `f`, which returns sparse arrays where results are sparse. Its sparse arguments
      are positional; `f` gets keyword arguments as they are.

    Raises:
      NotImplementedError: an operation meets a sparse array and has no sparse rule; by the function returned.

    >>> from phlox.experimental.sparse import eye
    >>> sparsify(lambda m, v: 2 * m.T @ v)(eye(2), jnp.array([1.0, 2.0]))
    Array([2., 4.], dtype=float32)
    """

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        # Keyword arguments are not traced: ``axis`` of `jax.numpy.mean` must be a number.
        leaves, tree = pytree.tree_flatten(args, is_leaf=is_sparse)
        stand_ins = [ShapeDtypeStruct(x.shape, x.dtype) if is_sparse(x) else x for x in leaves]

        def on_arrays(*leaves: Any) -> Any:
            return f(*pytree.tree_unflatten(tree, leaves), **kwargs)

        closed, shapes = make_jaxpr(on_arrays, return_shape=True)(*stand_ins)
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *leaves, run=_run)
        arrays = [x if is_sparse(x) else jnp.asarray(x) for x in outs]
        return pytree.tree_unflatten(pytree.tree_structure(shapes), arrays)

    return wrapped


def _run(eqn: Any, values: list[Any]) -> Any:
    name = eqn.primitive.name
    if not any(map(is_sparse, values)):
        return eqn.primitive.bind(*values, **eqn.params)
    rule = _RULES.get(name)
    if rule is None:
        raise NotImplementedError(
            f"sparse rule for {name} is not implemented; instead: sparse.todense of its operand before it"
        )
    by_rows = rule.keeps_format and all(type(x) is BCSR for x in values if is_sparse(x))
    if not rule.takes_all_formats:
        values = [_as_bcoo(x, name) for x in values]
    shape = eqn.outvars[0].aval.shape if eqn.outvars else ()
    result = rule.apply(*values, **eqn.params, **({"out": shape} if rule.takes_shape else {}))
    return BCSR.from_bcoo(result) if by_rows and type(result) is BCOO and result.n_sparse == 2 else result


def _as_bcoo(x: Any, name: str) -> Any:
    if isinstance(x, JAXSparse) and not isinstance(x, BCOO):
        if not hasattr(x, "to_bcoo"):
            raise NotImplementedError(f"sparse rule for {name} is not implemented for {type(x).__name__}; use BCOO")
        return x.to_bcoo()
    return x


def _rule(*names: str, **marks: bool) -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        _RULES.update(dict.fromkeys(names, _Rule(function, **marks)))
        return function

    return register


# --- elementwise ------------------------------------------------------------------------------------------


def _elementwise(name: str, linear: bool) -> None:
    def rule(x: BCOO, **params: Any) -> BCOO:
        # The function of a sum is not the sum of the function: elements with equal indices are added first.
        x = x if linear else distinct(x)
        return x._with(_primitive(name).bind(x.data, **params))

    _rule(name, keeps_format=True)(rule)


def _primitive(name: str) -> Any:
    from ...extend import primitives

    return primitives()[name]


for _name in ("conj", "copy", "convert_element_type", "imag", "neg", "real"):
    _elementwise(_name, linear=True)
for _name in (
    *(
        "abs",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "bessel_i1e",
        "cbrt",
        "ceil",
        "expm1",
        "floor",
        "log1p",
        "round",
        "sign",
        "sin",
    ),
    *("sinh", "sqrt", "square", "tan", "tanh"),
):
    _elementwise(_name, linear=False)


@_rule("integer_pow", keeps_format=True)
def _integer_pow(x: BCOO, *, y: int) -> BCOO:
    if y <= 0:
        raise NotImplementedError("powers of a sparse array that are not positive are dense")
    x = distinct(x)
    return x._with(lax.integer_pow(x.data, y))


@_rule("pow", keeps_format=True)
def _pow(x: Any, y: Any) -> BCOO:
    # 0 to any other power is not 0, and the exponent of a compiled program may be any.
    if is_sparse(y) or isinstance(y, Tracer) or np.ndim(y) or not np.real(y) > 0:
        raise NotImplementedError(
            f"sparse rule for pow is not implemented for the exponent {y!r:.60}; instead: a positive number, or "
            "sparse.todense() of the base before it"
        )
    x = distinct(x)
    return x._with(x.data**y)


def _has_same_indices(x: BCOO, y: BCOO) -> bool:
    return x.indices is y.indices and x.shape == y.shape and x.n_dense == y.n_dense


def _add(x: Any, y: Any, out: tuple[int, ...], sign: int) -> Any:
    if is_sparse(x) and is_sparse(y):
        if x.shape != y.shape:
            raise NotImplementedError("Addition between sparse matrices of different shapes.")
        # The same array of indices: no element is stored twice, as it would be otherwise.
        if _has_same_indices(x, y):
            return x._with(x.data + y.data if sign > 0 else x.data - y.data)
        b, d = min(x.n_batch, y.n_batch), min(x.n_dense, y.n_dense)
        x, y = (bcoo_update_layout(z, n_batch=b, n_dense=d) for z in (x, y))
        (data, indices), (others, other_indices) = parts(x), parts(y)
        others = others if sign > 0 else -others
        return BCOO((jnp.concatenate([data, others], b), jnp.concatenate([indices, other_indices], b)), shape=x.shape)
    dense = y if is_sparse(x) else x
    if np.shape(dense) != out or (x.shape if is_sparse(x) else y.shape) != out:
        raise NotImplementedError(
            "Addition between a sparse array X and a dense array Y is not implemented when the output shape is larger "
            "than Y.shape. This is to prevent silent densification of a large sparse array; instead: X.todense()"
        )
    if is_sparse(x):
        return x.todense() + y if sign > 0 else x.todense() - y
    return x + y.todense() if sign > 0 else x - y.todense()


_rule("add", "add_any", takes_shape=True)(functools.partial(_add, sign=1))
_rule("sub", takes_shape=True)(functools.partial(_add, sign=-1))


@_rule("mul", keeps_format=True)
def _mul(x: Any, y: Any) -> BCOO:
    if is_sparse(x) and is_sparse(y):
        # Without this, the product of n and n stored elements has n² of them, nearly all of which are zeros.
        if _has_same_indices(x, y) and x.unique_indices:
            return x._with(x.data * y.data)
        return bcoo_multiply_sparse(x, y)
    return times_dense(x, y) if is_sparse(x) else times_dense(y, x)


@_rule("div", keeps_format=True)
def _div(x: Any, y: Any) -> BCOO:
    if is_sparse(y):
        raise NotImplementedError(
            "Division by a sparse array is not implemented because it would result in dense output; instead: "
            "sparse.todense() of the divisor"
        )
    # By the reciprocal, as in JAX: a quotient may differ in the last bit.
    return times_dense(x, 1.0 / y)


# --- sums, products, shapes -------------------------------------------------------------------------------


@_rule("dot_general", takes_all_formats=True)
def _dot_general(x: Any, y: Any, *, dimension_numbers: Any, preferred_element_type: Any = None, **_: Any) -> Any:
    x, y = (_as_bcoo(z, "dot_general") for z in (x, y))
    return bcoo_dot_general(x, y, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type)


@_rule("reduce_sum")
def _reduce_sum(x: BCOO, *, axes: Any) -> Any:
    total = bcoo_reduce_sum(x, axes=axes)
    return total if total.ndim else total.todense()


@_rule("name", takes_all_formats=True)
def _name_rule(x: Any, *, name: str) -> Any:
    return todense(x) if name == DENSE else x


_rule("transpose")(bcoo_transpose)
_rule("reshape")(bcoo_reshape)
_rule("squeeze")(bcoo_squeeze)
_rule("broadcast_in_dim", keeps_format=True)(bcoo_broadcast_in_dim)
_rule("slice")(bcoo_slice)
_rule("rev")(bcoo_rev)


@_rule("dynamic_slice")
def _dynamic_slice(x: BCOO, *starts: Any, slice_sizes: Any) -> BCOO:
    return bcoo_dynamic_slice(x, starts, slice_sizes)


@_rule("concatenate", keeps_format=True)
def _concatenate(*operands: Any, dimension: int) -> BCOO:
    if not all(map(is_sparse, operands)):
        raise NotImplementedError("concatenate of sparse and dense arrays; instead: sparse.todense or BCOO.fromdense")
    return bcoo_concatenate(operands, dimension=dimension)


@_rule("gather")
def _gather(x: Any, start: Any, *, dimension_numbers: Any, slice_sizes: Any, **_: Any) -> BCOO:
    if is_sparse(start):
        raise NotImplementedError("sparse rule for gather is not implemented for sparse indices")
    return bcoo_gather(x, start, dimension_numbers, slice_sizes)


# --- functions inside of functions ------------------------------------------------------------------------


def _call(closed: Any, *values: Any) -> list[Any]:
    return eval_jaxpr(closed.jaxpr, closed.consts, *values, run=_run)


@_rule("jit", "remat2", "closed_call", takes_all_formats=True)
def _jit(*values: Any, jaxpr: Any, **_: Any) -> list[Any]:
    return _call(jaxpr, *values)


# Rules of derivatives are left out: the operators of the function have sparse rules, which are differentiated.
@_rule("custom_jvp_call", "custom_vjp_call", takes_all_formats=True)
def _custom(*values: Any, call_jaxpr: Any, **_: Any) -> list[Any]:
    return _call(call_jaxpr, *values)


@_rule("cond", takes_all_formats=True)
def _cond(which: Any, *values: Any, branches: Any) -> list[Any]:
    outs: list[Any] = lax.switch(which, [functools.partial(_call, branch) for branch in branches], *values)
    return outs


@_rule("while", takes_all_formats=True)
def _while(*values: Any, cond_jaxpr: Any, cond_nconsts: int, body_jaxpr: Any, body_nconsts: int) -> list[Any]:
    split = cond_nconsts + body_nconsts
    tests, consts, start = values[:cond_nconsts], values[cond_nconsts:split], list(values[split:])
    outs: list[Any] = lax.while_loop(
        lambda carry: _call(cond_jaxpr, *tests, *carry)[0], lambda carry: _call(body_jaxpr, *consts, *carry), start
    )
    return outs


@_rule("scan", takes_all_formats=True)
def _scan(
    *values: Any, jaxpr: Any, length: int, num_consts: int, num_carry: int, reverse: bool, unroll: Any
) -> list[Any]:
    consts, start = values[:num_consts], list(values[num_consts : num_consts + num_carry])
    if any(map(is_sparse, values[num_consts + num_carry :])):
        raise NotImplementedError("sparse rule for scan is not implemented for sparse arrays that are scanned over")

    def body(carry: Any, x: Any) -> Any:
        outs = _call(jaxpr, *consts, *carry, *x)
        return outs[:num_carry], outs[num_carry:]

    carry, outs = lax.scan(body, start, list(values[num_consts + num_carry :]), length, reverse, unroll)
    return [*carry, *outs]
