"""Transformations of functions of values with types of their own, in the place of those of ``jax``.

To their users tangents are what `HiType.to_tangent_aval` says. To phlox, a differentiated value is its zero tangent,
and the function receives the value with this tangent as its carriers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import phlox
from phlox.tree_util import tree_flatten, tree_leaves, tree_unflatten

from ._types import arrays_of, has_carriers, is_any_registered, stands_for, tangent_of, tangents_of, typeof, value_of


def _opened(tree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """A tree with tangents in place of the values that have carriers; and its inverse, for any tangents."""
    values, treedef = tree_flatten(tree, is_leaf=has_carriers)
    opened = [tangent_of(typeof(x), arrays_of(typeof(x), x)) if has_carriers(x) else x for x in values]

    def closed(tangents: Any) -> Any:
        pairs = zip(values, treedef.flatten_up_to(tangents), strict=True)
        return tree_unflatten(treedef, [_with_tangent(x, t) if has_carriers(x) else t for x, t in pairs])

    return tree_unflatten(treedef, opened), closed


def _with_tangent(x: Any, tangent: Any) -> Any:
    ty = typeof(x)
    arrays = [ours if t is None else t for ours, t in zip(arrays_of(ty, x), tangents_of(ty, tangent), strict=True)]
    return value_of(ty, arrays)


def _on_tangents(fun: Callable[..., Any], primals: Any, has_aux: bool) -> tuple[Callable[..., Any], Any]:
    """`fun` from tangents to tangents, which returns as aux what `fun` returns; and the opened primals."""
    opened, closed = _opened(primals)

    @functools.wraps(fun)
    def run(*args: Any) -> Any:
        result = fun(*closed(args))
        return _opened(result[0] if has_aux else result)[0], result

    return run, opened


def _of_values(transform: Callable[..., Any]) -> Callable[..., Any]:
    """`vjp` or `linearize`: (value, a function of tangents)."""

    @stands_for(transform)
    def transformed(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, **options: Any) -> Any:
        if not is_any_registered() or not callable(fun):
            return transform(fun, *primals, has_aux=has_aux, **options)
        run, opened = _on_tangents(fun, primals, has_aux)
        _, function, result = transform(run, *opened, has_aux=True, **options)
        return (result[0], function, result[1]) if has_aux else (result, function)

    return transformed


vjp, linearize = _of_values(phlox.vjp), _of_values(phlox.linearize)


@stands_for(phlox.jvp)
def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    if not is_any_registered() or not callable(fun):
        return phlox.jvp(fun, primals, tangents, has_aux=has_aux)
    run, opened = _on_tangents(fun, primals, has_aux)
    _, tangent, result = phlox.jvp(run, opened, tangents, has_aux=True)
    return (result[0], tangent, result[1]) if has_aux else (result, tangent)


def _of_arguments(transform: Callable[..., Any]) -> Callable[..., Any]:
    """`grad` or `value_and_grad`: a function of the values."""

    @stands_for(transform)
    def transformed(fun: Callable[..., Any], *args: Any, **options: Any) -> Callable[..., Any]:
        plain: Callable[..., Any] = transform(fun, *args, **options)
        if not is_any_registered():
            return plain

        @functools.wraps(plain)
        def call(*primals: Any, **kwargs: Any) -> Any:
            if not any(map(has_carriers, tree_leaves(primals, is_leaf=has_carriers))):
                return plain(*primals, **kwargs)
            opened, closed = _opened(primals)
            run = functools.wraps(fun)(lambda *tangents, **kwargs: fun(*closed(tangents), **kwargs))
            return transform(run, *args, **options)(*opened, **kwargs)

        return call

    return transformed


grad, value_and_grad = _of_arguments(phlox.grad), _of_arguments(phlox.value_and_grad)
