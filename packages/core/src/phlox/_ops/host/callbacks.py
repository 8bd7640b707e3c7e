"""Primitives that call Python while a program runs: pure_callback, io_callback, and the two behind phlox.debug.

pure_callback   no effect: may be dropped, repeated and moved
io_callback     an effect: called exactly as often as the program says
debug_callback  an effect without results that follows its program through every transformation
debug_print     the same, for prints
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from ..._base import pytree
from ..._base.errors import DerivativeError, EffectError, MissingRuleError
from ..._base.pytree import PyTreeDef
from ..._ir.avals import ShapedArray, shaped
from ..._ir.effects import DebugEffect, Effects, IOEffect, OrderedDebugEffect, OrderedIOEffect, no_effects
from ..._ir.jaxpr import ClosedJaxpr, without
from ..._ir.key_uses import reads
from ..._ir.primitive import Primitive
from ..._ir.sharding_types import whole
from ..._trace.staging import stage
from ..._trace.trace import typeof
from ..._transform.array_operations import insert_axis, move_axis
from ..._transform.batch import BatchAxis, Dim
from ..._xla.array import logical
from ..._xla.callbacks import call_directly, call_host, checked, on_host
from ..._xla.host_values import as_array
from ..._xla.text import Function, Value
from ..control.scan import Scan


@dataclasses.dataclass(frozen=True)
class Callback:
    """A user's function of `(args, kwargs)` as a function of flat arrays.

    `fixed` has the leaves that are not arrays, by position; `keys` the avals of arrays of PRNG keys, by position.
    """

    fun: Callable[..., Any]
    in_tree: PyTreeDef
    fixed: tuple[tuple[int, Any], ...] = ()
    keys: tuple[ShapedArray | None, ...] = ()

    def __call__(self, *arrays: Any) -> list[Any]:
        if self.keys:
            arrays = tuple(x if a is None else logical(x, a) for x, a in zip(arrays, self.keys, strict=True))
        leaves = list(arrays)
        # In ascending order, so that each position counts the leaves that are in place already.
        for position, x in self.fixed:
            leaves.insert(position, x)
        args, kwargs = self.in_tree.unflatten(leaves)
        return pytree.tree_leaves(self.fun(*args, **kwargs))

    def __str__(self) -> str:
        return getattr(self.fun, "__name__", type(self.fun).__name__)


def _with_keys(params: dict[str, Any], _trailing: tuple[int, ...], *avals: ShapedArray) -> dict[str, Any]:
    keys = tuple(a if a.physical is not a else None for a in avals)
    return {**params, "callback": dataclasses.replace(params["callback"], keys=keys)}


def _each(
    primitive: Primitive,
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    unroll: bool,
    params: dict[str, Any],
) -> tuple[list[Any], list[Dim]]:
    """Calls the function once for each example, in order."""
    mapped = [d is not None for d in dims]
    consts = without(args, mapped)
    xs = [move_axis(x, d, 0) for x, d in zip(args, dims, strict=True) if d is not None]

    def step(*values: Any) -> list[Any]:
        shared, rows = iter(values[: len(consts)]), iter(values[len(consts) :])
        return primitive.bind(*[next(rows) if there else next(shared) for there in mapped], **params)

    jaxpr, _ = stage(step, [*map(typeof, consts), *(typeof(x).without_axis(0) for x in xs)], name=primitive.name)
    # A scan calls the function for the examples in their order, one at a time.
    options = {"length": axis.size, "reverse": False, "unroll": max(1, axis.size) if unroll else 1}
    _, outs = Scan(ClosedJaxpr(jaxpr), consts, [], xs, options).bind()
    return outs, [0] * len(outs)


# --- callbacks with results -----------------------------------------------------------------------------


def _no_derivative(kind: str, mode: str) -> Callable[..., Any]:
    def refuse(*_args: Any, **_params: Any) -> Any:
        raise DerivativeError(
            f"{kind} callbacks do not support {mode}: they call Python",
            instead="a function with custom_jvp or custom_vjp around it, whose rule says the derivative",
        )

    return refuse


def _eager(*args: Any, callback: Callback, result_avals: Sequence[ShapedArray], **_: Any) -> list[Any]:
    what = f"the callback {callback}"
    outs = call_directly(callback, what, [*map(as_array, args)])
    return [as_array(x) for x in checked(outs, what, result_avals)]


def vectorized(
    primitive: Primitive,
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    vmap_method: str | None,
    result_avals: Sequence[ShapedArray],
    params: dict[str, Any],
) -> tuple[list[Any], list[Dim]]:
    """The batching rule of callbacks and foreign functions, by the `vmap_method` that the user chose."""
    how = {**params, "vmap_method": vmap_method, "result_avals": result_avals}
    if vmap_method in ("sequential", "sequential_unrolled"):
        return _each(primitive, axis, args, dims, vmap_method == "sequential_unrolled", how)
    if vmap_method not in ("expand_dims", "broadcast_all", "legacy_vectorized"):
        raise MissingRuleError(
            f"vmap of {primitive.name} with vmap_method={vmap_method!r}: the function may not know of batches",
            instead="vmap_method='sequential', which calls it for each example, or 'expand_dims' or 'broadcast_all'",
            primitive=primitive.name,
            rule="batch",
        )
    size = axis.size if vmap_method == "broadcast_all" else 1
    operands = []
    for x, d in zip(args, dims, strict=True):
        if d is not None:
            operands.append(move_axis(x, d, 0))
        else:
            operands.append(x if vmap_method == "legacy_vectorized" else insert_axis(x, size, 0))
    wide = tuple(shaped((axis.size, *a.shape), a.dtype, a.weak_type) for a in result_avals)
    return primitive.bind(*operands, **{**how, "result_avals": wide}), [0] * len(wide)


def _with_results(
    name: str, kind: str, batch: Callable[..., Any], effects: Callable[[Any], Effects] | None
) -> Primitive:
    """A callback whose results a program uses."""

    def lower(
        f: Function, *args: Value, callback: Callback, result_avals: Any, sharding: Any, **params: Any
    ) -> list[Value]:
        fun = on_host(callback, f"the callback {callback}", result_avals)
        own = no_effects if effects is None else effects(params)
        return call_host(f, args, fun, result_avals, effects=own, sharding=sharding)

    return Primitive(
        name,
        multiple_results=True,
        types=lambda *avals, result_avals, **_: list(result_avals),
        sharding=whole,
        memory_in_types=True,
        lower=lower,
        eager=_eager,
        jvp=_no_derivative(kind, "JVP"),
        transpose=_no_derivative(kind, "transpose"),
        batch=batch,
        extend=_with_keys,
        effects=effects,
        nan_checked=False,
    )


def _pure_batch(
    axis: BatchAxis, args: Any, dims: Any, vmap_method: str | None, result_avals: Any, **params: Any
) -> tuple[list[Any], list[Dim]]:
    return vectorized(pure_callback, axis, args, dims, vmap_method, result_avals, params)


pure_callback = _with_results("pure_callback", "Pure", _pure_batch, None)


def _io_effects(params: dict[str, Any]) -> Effects:
    return frozenset([OrderedIOEffect() if params["ordered"] else IOEffect()])


def _io_batch(axis: BatchAxis, args: Any, dims: Any, ordered: bool, **params: Any) -> tuple[list[Any], list[Dim]]:
    if ordered:
        raise EffectError(
            f"vmap of the ordered io_callback {params['callback']}: examples have no order",
            instead="ordered=False, or phlox.lax.map instead of vmap",
            effects=_io_effects({"ordered": True}),
        )
    return _each(io_callback, axis, args, dims, False, {**params, "ordered": False})


io_callback = _with_results("io_callback", "IO", _io_batch, _io_effects)


# --- callbacks without results --------------------------------------------------------------------------


def _debugging(name: str) -> Primitive:
    def effects(params: dict[str, Any]) -> Effects:
        return frozenset([OrderedDebugEffect() if params["ordered"] else DebugEffect()])

    def lower(f: Function, *args: Value, callback: Callback, ordered: bool, partitioned: bool) -> list[Value]:
        fun = on_host(lambda *xs: _nothing(callback(*xs)), str(callback), ())
        return call_host(f, args, fun, (), effects=effects({"ordered": ordered}), partitioned=partitioned)

    primitive = Primitive(
        name,
        multiple_results=True,
        types=lambda *avals, **_: [],
        sharding=whole,
        memory_in_types=True,
        lower=lower,
        eager=lambda *args, callback, **_: _nothing(callback(*map(as_array, args))),
        # The callback sees primals only; there are no results with tangents.
        jvp=lambda primals, tangents, **params: (primitive.bind(*primals, **params), []),
        transpose=lambda cotangents, *args, **params: [None] * len(args),
        batch=lambda axis, args, dims, **params: _each(primitive, axis, args, dims, False, params),
        extend=_with_keys,
        effects=effects,
        keys=reads,
        nan_checked=False,
    )
    return primitive


def _nothing(_result: Any) -> list[Any]:
    return []


debug_callback = _debugging("debug_callback")
debug_print = _debugging("debug_print")
