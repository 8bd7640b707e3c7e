"""Derivatives with respect to the elements of sparse arrays: `grad`, `value_and_grad`, `jacfwd`, `jacrev`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ... import numpy as jnp
from ..._api.derivatives import grad as dense
from ..._base import pytree
from ..._base.docstrings import docs_from
from ._base import is_sparse
from ._bcoo import BCOO, parts


@pytree.register_pytree_node_class
class _Elements:
    """The arrays by which is differentiated: dense arrays, and the elements of sparse ones."""

    def __init__(self, arrays: Sequence[Any]):
        self.arrays = list(arrays)

    def tree_flatten(self) -> tuple[list[Any], None]:
        return self.arrays, None

    @classmethod
    def tree_unflatten(cls, _: None, arrays: Any) -> _Elements:
        return cls(arrays)


def _by_elements(
    transform: Callable[..., Any], fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool, **options: Any
) -> Callable[..., Any]:
    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        single = isinstance(argnums, int)
        numbers = [i % len(args) for i in ([argnums] if isinstance(argnums, int) else argnums)]
        leaves, tree = pytree.tree_flatten(tuple(args[i] for i in numbers), is_leaf=is_sparse)

        def of_elements(elements: _Elements) -> Any:
            filled = [_with(x, data) for x, data in zip(leaves, elements.arrays, strict=True)]
            all_args = list(args)
            for number, value in zip(numbers, pytree.tree_unflatten(tree, filled), strict=True):
                all_args[number] = value
            return fun(*all_args, **kwargs)

        def as_derivatives(elements: _Elements) -> Any:
            wrapped = [_derivative(x, data) for x, data in zip(leaves, elements.arrays, strict=True)]
            values = pytree.tree_unflatten(tree, wrapped)
            return values[0] if single else values

        elements = _Elements([x.data if is_sparse(x) else x for x in leaves])
        result = transform(of_elements, has_aux=has_aux, **options)(elements)
        return pytree.tree_map(
            lambda x: as_derivatives(x) if isinstance(x, _Elements) else x,
            result,
            is_leaf=lambda x: isinstance(x, _Elements),
        )

    return wrapped


def _with(x: Any, data: Any) -> Any:
    if not is_sparse(x):
        return data
    children, aux = x.tree_flatten()
    return x.tree_unflatten(aux, (data, *children[1:]))


def _derivative(x: Any, data: Any) -> Any:
    """The derivative with the indices of a sparse argument; axes of the result are batch axes."""
    if not is_sparse(x):
        return data
    outer = data.shape[: data.ndim - x.data.ndim]
    if not outer:
        return _with(x, data)
    mat: BCOO = x if isinstance(x, BCOO) else x.to_bcoo()
    indices = jnp.broadcast_to(parts(mat)[1], (*outer, *mat.indices.shape))
    flags = {"indices_sorted": mat.indices_sorted, "unique_indices": mat.unique_indices}
    return BCOO((data, indices), shape=(*outer, *mat.shape), **flags)


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """The gradient of a function of sparse and dense arrays; by the stored elements of sparse ones.

    Args:
      fun: function that returns a scalar.
      argnums: the arguments by which is differentiated.
      has_aux: whether `fun` returns (scalar, something else).
      **kwargs: options of `phlox.grad`.

    Returns:
      A function that returns, for a sparse argument, a sparse array with its indices.

    >>> from phlox.experimental.sparse import eye
    >>> grad(lambda m: (m @ jnp.array([1.0, 2.0])).sum())(eye(2)).data
    Array([1., 2.], dtype=float32)
    """
    return _by_elements(dense.grad, fun, argnums, has_aux, **kwargs)


@docs_from(grad)
def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """The value and the gradient of a function of sparse and dense arrays.

    Args:
      **kwargs: options of `phlox.value_and_grad`.

    Returns:
      A function that returns (value, gradient).

    >>> from phlox.experimental.sparse import eye
    >>> value_and_grad(lambda m: (m @ jnp.array([1.0, 2.0])).sum())(eye(2))
    (Array(3., dtype=float32), BCOO(float32[2, 2], nse=2))
    """
    return _by_elements(dense.value_and_grad, fun, argnums, has_aux, **kwargs)


def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """The Jacobian of a function of sparse and dense arrays, in forward mode.

    Args:
      fun: function that returns arrays.
      argnums: the arguments by which is differentiated.
      has_aux: whether `fun` returns (arrays, something else).
      **kwargs: options of `phlox.jacfwd`.

    Returns:
      A function that returns, for a sparse argument, a sparse array; the axes of the result are batch axes.

    >>> from phlox.experimental.sparse import eye
    >>> jacfwd(lambda m: m @ jnp.ones(2))(eye(2))
    BCOO(float32[2, 2, 2], nse=2, n_batch=1)
    """
    return _by_elements(dense.jacfwd, fun, argnums, has_aux, **kwargs)


@docs_from(jacfwd)
def jacrev(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """The Jacobian of a function of sparse and dense arrays, in reverse mode.

    Args:
      **kwargs: options of `phlox.jacrev`.

    >>> from phlox.experimental.sparse import eye
    >>> jacrev(lambda m: m @ jnp.ones(2))(eye(2))
    BCOO(float32[2, 2, 2], nse=2, n_batch=1)
    """
    return _by_elements(dense.jacrev, fun, argnums, has_aux, **kwargs)


jacobian = jacrev
