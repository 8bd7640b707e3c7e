"""Users' derivative rules as flat functions, and the operation `custom_lin`: the linear part of a reverse rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ..._base.errors import DerivativeError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ir.primitive import Primitive, sharding_in_types, vma_in_types
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, instantiate, sum_axes
from ..._transform.batch import BatchAxis, Dim, place_axis, run_batched
from ..._transform.jvp import jvp as push_forward
from ..elementwise.families import lowered_as
from .logs import LoggedRule
from .rows import with_rows, zero_array


class Rule(NamedTuple):
    """A user's derivative rule as a flat function, and its name.

    A forward rule is called with the primals and, for each, whether it is differentiated. It returns (results,
    residuals, form). A backward rule is called with a form, residuals and cotangents. A form says how the residuals are
    to be read: the same rule may save others for each derivative.

    A rule may return `Zero` among its tangents or cotangents. Backward rules receive `Zero` ones, those of `custom_jvp`
    if `symbolic_zeros` is true. A backward rule with `has_logs` also gives logs to the caller of the backward pass; one
    with `generic_batching` may be called for a batch whose examples share a result, see `batched_cotangents`.

    `other_mode` is a rule for the other mode. That of a forward rule of `custom_jvp` takes its place where the
    derivative is transposed later. That of a backward rule computes tangents: ``other_mode(residuals, tangents)``.
    """

    call: Callable[..., Any]
    name: str
    symbolic_zeros: bool = False
    has_logs: bool = False
    generic_batching: bool = False
    other_mode: Callable[..., Any] | None = None

    def map(self, change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Rule:
        """The rule with `change` applied to its functions for both modes."""
        other_mode = None if self.other_mode is None else change(self.other_mode)
        return self._replace(call=change(self.call), other_mode=other_mode)

    def inputs(self, tangents: Sequence[Any]) -> list[Any]:
        """The tangents as the rule takes them: with `Zero`, or with arrays of zeros in its place."""
        return list(tangents) if self.symbolic_zeros else [instantiate(t) for t in tangents]

    def __str__(self) -> str:
        return self.name


def run_batched_rule(
    fun: Callable[..., Sequence[Any]], axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim]
) -> tuple[list[Any], list[Dim]]:
    """`run_batched` for arguments and results that may be `Zero`. The dim of a `Zero` result is None."""
    zero_outs: dict[int, Zero] = {}

    def fun_of_arrays(*xs: Any) -> list[Any]:
        arrays = iter(xs)
        outs = fun(*[_example(x, d) if type(x) is Zero else next(arrays) for x, d in zip(args, dims, strict=True)])
        zero_outs.update((i, out) for i, out in enumerate(outs) if type(out) is Zero)
        return [out for out in outs if type(out) is not Zero]

    present = [(x, d) for x, d in zip(args, dims, strict=True) if type(x) is not Zero]
    results, out_dims = run_batched(fun_of_arrays, axis, [x for x, _ in present], [d for _, d in present])
    for i in sorted(zero_outs):
        results.insert(i, zero_outs[i])
        out_dims.insert(i, None)
    return results, out_dims


def _example(zero: Zero, dim: Dim) -> Zero:
    """The `Zero` of one example, without the mapped axis `dim`."""
    if dim is None:
        return zero
    return Zero(zero.aval.without_axis(dim))


def place_dim(x: Any, dim: Dim, destination: Dim, size: int) -> Any:
    """`place_axis`, also for a `Zero`. If `destination` is None, `x` is not mapped and returned unchanged."""
    if destination is None:
        return x
    if type(x) is not Zero:
        return place_axis(x, dim, destination, size)
    return Zero(x.aval.with_axis(destination, size))


def batched_cotangents(
    bwd: Rule,
    axis: BatchAxis,
    residual_dims: Sequence[Dim],
    cotangent_dims: Sequence[Dim],
    in_dims: Sequence[Dim],
    residuals: Sequence[Any],
    cotangents: Sequence[Any],
) -> list[Any]:
    """The backward rule ``bwd(residuals, cotangents)`` on a batch.

    The cotangent of a result that all examples share is one for all of them: what the rule makes of it for each example
    must not be summed over the batch. With `generic_batching` the first example gets the whole of it, the others zero.
    Logs of the examples are stacked along a first axis.
    """
    count = len(residuals)
    rule = LoggedRule(bwd.name, lambda *xs: bwd.call(xs[:count], xs[count:]))

    def run(cotangents: Sequence[Any], cotangent_dims: Sequence[Dim]) -> tuple[list[Any], list[Dim]]:
        dims = [*residual_dims, *cotangent_dims]
        return run_batched_rule(rule, axis, [*residuals, *cotangents], dims)

    results, dims = run(cotangents, cotangent_dims)
    shares = [d is None and type(ct) is not Zero for ct, d in zip(cotangents, cotangent_dims, strict=True)]
    if any(shares) and any(d is not None and w is None for d, w in zip(dims, in_dims, strict=False)):
        if not bwd.generic_batching:
            raise DerivativeError(
                f"under vmap, all examples share a result of the custom_vjp function behind {bwd.name}, and {bwd.name} "
                "returns a cotangent of each example for an argument that they share: their sum would count the "
                "cotangent of the result once for each example",
                instead="defvjp(..., generic_batching=True), where the first example gets that cotangent",
            )
        pairs = list(zip(cotangents, cotangent_dims, shares, strict=True))
        cotangents = [_of_first_example(ct, axis.size) if shared else ct for ct, _, shared in pairs]
        results, dims = run(cotangents, [0 if shared else d for _, d, shared in pairs])
    width = len(in_dims)
    rule.add_logs([place_axis(x, d, 0, axis.size) for x, d in zip(results[width:], dims[width:], strict=True)])
    return [_cotangent_of(x, d, w, axis.size) for x, d, w in zip(results, dims, in_dims, strict=False)]


def _of_first_example(cotangent: Any, size: int) -> Any:
    """The cotangents of all examples: `cotangent` for the first, and zeros."""
    aval = typeof(cotangent)
    return with_rows(zero_array(aval.with_axis(0, size)), [cotangent], dtypes.int32.type(0))


def _cotangent_of(cotangent: Any, dim: Dim, in_dim: Dim, size: int) -> Any:
    """The cotangent of an operand that is mapped at `in_dim`; of one that is not mapped, the sum over the batch."""
    if in_dim is not None:
        return place_dim(cotangent, dim, in_dim, size)
    return cotangent if dim is None else sum_axes(cotangent, (dim,))


def custom_vjp_forward(
    fwd: Rule, bwd: Rule, primals: Sequence[Any], tangents: Sequence[Any], jvp: Rule | None = None
) -> tuple[list[Any], list[Any]]:
    """Outputs, and their tangents by `custom_lin`. It can be transposed; with a rule `jvp` it can also be evaluated."""
    outs, residuals, form = fwd.call(primals, [type(t) is not Zero for t in tangents])
    bwd = bwd._replace(call=partial(bwd.call, form))
    if jvp is not None:
        bwd, residuals = _with_forward_mode(bwd, jvp, len(residuals)), [*residuals, *primals]
    avals = [typeof(out).tangent() for out in outs]
    # `custom_lin` takes arrays. The forward rule has been told which tangents are zero.
    tangents = [instantiate(t) for t in tangents]
    out_tangents = custom_lin.bind(*residuals, *tangents, bwd=bwd, num_res=len(residuals), out_avals=tuple(avals))
    return outs, out_tangents


def _with_forward_mode(bwd: Rule, jvp: Rule, count: int) -> Rule:
    """The rule for residuals that are followed by the primals, of which `jvp` computes tangents."""
    bwd_call, jvp_call = bwd.call, jvp.call
    return bwd._replace(
        call=lambda residuals, cts: bwd_call(residuals[:count], cts),
        other_mode=lambda residuals, tangents: jvp_call(residuals[count:], tangents)[1],
    )


def _evaluated(*args: Any, bwd: Rule, num_res: int, out_avals: Sequence[ShapedArray]) -> list[Any]:
    if bwd.other_mode is None:
        raise DerivativeError(
            "can't apply forward-mode autodiff (jvp) to a custom_vjp function: jvp, jacfwd or linearize of the one "
            f"behind {bwd.name}",
            instead="grad, vjp or jacrev; or define the function with custom_jvp, and its defvjp",
        )
    return [instantiate(t) for t in bwd.other_mode(args[:num_res], args[num_res:])]


def _lin_transpose(cotangents: Sequence[Any], *args: Any, bwd: Rule, num_res: int, **_: Any) -> list[Any]:
    # The residuals are values, and only the tangents are linear: these get the cotangents that the user's rule returns.
    residuals = args[:num_res]
    return [None] * num_res + list(bwd.call(residuals, cotangents))


def _lin_batch(
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    bwd: Rule,
    num_res: int,
    out_avals: Sequence[ShapedArray],
) -> tuple[list[Any], list[Dim]]:
    wide = tuple(axis.wider(a, 0) for a in out_avals)
    evaluate = bwd.other_mode

    def evaluated(residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        assert evaluate is not None
        fun = lambda *xs: [instantiate(t) for t in evaluate(xs[:num_res], xs[num_res:])]  # noqa: E731
        outs, out_dims = run_batched(fun, axis, [*residuals, *tangents], dims)
        return [place_dim(x, d, 0, axis.size) for x, d in zip(outs, out_dims, strict=True)]

    bwd = bwd._replace(
        call=partial(batched_cotangents, bwd, axis, dims[:num_res], (0,) * len(wide), dims[num_res:]),
        other_mode=None if evaluate is None else evaluated,
    )
    return custom_lin.bind(*args, bwd=bwd, num_res=num_res, out_avals=wide), [0] * len(wide)


custom_lin = Primitive(
    "custom_lin",
    multiple_results=True,
    types=lambda *avals, bwd, num_res, out_avals: list(out_avals),
    vma=vma_in_types,
    sharding=sharding_in_types,
    lower=lowered_as(_evaluated, many=True),
    eager=_evaluated,
    jvp=lambda primals, tangents, **params: push_forward(partial(_evaluated, **params), primals, tangents),
    transpose=_lin_transpose,
    batch=_lin_batch,
    nan_checked=False,
    # A user's rule may return cotangents even where those of all results are zero.
    transposes_zeros=True,
)
