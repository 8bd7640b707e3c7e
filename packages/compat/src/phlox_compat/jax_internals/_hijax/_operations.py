"""Operations on values with types of their own, on arrays, or on both.

They run their `HiPrim.expand`, with the derivative and batching rules that they define.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple, NoReturn

from phlox import custom_jvp, custom_vjp, typeof as typeof_array
from phlox.core import Tracer
from phlox.custom_batching import custom_vmap
from phlox.custom_derivatives import SymbolicZero, linear_call
from phlox.extend import Zero, insert_axis, instantiate, move_axis
from phlox.extend.core import unmapped_aval
from phlox.tree_util import register_static, tree_flatten, tree_leaves, tree_map, tree_unflatten

from ..._core import AbstractRef, BatchTracer, GradAccum, JaxprTrace, TangentTrace, ValAccum, current_trace
from ._types import HiType, MappingSpec, arrays_of, carrier_types, tangent_of, tangents_of, value_of


class RefAccum(GradAccum):
    """Collects a cotangent in a reference, in JAX; here as a value."""


class NullAccum(GradAccum):
    """Drops the cotangent."""

    def accum(self, x: Any) -> None:
        """Does nothing."""


def instantiate_zeros(tangent: Any) -> Any:
    """`tangent`, or the zero of its type for a symbolic zero."""
    if type(tangent) is Zero and isinstance(tangent.aval, HiType):
        return tangent.aval.vspace_zero()
    return instantiate(tangent)


def is_undefined_primal(x: Any) -> bool:
    """Whether `x` stands for a linear argument."""
    from phlox.extend import is_linear

    return is_linear(x)


class _TangentAccum(GradAccum):
    """Collects a cotangent that is a value with a type of its own."""

    aval: Any

    def accum(self, x: Any) -> None:
        """Adds a cotangent."""
        if not _is_zero(x):
            self.val = x if type(self.val) is Zero else self.aval.vspace_add(self.val, x)


def _accumulator(ty: Any, nonzero: bool) -> GradAccum:
    if not nonzero:
        return NullAccum(ty)
    ct_type: Any = ty.to_ct_aval()
    kind = _TangentAccum if isinstance(ct_type, HiType) else ValAccum
    return kind(ct_type)


def _with_zeros(tangents: Sequence[Any]) -> list[Any]:
    return [Zero(x.aval) if type(x) is SymbolicZero else x for x in tangents]


def _is_zero(ct: Any) -> bool:
    return ct is None or type(ct) is Zero


def _zero_tangent(x: Any) -> Any:
    return instantiate(Zero(typeof_array(x).to_tangent_aval()))


def _is_linear_input(x: Any) -> bool:
    """Whether `x` stands for a tangent of which a linear function is recorded."""
    while type(x) is BatchTracer:
        x = x.value
    return isinstance(x, Tracer) and type(x.owner) is TangentTrace


def _has_leading_axis_spec(ty: Any) -> bool:
    return not isinstance(ty, HiType) or type(ty).leading_axis_spec is not HiType.leading_axis_spec


def _parts(ty: Any, value: Any) -> list[Any]:
    return arrays_of(ty, value) if isinstance(ty, HiType) else [value]


def _value(ty: Any, arrays: Sequence[Any]) -> Any:
    return value_of(ty, arrays) if isinstance(ty, HiType) else arrays[0]


def _groups(types: Sequence[Any], arrays: Sequence[Any]) -> list[list[Any]]:
    """The arrays of each argument or result."""
    groups, rest = [], list(arrays)
    for ty in types:
        count = len(ty.lo_ty()) + len(carrier_types(ty)) if isinstance(ty, HiType) else 1
        groups.append(rest[:count])
        rest = rest[count:]
    return groups


def _values(types: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
    return [_value(ty, part) for ty, part in zip(types, _groups(types, arrays), strict=True)]


# Static: in the residuals of a loop, a bool would become an array.
@register_static
class _Nonzeros(NamedTuple):
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

    def vjp_bwd_retval_logs(self, res: Any, outgrad: Any, /) -> Any:
        """(cotangents of the arguments, logs)."""
        return self.vjp_bwd_retval(res, outgrad), None

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
        """Adds the cotangents of linear arguments to accumulators, which stand in their place."""
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
        if any(isinstance(ty, AbstractRef) for ty in self.in_avals_flat):
            return self.expand(*args)
        arrays = self._arrays(self.in_avals_flat, self.in_tree.flatten_up_to(args))
        if not any(isinstance(x, Tracer) for x in arrays):
            return self.expand(*args)
        is_linear = list(map(_is_linear_input, arrays))
        if any(is_linear) and self._defines("transpose"):
            return self._results(self._with_transpose(arrays, is_linear))
        function: Callable[..., Any] = self._expand_arrays
        if self._defines("batch") and all(map(_has_leading_axis_spec, (*self.in_avals_flat, *self.out_avals_flat))):
            function = self._with_batch_rule(function)
        return self._results(self._with_derivative(function)(*arrays))

    def _defines(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(HiPrim, method)

    # Transformations see functions of arrays. Those of an argument or result stand together, see `arrays_of`.

    def _arrays(self, types: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        return [x for ty, value in zip(types, values, strict=True) for x in _parts(ty, value)]

    def _arguments(self, arrays: Sequence[Any]) -> Any:
        return tree_unflatten(self.in_tree, _values(self.in_avals_flat, arrays))

    def _results(self, arrays: Sequence[Any]) -> Any:
        return tree_unflatten(self.out_tree, _values(self.out_avals_flat, arrays))

    def _result_arrays(self, out: Any) -> list[Any]:
        return self._arrays(self.out_avals_flat, self.out_tree.flatten_up_to(out))

    def _expand_arrays(self, *arrays: Any) -> list[Any]:
        return self._result_arrays(self.expand(*self._arguments(arrays)))

    def _with_batch_rule(self, function: Callable[..., Any]) -> Callable[..., Any]:
        batched = custom_vmap(function)

        @batched.def_vmap
        def rule(axis_size: int, in_batched: Any, *arrays: Any) -> Any:
            values, dims = [], []
            for ty, part, flags in zip(
                self.in_avals_flat,
                _groups(self.in_avals_flat, arrays),
                _groups(self.in_avals_flat, in_batched),
                strict=True,
            ):
                is_mapped = any(flags)
                if isinstance(ty, HiType) and is_mapped:
                    part = [x if flag else insert_axis(x, axis_size, 0) for x, flag in zip(part, flags, strict=True)]
                    spec = ty.leading_axis_spec()
                    values.append(value_of(ty.inc_rank(axis_size, spec), part))
                    dims.append(spec)
                else:
                    values.append(_value(ty, part))
                    dims.append(0 if is_mapped else None)
            axis = SimpleNamespace(name=None, size=axis_size, spmd_name=None, explicit_mesh_axis=None)
            in_dims = tree_unflatten(self.in_tree, dims)
            out, out_dims = self.batch(axis, tree_unflatten(self.in_tree, values), in_dims)
            moved, flags = [], []
            is_one = out_dims is None or isinstance(out_dims, int | MappingSpec)
            each_dim = [out_dims] * len(self.out_avals_flat) if is_one else self.out_tree.flatten_up_to(out_dims)
            for ty, value, d in zip(self.out_avals_flat, self.out_tree.flatten_up_to(out), each_dim, strict=True):
                is_hi = isinstance(ty, HiType)
                part = _parts(ty.inc_rank(axis_size, d) if is_hi and d is not None else ty, value)
                moved += part if is_hi or d is None else [move_axis(part[0], d, 0)]
                flags += [d is not None] * len(part)
            return moved, flags

        return batched

    def _with_transpose(self, arrays: Sequence[Any], is_linear: Sequence[bool]) -> list[Any]:
        """The arrays of the result, as a linear function of the arrays that are marked."""
        linear = [x for x, moves in zip(arrays, is_linear, strict=True) if moves]
        others = [None if moves else x for x, moves in zip(arrays, is_linear, strict=True)]

        def run(others: Sequence[Any], linear: Sequence[Any]) -> list[Any]:
            values = iter(linear)
            return self._expand_arrays(
                *[next(values) if moves else x for x, moves in zip(others, is_linear, strict=True)]
            )

        def transposed(others: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            flags = [any(part) for part in _groups(self.in_avals_flat, is_linear)]
            parts = _groups(self.in_avals_flat, others)
            args = [
                _accumulator(ty, True) if moves else _value(ty, part)
                for ty, moves, part in zip(self.in_avals_flat, flags, parts, strict=True)
            ]
            self.transpose(self._tangents(self.out_avals_flat, self.out_tree, cts), *tree_unflatten(self.in_tree, args))
            results = [
                ct
                for ty, moves, arg in zip(self.in_avals_flat, flags, args, strict=True)
                for ct in tangents_of(ty, arg.freeze() if moves else None)
            ]
            marked = [ct for ct, moves in zip(results, is_linear, strict=True) if moves]
            return [_zero_tangent(x) if ct is None else ct for x, ct in zip(linear, marked, strict=True)]

        out: list[Any] = linear_call(run, transposed, others, linear)
        return out

    def _with_derivative(self, function: Callable[..., Any]) -> Callable[..., Any]:
        reverse = custom_vjp(function)
        reverse.defvjp_with_logs(self._forward, self._cotangents, symbolic_zeros=True)
        if not self._defines("jvp") and not self._defines("lin"):
            return reverse
        forward = custom_jvp(function)
        forward.defjvp(self._tangent_rule, symbolic_zeros=True)
        # The rules that `vjp_from_jvp` stands for are what phlox does without rules for reverse mode.
        if self._defines("vjp_fwd") and type(self).vjp_fwd is not _fwd_from_jvp:
            forward.reverse = reverse
        return forward

    def _tangents(self, types: Sequence[Any], tree: Any, tangents: Sequence[Any]) -> Any:
        parts = _groups(types, tangents)
        return tree_unflatten(tree, [tangent_of(ty, part) for ty, part in zip(types, parts, strict=True)])

    def _tangent_rule(self, primals: Any, tangents: Any) -> Any:
        rule = self.jvp if self._defines("jvp") else lambda primals, tangents: jvp_from_lin(self, primals, tangents)
        in_tangents = self._tangents(self.in_avals_flat, self.in_tree, _with_zeros(tangents))
        out, tangent = rule(self._arguments(primals), in_tangents)
        arrays = self._result_arrays(out)
        parts = [
            part
            for ty, t in zip(self.out_avals_flat, self.out_tree.flatten_up_to(tangent), strict=True)
            for part in tangents_of(ty, t)
        ]
        return arrays, [_zero_tangent(x) if t is None else t for x, t in zip(arrays, parts, strict=True)]

    def _forward(self, *arrays: Any) -> tuple[Any, Any]:
        nonzeros = [any(x.perturbed for x in part) for part in _groups(self.in_avals_flat, arrays)]
        args = self._arguments([x.value for x in arrays])
        out, residuals, *rest = self.vjp_fwd(tree_unflatten(self.in_tree, nonzeros), *args)
        nonzero, structured = rest[0] if rest else True, rest[1] if len(rest) > 1 else None
        if structured is not None and not self._defines("vjp_bwd"):
            raise TypeError(
                f"{type(self).__name__} returned structured residuals from `vjp_fwd`, which requires overriding "
                "`vjp_bwd(res, sres, outgrad, *arg_accums)`"
            )
        return self._result_arrays(out), (residuals, structured, _Nonzeros(tuple(nonzeros), any(tree_leaves(nonzero))))

    def _cotangents(self, saved: Any, cts: Any) -> tuple[tuple[Any, ...], Any]:
        """(cotangents of the arrays of the arguments, logs of the rule)."""
        residuals, structured, (nonzeros, has_derivative) = saved
        ct = self._tangents(self.out_avals_flat, self.out_tree, _with_zeros(cts))
        logs = None
        if not has_derivative:
            results: Any = (None,) * len(self.in_avals)
        elif self._defines("vjp_bwd"):
            accums = list(map(_accumulator, self.in_avals_flat, nonzeros))
            residuals = (residuals,) if structured is None else (residuals, structured)
            logs = self.vjp_bwd(*residuals, ct, *tree_unflatten(self.in_tree, accums))
            if not isinstance(logs, dict | None):
                raise TypeError(
                    f"{type(self).__name__}.vjp_bwd should return None or a dict of backward-pass log entries, got "
                    f"{type(logs).__name__}"
                )
            results = tree_unflatten(self.in_tree, [accum.freeze() for accum in accums])
        else:
            results, logs = self.vjp_bwd_retval_logs(residuals, ct)
        # A cotangent that is None or zero stands for those of all arrays of an argument.
        each = [
            [None] * tree.num_leaves if _is_zero(x) else tree.flatten_up_to(x)
            for tree, x in zip(self.in_tree.children(), results, strict=True)
        ]
        values = [x for part in each for x in part]
        parts = [tangents_of(ty, None if _is_zero(x) else x) for ty, x in zip(self.in_avals_flat, values, strict=True)]
        return tuple(x for part in parts for x in part), logs

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
    nonzeros = [type(t) is not Zero for t in prim.in_tree.flatten_up_to(tangents)]
    out, residuals, *rest = prim.lin(tree_unflatten(prim.in_tree, nonzeros), *primals)
    return out, prim.linearized(residuals, *rest[1:], *tangents)


class _Pair(NamedTuple):
    """Two rules, which are unpacked in the body of a class."""

    first: Callable[..., Any]
    second: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("this is a pair of rules, not a single rule: unpack it in the class body")


def _fwd_from_jvp(prim: HiPrim, nzs_in: Any, *primals: Any) -> Any:
    from ._transformations import vjp

    return vjp(prim, *primals)


#: the pair (`vjp_fwd`, `vjp_bwd_retval`) of an operation that defines `jvp`, or `lin`
vjp_from_jvp = _Pair(_fwd_from_jvp, lambda _prim, pullback, ct: pullback(ct))
vjp_from_lin = vjp_from_jvp


def _lin_from_jvp(prim: HiPrim, nzs_in: Any, *primals: Any) -> Any:
    return prim.expand(*primals), primals


#: the pair (`lin`, `linearized`) of an operation that defines `jvp`
linearize_from_jvp = _Pair(_lin_from_jvp, lambda prim, primals, *tangents: prim.jvp(primals, tangents)[1])


def unmap_avals(axis_data: Any, avals: Any, dims: Any) -> Any:
    """The types of all values along the axis of a `batch` rule, from those of one."""

    def unmapped(ty: Any, d: Any) -> Any:
        return ty.inc_rank(axis_data.size, d) if isinstance(ty, HiType) else unmapped_aval(axis_data.size, d, ty)

    return tree_map(unmapped, avals, dims)


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
