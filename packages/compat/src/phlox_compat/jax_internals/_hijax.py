"""``jax.experimental.hijax``: values with types of their own, and operations on them.

JAX traces such a value as one tracer of its own type. Here the class of the value is a container: transformations take
the arrays out of it with `HiType.lower_val`, and functions see a value of the class whose arrays are traced. So all
transformations work on these values as on pytrees, and operations run their `HiPrim.expand`, with the derivative and
batching rules that they define.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn

from phlox import custom_jvp, custom_vjp, typeof as typeof_array
from phlox.core import Tracer
from phlox.custom_batching import custom_vmap
from phlox.custom_derivatives import SymbolicZero, custom_vjp_primal_tree_values
from phlox.extend import ShapedArray as ShapedArray, Zero as Zero, insert_axis, instantiate, move_axis
from phlox.tree_util import register_pytree_node, tree_flatten, tree_leaves, tree_map, tree_unflatten

from .._core import AbstractRef as AbstractRef, GradAccum, JaxprTrace, ValAccum, current_trace

__all__ = ["AbstractRef", "GradAccum", "ShapedArray", "ValAccum", "Zero"]


def _must_define(ty: Any, method: str, purpose: str) -> NoReturn:
    raise NotImplementedError(f"{purpose} requires {type(ty).__name__} to implement the `{method}` method")


class AbstractValue:
    """The base of types."""


class HiType(AbstractValue):
    """The type of a value with a type of its own. `lower_val` and `raise_val` convert between the value and arrays."""

    def __hash__(self) -> int:
        _must_define(self, "__hash__", "type equality")

    def __eq__(self, other: object) -> bool:
        _must_define(self, "__eq__", "type equality")

    def lo_ty(self) -> list[Any]:
        """The types of the arrays."""
        _must_define(self, "lo_ty", "lowering (e.g. under jit)")

    def lower_val(self, hi_val: Any, /) -> list[Any]:
        """The arrays of a value."""
        _must_define(self, "lower_val", "lowering values (e.g. under jit)")

    def raise_val(self, *lo_vals: Any) -> Any:
        """The value of these arrays."""
        _must_define(self, "raise_val", "raising lowered values (e.g. under jit)")

    def to_tangent_aval(self) -> Any:
        """The type of tangents."""
        _must_define(self, "to_tangent_aval", "autodiff")

    def to_ct_aval(self) -> Any:
        """The type of cotangents."""
        return self.to_tangent_aval()


class MappingSpec:
    """How `vmap` maps a value; here its arrays are mapped, each along the axis that ``in_axes`` says."""


class HiPspec:
    """How `shard_map` splits a value; here its arrays are split by specs of their own."""


_types: dict[type, Callable[[Any], Any]] = {}


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Registers a class of values, whose types `typeof_fn` returns."""
    _types[val_cls] = typeof_fn

    def parts(value: Any) -> tuple[list[Any], Any]:
        hi_type = typeof_fn(value)
        return hi_type.lower_val(value), hi_type

    register_pytree_node(val_cls, parts, lambda hi_type, arrays: hi_type.raise_val(*arrays))


def typeof(x: Any) -> Any:
    """The type of an array, or of a value with a type of its own."""
    typeof_fn = _types.get(type(x))
    return typeof_array(x) if typeof_fn is None else typeof_fn(x)


get_aval = typeof

# Types of arrays answer the same questions: nnx asks the leaves of a variable, which may be either.
for _type in (ShapedArray, AbstractRef):
    _type.lo_ty = lambda self: [self]  # type: ignore[union-attr]
    _type.lower_val = lambda _self, value: [value]  # type: ignore[union-attr]
    _type.raise_val = lambda _self, value: value  # type: ignore[union-attr]
    _type.to_ct_aval = lambda self: self.to_tangent_aval()  # type: ignore[union-attr]


class RefAccum(GradAccum):
    """Collects a cotangent in a reference, in JAX; here as a value."""


class NullAccum(GradAccum):
    """Drops the cotangent."""

    def accum(self, x: Any) -> None:
        """Does nothing."""


def instantiate_zeros(tangent: Any) -> Any:
    """`tangent`, or an array of zeros for a symbolic zero."""
    return instantiate(tangent)


def is_undefined_primal(x: Any) -> bool:
    """Whether `x` stands for a linear argument."""
    from phlox.extend import is_linear

    return is_linear(x)


class HiPrim:
    """An operation on values with types of their own, on arrays, or on both.

    A subclass sets `in_avals`, `out_aval` and `params` before it calls this ``__init__``, and defines `expand` in terms
    of other operations. `jvp`, or `vjp_fwd` with `vjp_bwd_retval` or `vjp_bwd`, or `lin` with `linearized`, are its
    derivatives; `batch` replaces the batching of `expand`.
    """

    in_avals: tuple[Any, ...]
    out_aval: Any
    params: dict[str, Any]
    effects: frozenset[Any] = frozenset()

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"subclass __init__ should set `self.{name}`")
        self.in_avals_flat, self.in_tree = tree_flatten(self.in_avals)
        self.out_avals_flat, self.out_tree = tree_flatten(self.out_aval)
        self.__dict__.update(self.params)
        self.check(*self.in_avals)

    def check(self, *arg_tys: Any) -> None:
        """Raises for types that the operation does not take."""

    def expand(self, *args: Any) -> Any:
        """The operation, in terms of other operations."""
        raise NotImplementedError(f"subclass {type(self)} must implement `expand`")

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> Any:
        """(result, residuals)."""
        raise NotImplementedError(
            f"for grad support, subclass {type(self)} must implement `vjp_fwd`, or derive its reverse-mode rules from "
            "its jvp or lin rules by setting `vjp_fwd, vjp_bwd_retval = vjp_from_jvp` (or `= vjp_from_lin`)"
        )

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> Any:
        """Adds the cotangents of the arguments to accumulators."""
        for accum, ct in zip(arg_accums, self.vjp_bwd_retval(res, outgrad), strict=True):
            accum.accum(ct)

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        """The cotangents of the arguments."""
        raise NotImplementedError(
            f"for grad support, subclass {type(self)} must implement `vjp_bwd` or `vjp_bwd_retval`, or derive its "
            "reverse-mode rules by setting `vjp_fwd, vjp_bwd_retval = vjp_from_jvp` (or `= vjp_from_lin`)"
        )

    def jvp(self, primals: Any, tangents: Any) -> Any:
        """(result, tangent of the result)."""
        raise NotImplementedError(f"for jvp support, subclass {type(self)} must implement `jvp`")

    def lin(self, nzs_in: Any, *primals: Any) -> Any:
        """(result, residuals)."""
        raise NotImplementedError(f"for linearize support, subclass {type(self)} must implement `lin` and `linearized`")

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        """The tangent of the result."""
        raise NotImplementedError(f"for linearize support, subclass {type(self)} must implement `lin` and `linearized`")

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> Any:
        """Adds the cotangents of linear arguments to accumulators; here `expand` is transposed."""
        raise NotImplementedError(f"for transpose support, subclass {type(self)} must implement `transpose`")

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        """(batched result, its dims)."""
        raise NotImplementedError(f"for vmap support, subclass {type(self)} must implement `batch`")

    def staging(self, trace: Any, source_info: Any, *args: Any) -> Any:
        """The results of the operation while a program is staged."""
        return self._apply(*args)

    def __call__(self, *args: Any) -> Any:
        trace = current_trace.get()
        if type(trace) is JaxprTrace:
            return self.staging(trace, None, *args)
        return self._apply(*args)

    def _apply(self, *args: Any) -> Any:
        if not any(isinstance(x, Tracer) for x in tree_leaves(args)):
            return self.expand(*args)
        function: Callable[..., Any] = self.expand
        # Dims of values with types of their own are specs of the user's, which a tree of arrays does not tell.
        if self._defines("batch") and not self._has_hi_types():
            function = self._with_batch_rule(function)
        return self._with_derivative(function)(*args)

    def _defines(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(HiPrim, method)

    def _has_hi_types(self) -> bool:
        return any(isinstance(ty, HiType) for ty in (*self.in_avals_flat, *self.out_avals_flat))

    def _nonzeros(self, args: Any) -> Any:
        return tree_map(lambda _x: True, args)

    def _with_batch_rule(self, function: Callable[..., Any]) -> Callable[..., Any]:
        batched = custom_vmap(function)

        @batched.def_vmap
        def rule(axis_size: int, in_batched: Any, *args: Any) -> Any:
            dims = tree_map(lambda is_batched: 0 if is_batched else None, tuple(in_batched))
            axis = SimpleNamespace(name=None, size=axis_size, spmd_name=None, explicit_mesh_axis=None)
            out, out_dims = self.batch(axis, args, dims)
            values, tree = tree_flatten(out)
            flat_dims = tree_leaves(out_dims, is_leaf=lambda d: d is None)
            flat_dims = flat_dims * len(values) if len(flat_dims) == 1 else flat_dims
            moved = [x if d is None else move_axis(x, d, 0) for x, d in zip(values, flat_dims, strict=True)]
            return tree_unflatten(tree, moved), tree_unflatten(tree, [d is not None for d in flat_dims])

        return batched

    def _with_derivative(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if self._defines("jvp") or self._defines("lin"):
            forward = custom_jvp(function)
            rule = self.jvp if self._defines("jvp") else lambda primals, tangents: jvp_from_lin(self, primals, tangents)
            forward.defjvp(lambda primals, tangents: rule(primals, tangents))
            return forward
        reverse = custom_vjp(function)
        # The leaves of values with types of their own may only be arrays.
        reverse.defvjp_with_logs(self._forward, self._cotangents, symbolic_zeros=not self._has_hi_types())
        return reverse

    def _forward(self, *args: Any) -> tuple[Any, Any]:
        if self._has_hi_types():
            return self.vjp_fwd(self._nonzeros(args), *args)[:2]
        nonzeros = tree_map(lambda primal: primal.perturbed, args)
        return self.vjp_fwd(nonzeros, *custom_vjp_primal_tree_values(args))[:2]

    def _cotangents(self, res: Any, ct: Any) -> tuple[tuple[Any, ...], Any]:
        """(cotangents of the arguments, logs of the rule)."""
        ct = tree_map(lambda x: Zero(x.aval) if type(x) is SymbolicZero else x, ct)
        logs = None
        if self._defines("vjp_bwd"):
            accums = tree_map(ValAccum, self.in_avals)
            logs = self.vjp_bwd(res, ct, *accums)
            cts: Any = tree_map(lambda accum: accum.freeze(), accums)
        else:
            cts = self.vjp_bwd_retval(res, ct)
        return tuple(None if type(x) is Zero else x for x in cts), logs

    def __hash__(self) -> int:
        return hash((type(self).__name__, tuple(self.params.items()), self.effects))

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, HiPrim) and type(self) is type(other)
        return same and (self.params, self.effects) == (other.params, other.effects)  # type: ignore[attr-defined]


VJPHiPrimitive = HiPrim  # its name before JAX 0.12


def jvp_from_lin(prim: HiPrim, primals: Any, tangents: Any) -> Any:
    """The method `jvp` of an operation that defines `lin` and `linearized`."""
    out, residuals, *_rest = prim.lin(prim._nonzeros(tangents), *primals)
    return out, prim.linearized(residuals, *tangents)


def _fwd_from_jvp(prim: HiPrim, nzs_in: Any, *primals: Any) -> Any:
    from phlox import vjp

    return vjp(prim._with_derivative(prim.expand), *primals)


#: the pair (`vjp_fwd`, `vjp_bwd_retval`) of an operation that defines `jvp`, or `lin`
vjp_from_jvp = (_fwd_from_jvp, lambda _prim, pullback, ct: pullback(ct))
vjp_from_lin = vjp_from_jvp


def _lin_from_jvp(prim: HiPrim, nzs_in: Any, *primals: Any) -> Any:
    return prim.expand(*primals), primals


#: the pair (`lin`, `linearized`) of an operation that defines `jvp`
linearize_from_jvp = (_lin_from_jvp, lambda prim, primals, *tangents: prim.jvp(primals, tangents)[1])


def bdims_at_front(axis_data: Any, args: Any, dims: Any) -> Any:
    """The arguments with their mapped axes in front; those that are not mapped are repeated."""
    flat, tree = tree_flatten(args)
    flat_dims = tree_leaves(dims, is_leaf=lambda d: d is None)
    sizes = [
        insert_axis(x, axis_data.size, 0) if d is None else move_axis(x, d, 0)
        for x, d in zip(flat, flat_dims, strict=True)
    ]
    return tree_unflatten(tree, sizes)


def vmap_rule(axis_data: Any, f: Callable[..., Any], in_axes: Any, out_axes: Any, *, sum_match: bool = False) -> Any:
    """`f` mapped along the axis of a `batch` rule."""
    from phlox import vmap

    return vmap(f, in_axes=in_axes, out_axes=out_axes, axis_size=axis_data.size, axis_name=axis_data.name)


class _Effects:
    def add_type(self, *_args: Any) -> None:
        """Accepted: libraries name their effects when they are imported."""


control_flow_allowed_effects = _Effects()


class aval_method:
    """A method of tracers that their type defines; the classes of values have it themselves."""

    def __init__(self, fun: Callable[..., Any]):
        self.fun = fun


def aval_property(fget: Callable[..., Any]) -> property:
    """A property."""
    return property(fget)
