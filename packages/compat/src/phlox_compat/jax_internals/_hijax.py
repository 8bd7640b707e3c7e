"""``jax.experimental.hijax``: values with types of their own, and operations on them.

JAX traces such a value as one tracer of its own type. Here the class of the value is a container: transformations take
the arrays out of it with `HiType.lower_val`, and functions see a value of the class whose arrays are traced. So all
transformations work on these values as on pytrees, and operations run their `HiPrim.expand`, with the derivative and
batching rules that they define.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple, NoReturn

from phlox import custom_jvp, custom_vjp
from phlox.core import Tracer
from phlox.custom_batching import custom_vmap
from phlox.extend import ShapedArray as ShapedArray, Zero as Zero, insert_axis, move_axis
from phlox.tree_util import register_static, tree_flatten, tree_leaves, tree_unflatten

from .._core import AbstractRef as AbstractRef, GradAccum, JaxprTrace, ValAccum, current_trace
from ._hijax_types import (
    AbstractValue as AbstractValue,
    HiPspec as HiPspec,
    HiType as HiType,
    MappingSpec as MappingSpec,
    arrays_of,
    arrays_of_tangent,
    carrier_count,
    instantiate_zeros as instantiate_zeros,
    register_hitype as register_hitype,
    tangent_of,
    typeof as typeof,
    value_of,
    with_zeros,
)

__all__ = ["AbstractRef", "GradAccum", "ShapedArray", "ValAccum", "Zero"]

get_aval = typeof


class RefAccum(GradAccum):
    """Collects a cotangent in a reference, in JAX; here as a value."""


class NullAccum(GradAccum):
    """Drops the cotangent."""

    def accum(self, x: Any) -> None:
        """Does nothing."""


def is_undefined_primal(x: Any) -> bool:
    """Whether `x` stands for a linear argument."""
    from phlox.extend import is_linear

    return is_linear(x)


# Static: in the residuals of a loop, a bool would become an array.
@register_static
class _Differentiated(NamedTuple):
    """For each argument whether it is differentiated, and whether the result has a derivative."""

    arguments: tuple[bool, ...]
    result: bool


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
        leaves = tree_leaves(args)
        has_refs = any(isinstance(ty, AbstractRef) for ty in self.in_avals_flat)
        if has_refs or not any(isinstance(x, Tracer) for x in leaves):
            return self.expand(*args)
        function: Callable[..., Any] = self._of_arrays(self.expand)
        # Dims of values with types of their own are specs of the user's, which a tree of arrays does not tell.
        if self._defines("batch") and not self._has_hi_types():
            function = self._with_batch_rule(function)
        # `tree_leaves` has the arrays of values, with their carriers.
        return self._results(self._with_derivative(function)(*leaves))

    def _defines(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(HiPrim, method)

    def _has_hi_types(self) -> bool:
        return any(isinstance(ty, HiType) for ty in (*self.in_avals_flat, *self.out_avals_flat))

    def _of_arrays(self, function: Callable[..., Any]) -> Callable[..., list[Any]]:
        """`function` from the arrays of its arguments to those of its result."""
        return lambda *arrays: self._result_arrays(function(*self._arguments(arrays)))

    def _split(self, avals: Sequence[Any], arrays: Sequence[Any]) -> list[list[Any]]:
        """The arrays of each value."""
        parts, rest = [], list(arrays)
        for ty in avals:
            width = len(ty.lo_ty()) + carrier_count(ty)
            parts.append(rest[:width])
            rest = rest[width:]
        return parts

    def _arguments(self, arrays: Sequence[Any], convert: Callable[[Any, Any], Any] = value_of) -> Any:
        parts = zip(self.in_avals_flat, self._split(self.in_avals_flat, arrays), strict=True)
        return self.in_tree.unflatten([convert(ty, part) for ty, part in parts])

    def _results(self, arrays: Sequence[Any], convert: Callable[[Any, Any], Any] = value_of) -> Any:
        parts = zip(self.out_avals_flat, self._split(self.out_avals_flat, arrays), strict=True)
        return self.out_tree.unflatten([convert(ty, part) for ty, part in parts])

    def _argument_arrays(self, args: Any, convert: Callable[[Any, Any], list[Any]]) -> list[Any]:
        pairs = zip(self.in_avals_flat, self.in_tree.flatten_up_to(args), strict=True)
        return [x for ty, value in pairs for x in convert(ty, value)]

    def _result_arrays(self, out: Any, convert: Callable[[Any, Any], list[Any]] = arrays_of) -> list[Any]:
        pairs = zip(self.out_avals_flat, self.out_tree.flatten_up_to(out), strict=True)
        return [x for ty, value in pairs for x in convert(ty, value)]

    def _with_batch_rule(self, function: Callable[..., Any]) -> Callable[..., Any]:
        batched = custom_vmap(function)

        @batched.def_vmap
        def rule(axis_size: int, in_batched: Any, *arrays: Any) -> Any:
            dims = self.in_tree.unflatten([0 if is_batched else None for is_batched in in_batched])
            axis = SimpleNamespace(name=None, size=axis_size, spmd_name=None, explicit_mesh_axis=None)
            out, out_dims = self.batch(axis, self._arguments(arrays), dims)
            values = self.out_tree.flatten_up_to(out)
            flat_dims = tree_leaves(out_dims, is_leaf=lambda d: d is None)
            flat_dims = flat_dims * len(values) if len(flat_dims) == 1 else flat_dims
            moved = [x if d is None else move_axis(x, d, 0) for x, d in zip(values, flat_dims, strict=True)]
            return moved, [d is not None for d in flat_dims]

        return batched

    def _with_derivative(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if self._defines("jvp") or self._defines("lin"):
            forward = custom_jvp(function)
            forward.defjvp(self._tangents, symbolic_zeros=True)
            return forward
        reverse = custom_vjp(function)
        reverse.defvjp_with_logs(self._forward, self._cotangents, symbolic_zeros=True)
        return reverse

    def _tangents(self, primals: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
        rule = self.jvp if self._defines("jvp") else lambda *both: jvp_from_lin(self, *both)
        out, out_tangents = rule(self._arguments(primals), self._arguments(tangents, tangent_of))
        outs = self._result_arrays(out)
        return outs, with_zeros(outs, self._result_arrays(out_tangents, arrays_of_tangent))

    def _forward(self, *primals: Any) -> tuple[list[Any], Any]:
        """(results, residuals)."""
        flags = tuple(any(x.perturbed for x in part) for part in self._split(self.in_avals_flat, primals))
        args = self._arguments([x.value for x in primals])
        out, residuals, *rest = self.vjp_fwd(self.in_tree.unflatten(flags), *args)
        nonzero, structured = rest[0] if rest else True, rest[1] if len(rest) > 1 else None
        if structured is not None and not self._defines("vjp_bwd"):
            raise TypeError(
                f"{type(self).__name__} returned structured residuals from `vjp_fwd`, which requires overriding "
                "`vjp_bwd(res, sres, outgrad, *arg_accums)`"
            )
        differentiated = _Differentiated(flags, any(tree_leaves(nonzero)))
        return self._result_arrays(out), (residuals, structured, differentiated)

    def _cotangents(self, saved: Any, arrays: Any) -> tuple[tuple[Any, ...], Any]:
        """(cotangents of the arrays of the arguments, logs of the rule)."""
        residuals, structured, (flags, is_nonzero) = saved
        ct = self._results(arrays, tangent_of)
        logs = None
        if not is_nonzero:
            cts = self.in_tree.unflatten([None] * len(flags))
        elif self._defines("vjp_bwd"):
            kinds = [ValAccum if flag else NullAccum for flag in flags]
            accums = [kind(ty.to_ct_aval()) for kind, ty in zip(kinds, self.in_avals_flat, strict=True)]
            residuals = (residuals,) if structured is None else (residuals, structured)
            logs = self.vjp_bwd(*residuals, ct, *self.in_tree.unflatten(accums))
            if not isinstance(logs, dict | None):
                raise TypeError(
                    f"{type(self).__name__}.vjp_bwd should return None or a dict of backward-pass log entries, got "
                    f"{type(logs).__name__}"
                )
            cts = self.in_tree.unflatten([accum.freeze() for accum in accums])
        else:
            cts = self.vjp_bwd_retval(residuals, ct)
        return tuple(self._argument_arrays(cts, arrays_of_tangent)), logs

    def pp_params(self) -> dict[str, Any]:
        """The parameters that are shown."""
        return {name: value for name, value in self.params.items() if not name.startswith("_")}

    def __repr__(self) -> str:
        shown = " ".join(f"{name}={getattr(x, '__name__', x)}" for name, x in self.pp_params().items())
        return f"{type(self).__name__}[{shown}]" if shown else type(self).__name__

    def __hash__(self) -> int:
        return hash((type(self).__name__, tuple(self.params.items()), self.effects))

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, HiPrim) and type(self) is type(other)
        return same and (self.params, self.effects) == (other.params, other.effects)  # type: ignore[attr-defined]


VJPHiPrimitive = HiPrim  # its name before JAX 0.12


def jvp_from_lin(prim: HiPrim, primals: Any, tangents: Any) -> Any:
    """The method `jvp` of an operation that defines `lin` and `linearized`."""
    if type(prim).lin is _lin_from_jvp:
        raise TypeError(
            f"subclass {type(prim)} can't set both `jvp = jvp_from_lin` and `lin, linearized = linearize_from_jvp`, "
            "since each would be defined in terms of the other"
        )
    flags = [type(t) is not Zero for t in prim.in_tree.flatten_up_to(tangents)]
    out, residuals, *rest = prim.lin(prim.in_tree.unflatten(flags), *primals)
    return out, prim.linearized(residuals, *rest[1:], *tangents)


class _Pair(NamedTuple):
    """Two rules, which are unpacked in the body of a class."""

    first: Callable[..., Any]
    second: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("this is a pair of rules, not a single rule: unpack it in the class body")


def _fwd_from_jvp(prim: HiPrim, nzs_in: Any, *primals: Any) -> Any:
    from phlox import vjp

    return vjp(prim, *primals)


def _lin_from_jvp(prim: HiPrim, nzs_in: Any, *primals: Any) -> Any:
    return prim.expand(*primals), primals


#: the pair (`vjp_fwd`, `vjp_bwd_retval`) of an operation that defines `jvp`, or `lin`
vjp_from_jvp = _Pair(_fwd_from_jvp, lambda _prim, pullback, ct: pullback(ct))
vjp_from_lin = vjp_from_jvp
#: the pair (`lin`, `linearized`) of an operation that defines `jvp`
linearize_from_jvp = _Pair(_lin_from_jvp, lambda prim, primals, *tangents: prim.jvp(primals, tangents)[1])


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
