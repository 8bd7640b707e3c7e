"""Derivatives with respect to references, the arguments of `jvp`, `linearize` and `vjp`.

A function of references is one of their values that also returns their final values. So a tangent of a reference is a
reference: it holds the tangent of the first value before the call, and that of the last value after it. A cotangent is
a reference too, in which the pullback replaces the cotangent of the last value by that of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._base import pytree
from ..._base.errors import ArgumentError, RefError
from ..._base.partial import Partial
from ..._base.pytree import PyTreeDef, flatten
from ..._base.wrapping import wraps
from ..._ir import dtypes
from ..._trace.refs import AbstractRef, Ref, values, write_all
from ..._trace.trace import typeof
from ..jit import arguments
from ..jit.references import check_distinct, find_refs, names_of_refs, replaced
from .ad import DontWant, GradRef, deliver


class _Signature:
    """The arguments of a function: the structure of their tree, and the leaves that are references."""

    def __init__(self, function: str, fun: Callable[..., Any], args: Sequence[Any]):
        self.function, self.name = function, arguments.fun_name(fun)
        self.leaves, self.tree = flatten(tuple(args))
        self.indices = find_refs(self.leaves)
        self.refs = [self.leaves[i] for i in self.indices]
        check_distinct(f"{self.name} for {function}", self.refs, names=lambda: names_of_refs(fun, args, {}))

    def values(self) -> list[Any]:
        """The leaves, with the values of references."""
        return replaced(self.leaves, self.indices, values(self.refs))

    def refs_among(self, what: str, leaves: Sequence[Any]) -> list[Ref]:
        """The references that are the tangents of the references."""
        chosen = [leaves[i] for i in self.indices]
        for ref, x in zip(self.refs, chosen, strict=True):
            if not isinstance(x, Ref):
                raise RefError(
                    f"{self.function} of {self.name}: the {what} of a reference of type {ref.aval} is {x!r:.60}",
                    instead=f"phlox.new_ref of the {what}",
                )
        return chosen

    def of_values(self, fun: Callable[..., Any], has_aux: bool) -> Callable[..., Any]:
        """`fun` as a function of the leaves, which returns ((result, final values of references), aux)."""

        @wraps(fun)
        def call(*leaves: Any) -> tuple[Any, Any]:
            parts = [Ref(AbstractRef(typeof(leaves[i]).strong()), leaves[i]) for i in self.indices]
            result = fun(*self.tree.unflatten(replaced(leaves, self.indices, parts)))
            if has_aux and not (isinstance(result, tuple | list) and len(result) == 2):
                raise ArgumentError(f"{self.function} with has_aux=True: {self.name} must return a pair (out, aux)")
            out, aux = result if has_aux else (result, None)
            return (out, values(parts)), aux

        return call


def jvp_of_refs(
    jvp: Callable[..., Any], fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool
) -> Any:
    """`jvp`, the function of arrays, for primals that are references, and their tangents too."""
    signature = _Signature("jvp", fun, primals)
    leaves = pytree.tree_leaves(tuple(tangents))
    tangent_refs = signature.refs_among("tangent", leaves)
    tangent_values = replaced(leaves, signature.indices, values(tangent_refs))
    call = signature.of_values(fun, has_aux)
    (out, state), (tangent, state_tangents), aux = jvp(call, signature.values(), tangent_values, has_aux=True)
    write_all(signature.refs, state)
    write_all(tangent_refs, state_tangents)
    return (out, tangent, aux) if has_aux else (out, tangent)


def linearize_of_refs(
    linearize: Callable[..., Any], fun: Callable[..., Any], primals: Sequence[Any], has_aux: bool
) -> Any:
    """`linearize`, the function of arrays, for primals that are references, and their tangents too."""
    signature = _Signature("linearize", fun, primals)
    (out, state), linear, aux = linearize(signature.of_values(fun, has_aux), *signature.values(), has_aux=True)
    write_all(signature.refs, state)

    def apply(linear_of_values: Any, *tangents: Any) -> Any:
        leaves, tree = flatten(tangents)
        pytree.check_same(
            signature.tree, tree, f"the linear function of {signature.name} got tangents of another structure"
        )
        tangent_refs = signature.refs_among("tangent", leaves)
        tangent, state_tangents = linear_of_values(*replaced(leaves, signature.indices, values(tangent_refs)))
        write_all(tangent_refs, state_tangents)
        return tangent

    result = out, Partial(apply, linear)
    return (*result, aux) if has_aux else result


class RefPullback:
    """The pullback of a function with references among its arguments; `with_refs` takes those for their cotangents."""

    def __init__(self, name: str, in_tree: PyTreeDef, ref_indices: tuple[int, ...], pullback: Any):
        self.name, self.in_tree, self.ref_indices, self.pullback = name, in_tree, ref_indices, pullback

    def __call__(self, cotangent: Any) -> Any:
        """Raises `RefError`."""
        raise RefError(
            f"vjp of {self.name}: argument leaf {self.ref_indices[0]} is Ref-typed, so its gradient must be "
            "accumulated into a ref, and none is given",
            instead="pullback.with_refs(...)(cotangent), with a reference in the place of each reference",
        )

    def with_refs(self, *destinations: Any) -> Callable[[Any], Any]:
        """The map from a cotangent of the result, with a destination for the gradient of each leaf of the arguments.

        The destination of a reference is a reference, which holds the cotangent of the last value before the call, and
        that of the first value after it; or `DontWant()`. Other destinations are as in `Pullback.with_refs`.
        """
        leaves, tree = flatten(destinations)
        what = "unexpected tree structure in the arguments to a VJP function's `with_refs` method, unlike those of"
        pytree.check_same(self.in_tree, tree, f"{what} {self.name}")
        targets = [leaves[i] for i in self.ref_indices]
        for x in targets:
            if not isinstance(x, Ref | DontWant):
                raise RefError(
                    f"with_refs: the gradient of a Ref-typed argument can't be returned as a value, got {x!r:.60}",
                    instead="a reference",
                )
        avals = [self.pullback.in_avals[i] for i in self.ref_indices]

        def state_cotangent(target: Any, aval: Any) -> Any:
            if isinstance(target, Ref):
                return values([target])[0]
            return np.zeros(aval.shape, aval.dtype if dtypes.is_inexact(aval.dtype) else dtypes.float0)

        def deliver_all(cotangent: Any) -> Any:
            state = [state_cotangent(target, aval) for target, aval in zip(targets, avals, strict=True)]
            gradients = list(self.pullback((cotangent, state)))
            of_arrays = [DontWant() if i in self.ref_indices else x for i, x in enumerate(leaves)]
            results = deliver(gradients, of_arrays)
            for i, target in zip(self.ref_indices, targets, strict=True):
                if isinstance(target, Ref):
                    write_all([target], [gradients[i]])
                    results[i] = GradRef()
            return self.in_tree.unflatten(results)

        return deliver_all

    def __repr__(self) -> str:
        return f"<vjp of {self.name}>"


pytree.register_pytree_node(
    RefPullback,
    lambda p: ((p.pullback,), (p.name, p.in_tree, p.ref_indices)),
    lambda fixed, children: RefPullback(*fixed, *children),
)


def vjp_of_refs(vjp: Callable[..., Any], fun: Callable[..., Any], primals: Sequence[Any], has_aux: bool) -> Any:
    """`vjp`, the function of arrays, for primals that are references."""
    signature = _Signature("vjp", fun, primals)
    (out, state), pullback, aux = vjp(signature.of_values(fun, has_aux), *signature.values(), has_aux=True)
    write_all(signature.refs, state)
    result = out, RefPullback(signature.name, signature.tree, signature.indices, pullback)
    return (*result, aux) if has_aux else result
