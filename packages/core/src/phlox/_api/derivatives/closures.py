"""`closure_convert`, `custom_gradient`, and linear functions: `linear_call`, `linear_transpose`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..._base import pytree
from ..._base.errors import DerivativeError, FunctionTreeError, PhloxError
from ..._base.partial import Partial
from ..._base.pytree import PyTreeDef, flatten
from ..._base.source import within
from ..._base.wrapping import wraps
from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import ClosedJaxpr, only, without
from ..._ops.control.linear_call import linear_call as linear_call_p
from ..._ops.structure.shape import as_array_or_tracer
from ..._trace.interpret import eval_jaxpr
from ..._trace.trace import Tracer, typeof
from ..._transform.array_operations import Zero
from ..._transform.transpose import Linear, backward_pass
from ..jit import arguments
from ..jit.bodies import Staged, operands_of
from ..jit.programs import as_struct
from ..jit.user_functions import user_call
from .custom import custom_vjp
from .differentiate import TRANSPOSE, as_user_array, refuse_reduce_axes


@user_call
def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Converts the tracers that `fun` closes over to arguments: ``converted(*args, *values)`` is ``fun(*args)``.

    It is for `custom_vjp` functions that take functions as arguments: closed-over values only have a derivative there
    if they are passed as arguments.

    Args:
      fun: function of trees of arrays.
      *example_args: examples of its arguments, of which only treedefs, shapes and dtypes are used.

    Returns:
      (converted, values): a function that takes the arguments of `fun`, then `values`; and `values`, the list of the
      closed-over tracers of floating or complex dtype.

    >>> converted, values = closure_convert(lambda x: 2 * x, 1.0)
    >>> converted(3.0, *values)
    Array(6., dtype=float32, weak_type=True)
    """
    leaves, tree = operands_of("closure_convert", fun, example_args)
    # Not from a cache: the constants of this very trace are returned.
    program = Staged("closure_convert", "fun", fun, tree, [typeof(x) for x in leaves])
    # Only tracers can have a derivative outside; arrays and integers stay inside of the converted function.
    is_hoisted = [isinstance(c, Tracer) and dtypes.is_inexact(c.aval.dtype) for c in program.consts]
    hoisted, others = only(program.consts, is_hoisted), without(program.consts, is_hoisted)

    def converted(*args: Any) -> Any:
        # The last arguments are the values, however many `fun` takes.
        count = len(args) - len(hoisted)
        flat, args_tree = flatten(tuple(args[:count]))
        pytree.check_same(
            tree,
            args_tree,
            "The inputs to the closure produced by closure_convert must have the structure of the example arguments",
        )
        from_args, from_trace = iter(args[count:]), iter(others)
        consts = [next(from_args if hoists else from_trace) for hoists in is_hoisted]
        return program.out_tree.unflatten(eval_jaxpr(program.closed.jaxpr, [], *consts, *flat))

    return converted, hoisted


class _Rule:
    """A reverse rule as a Jaxpr. As the function of a `Partial`, it is a static part of the pytree of residuals."""

    def __init__(self, closed: ClosedJaxpr, out_tree: Any):
        self.closed = closed
        self.out_tree = out_tree

    # The constants are residuals and so arguments: a rule may close over tracers of the forward pass.
    def __call__(self, *consts_and_cotangents: Any) -> Any:
        return self.out_tree.unflatten(eval_jaxpr(self.closed.jaxpr, [], *consts_and_cotangents))


def custom_gradient(
    fun: Callable[..., Any] | None = None, *, with_logs: bool = False, remat: bool = False
) -> Callable[..., Any]:
    """Decorator for functions that return (value, rule): `rule` maps a cotangent of value to cotangents of arguments.

    For one argument the rule returns its cotangent, for several a tuple. See `custom_vjp` for two separate rules.

    Args:
      fun: function of positional arguments, trees of arrays. None: the decorator with these options is returned.
      with_logs: the rule returns a pair (cotangents, logs), see `custom_vjp.defvjp_with_logs`.
      remat: in the place of the rule, `fun` returns a function of its arguments that returns (value, rule).

    Returns:
      A function of the same arguments that returns the value, and whose reverse derivative is computed by the rule.

    Raises:
      TreeError: in a call, when `fun` returns no such pair; in a derivative, when the rule returns other cotangents.

    >>> f = custom_gradient(lambda x: (x**2, lambda ct: 3 * ct))
    >>> phlox.grad(f)(1.0)
    Array(3., dtype=float32, weak_type=True)
    """
    if fun is None:
        return functools.partial(custom_gradient, with_logs=with_logs, remat=remat)

    def value_and_rule(*args: Any) -> tuple[Any, Callable[..., Any]]:
        result = fun(*args)
        if not (isinstance(result, tuple | list) and len(result) == 2 and callable(result[1])):
            raise FunctionTreeError(
                f"custom_gradient: {arguments.fun_name(fun)} must return a pair (value, rule), got {result!r:.60}",
                instead="return value, lambda ct: ...",
            )
        arguments.check_outputs(fun, result[0], pytree.tree_leaves(result[0]))
        return result[0], result[1]

    def value(*args: Any) -> Any:
        return value_and_rule(*args)[0]

    value.__name__ = arguments.fun_name(fun)  # of which error messages speak
    wrapped = custom_vjp(value)

    def forward(*args: Any) -> tuple[Any, Any]:
        out, rule = value_and_rule(*args)
        # With `remat`, `rule` is a function of the arguments that computes value and rule again.
        if remat:
            out, rule = rule(*args)
        leaves, tree = operands_of("custom_gradient", fun, (out,))
        # As a Jaxpr, the rule takes the values that it closes over as residuals.
        program = Staged("custom_gradient", "the rule", rule, tree, [typeof(x).tangent() for x in leaves])
        return out, Partial(_Rule(program.closed, program.out_tree), *program.consts)

    def backward(rule: Any, cotangent: Any) -> Any:
        # A rule takes the cotangents of the leaves, one by one, as in JAX.
        result = rule(*pytree.tree_leaves(cotangent))
        cotangents, *logs = result if with_logs else (result,)
        cotangents = cotangents if isinstance(cotangents, tuple) else (cotangents,)
        return (cotangents, *logs) if with_logs else cotangents

    (wrapped.defvjp_with_logs if with_logs else wrapped.defvjp)(forward, backward)
    return wraps(fun)(wrapped)


def linear_call(
    fun: Callable[..., Any], fun_transpose: Callable[..., Any], residual_args: Any, linear_args: Any
) -> Any:
    """``fun(residual_args, linear_args)``, with a transpose of your own.

    Args:
      fun: linear in its second argument.
      fun_transpose: ``fun_transpose(residual_args, cotangent)`` returns a cotangent of `linear_args`.
      residual_args: values that both functions take and need not be linear in; they are not differentiated.
      linear_args: the argument that `fun` is linear in.

    Returns:
      The result of `fun`, a tree of arrays.

    Raises:
      DerivativeError: in transposition, when `fun_transpose` returns other types than those of `linear_args`.
      TreeError: in transposition, when `fun_transpose` returns another structure.

    >>> third = lambda x: linear_call(lambda r, x: x / r, lambda r, ct: 100 * ct, 3.0, x)
    >>> third(6.0), phlox.grad(third)(6.0)
    (Array(2., dtype=float32, weak_type=True), Array(100., dtype=float32, weak_type=True))
    """
    leaves, tree = operands_of("linear_call", fun, (residual_args, linear_args))
    res, linear_tree = pytree.tree_leaves(residual_args), pytree.tree_structure(linear_args)
    program = Staged("linear_call", "fun", fun, tree, [typeof(x) for x in leaves])
    expected = [typeof(x) for x in leaves[len(res) :]]

    # Traced only if the call is transposed, and once: many calls are never transposed.
    @functools.cache
    def transposed() -> tuple[ClosedJaxpr, list[Any]]:
        in_tree = pytree.treedef_tuple((pytree.tree_structure(residual_args), program.out_tree))
        avals = [*(typeof(x) for x in leaves[: len(res)]), *program.out_avals]
        back = Staged("linear_call", "fun_transpose", fun_transpose, in_tree, avals)
        what = f"linear_call: {back.name} returns something unlike the argument that {program.name} is linear in"
        pytree.check_same(linear_tree, back.out_tree, what)
        for have, want in zip(back.out_avals, expected, strict=True):
            if have.shape != want.shape or have.dtype != want.dtype:
                raise DerivativeError(f"{what}: {have.short} for {want.short}", instead=f"a value of type {want.short}")
        return back.closed, back.consts

    outs = linear_call_p.bind(
        *program.consts,
        *leaves,
        callee=program.closed,
        transposed=transposed,
        num_consts=len(program.consts),
        num_res=len(res),
    )
    # Results are arrays of the user's, and must not share a buffer with an argument that may be donated.
    return program.out_tree.unflatten([as_array_or_tracer(x) for x in outs])


@user_call
def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[Any] = ()) -> Callable[..., Any]:
    """The transpose of a linear function: of ``x -> A x``, the function ``ct -> (Aᵀ ct,)``.

    Args:
      fun: a function that is linear in its arguments.
      *primals: examples of arguments, trees of arrays or of `ShapeDtypeStruct`s: only types are used.
      reduce_axes: must be empty; a former option of JAX's.

    Returns:
      A function of one cotangent, of the structure and types of the result of `fun`. It returns a tuple of cotangents,
      one for each argument, and is a pytree (`Partial`).

    Raises:
      DerivativeError: `fun` maps integers to floats or the reverse; or, in a call, when the cotangent has another type.
      MissingRuleError: `fun` uses an operation that is not linear.
      UnsupportedError: `reduce_axes` is not empty.

    >>> linear_transpose(lambda x: 2 * x, 1.0)(3.0)
    (Array(6., dtype=float32, weak_type=True),)
    """
    refuse_reduce_axes("linear_transpose", reduce_axes)
    leaves, tree = operands_of("linear_transpose", fun, tuple(pytree.tree_map(as_struct, primals)))
    avals = [typeof(x) for x in leaves]
    program = Staged("linear_transpose", "fun", fun, tree, avals)
    # float0, the type of tangents of integers, has one value: zero.
    all_dtypes = {a.dtype for a in [*avals, *program.closed.out_avals]} - {dtypes.float0}
    kinds = [dtypes.kind(dtype) for dtype in all_dtypes]
    # A cotangent has the dtype of its primal, so a map from integers to floats has no transpose.
    if not (all(k in "fc" for k in kinds) or all(k in "iu" for k in kinds)):
        types = ", ".join(a.short for a in avals), ", ".join(a.short for a in program.closed.out_avals)
        raise DerivativeError(
            "linear_transpose only supports functions of floats and complex numbers to the same, and of integers to "
            f"integers, but {program.name} maps ({types[0]}) to ({types[1]})",
            instead="x.astype(float) for integers that are to be multiplied by floats",
        )

    @user_call
    def transposed(consts: Any, cotangent: Any) -> Any:
        return _transposed(program, tree, avals, consts, cotangent)

    # As leaves of a `Partial`, the constants let the returned function be an argument or a result under `jit`.
    return Partial(transposed, program.consts)


def _transposed(program: Staged, tree: PyTreeDef, avals: list[ShapedArray], consts: Any, cotangent: Any) -> Any:
    out_cotangents, ct_tree = flatten(cotangent)
    pytree.check_same(
        program.out_tree, ct_tree, f"linear_transpose: the cotangent tree does not match the output of {program.name}"
    )
    for i, (ct, aval) in enumerate(zip(out_cotangents, program.closed.out_avals, strict=True)):
        have = typeof(ct)
        if have.shape != aval.shape or have.dtype != aval.dtype:
            raise DerivativeError(
                f"linear_transpose: a cotangent type does not match the output of {program.name}: leaf {i} has type "
                f"{have.short}, and the output {aval.short}",
                instead=f"a cotangent of type {aval.short}",
            )
    out_cotangents = [Zero(typeof(ct)) if typeof(ct).dtype == dtypes.float0 else ct for ct in out_cotangents]
    linear = [Linear(a) for a in avals]
    try:
        with within(TRANSPOSE):
            in_cotangents = backward_pass(program.closed.jaxpr, [], [*consts, *linear], out_cotangents)
    # A `Linear` has a type and no value. Rules that are linear in it never ask for one.
    except (TypeError, AttributeError) as error:  # a rule got a `Linear` placeholder where it needs a value
        if isinstance(error, PhloxError) and not isinstance(getattr(error, "value", None), Linear):
            raise
        raise DerivativeError(
            f"linear_transpose: {program.name} is not linear in its arguments", instead="vjp, which linearizes"
        ) from error
    # Inputs that no output depends on have a symbolic zero, which becomes an array here.
    return tree.unflatten([as_user_array(ct) for ct in in_cotangents[len(consts) :]])
