"""Checks of the results of custom_jvp and custom_vjp rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..._base import pytree
from ..._base.errors import DerivativeError, FunctionTreeError, RefError, TreeError, UnexpectedTracerError
from ..._base.pytree import PyTreeDef
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, typeof_value
from ..._ops.structure.shape import convert
from ..._trace.refs import Ref
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero
from .symbolic import as_internal_tangent


class _Kind(NamedTuple):
    """Words for a kind of rule in error messages."""

    decorator: str
    title: str
    #: describes the pair that the rule returns, and the first element of that
    pair: str
    first: str
    #: the `detail` in `first` for an error about structures, and for one about types
    same_tree: str
    same_types: str


_KINDS = {
    "jvp": _Kind(
        "custom_jvp",
        "JVP rule",
        "representing primal and tangent outputs",
        # These sentences are JAX's, as programs and tests look for them.
        "(equal in value to the output of the custom_jvp-decorated function {function}, and in particular {detail})",
        "of the same container/pytree structure",
        "with leaves of the same shape/dtype",
    ),
    "fwd": _Kind(
        "custom_vjp",
        "fwd rule",
        "representing the primal output and the residuals",
        "(equal to the output of the custom_vjp-decorated function {function}) and the second element represents "
        "residuals (i.e. values stored from the forward pass for use on the backward pass)",
        "",
        "",
    ),
}


class RuleName(NamedTuple):
    """A user's rule in messages: its kind (``"jvp"``, ``"fwd"``, ``"bwd"``), its name, and the name of its function."""

    kind: str
    name: str
    function: str

    def __str__(self) -> str:
        kind = "JVP" if self.kind == "jvp" else f"VJP {self.kind}"
        return f"Custom {kind} rule {self.name} for function {self.function}"


def run_rule(name: RuleName, rule: Callable[..., Any], *args: Any) -> Any:
    """The result of a user's rule; raises `UnexpectedTracerError` if it closes over a tracer whose trace has ended."""
    try:
        return rule(*args)
    except UnexpectedTracerError as error:
        if getattr(error, "live", False) or not hasattr(error, "aval"):
            raise
        raise UnexpectedTracerError(
            f"{name} uses a traced value of type {error.aval.short} that is no argument of it, and runs after its "
            "trace has ended, as in grad of jit and in derivatives of loops",
            instead=f"pass the value to {name.function} as an argument",
            aval=error.aval,
        ) from error


def pair_of(result: Any, rule: RuleName) -> tuple[Any, Any]:
    """The result of a rule as a pair; raises `FunctionTreeError` if it is no pair."""
    if isinstance(result, tuple | list) and len(result) == 2:
        return result[0], result[1]
    raise FunctionTreeError(
        f"{rule} must produce a pair (list or tuple of length two) {_KINDS[rule.kind].pair}, but got {result}",
        path=(),
        expected="a tuple of 2",
        got=type(result).__name__,
    )


class OutType:
    """Treedef and types of a function's result, from its Jaxpr or from the first result of a rule."""

    def __init__(self, tree: PyTreeDef | None = None, avals: Sequence[ShapedArray] | None = None):
        self.tree, self.avals = tree, avals

    def check(self, outs: Sequence[Any], tree: PyTreeDef, rule: RuleName) -> None:
        """Raises unless the result `outs` of a rule has this treedef and these types; records them if none are set."""
        # The function was not traced: the first result of a rule has the types of its result.
        if self.tree is None:
            self.tree, self.avals = tree, [typeof(out) for out in outs]
            return
        assert self.avals is not None
        got = [typeof(out) for out in outs]
        if not pytree.are_equal(tree, self.tree):
            detail = _KINDS[rule.kind].same_tree
            pytree.check_same(
                self.tree, tree, self._differs(rule, detail, "container/pytree structure", got, tree) + "."
            )
        for i, (have, expected) in enumerate(zip(got, self.avals, strict=True)):
            # Weak types are left out: a rule may return a number for an array.
            if have.shape != expected.shape or have.dtype != expected.dtype:
                path = pytree.named_paths(tree)[i]
                what = self._differs(rule, _KINDS[rule.kind].same_types, "shapes/dtypes of", got, tree)
                raise DerivativeError(
                    f"{what}\nThe {rule.kind} rule of {rule.function} returned {have.short} for "
                    f"result{pytree.keystr(path)}, and {rule.function} itself returns {expected.short}",
                    instead=f"a value of type {expected.short}",
                    expected=expected,
                    got=have,
                )

    def _differs(self, rule: RuleName, detail: str, what: str, got: Sequence[ShapedArray], tree: PyTreeDef) -> str:
        assert self.tree is not None and self.avals is not None
        kind = _KINDS[rule.kind]
        first = kind.first.format(function=rule.function, detail=detail)
        title = kind.title
        return (
            f"{rule} must produce a pair (list or tuple of length two) where the first element represents the primal "
            f"output {first}, but instead the {title} output's first element had {what}:\n    {_types(tree, got)}\n"
            f"while the {kind.decorator}-decorated function {rule.function} had output {what}:\n"
            f"    {_types(self.tree, self.avals)}"
        )


def _types(tree: PyTreeDef, avals: Iterable[ShapedArray]) -> str:
    """A tree with the types of its leaves: ``{a: float32[3]}``."""
    # Types are texts among the leaves, which `repr` quotes.
    return str(tree.unflatten(aval.str_short(False) for aval in avals)).replace("'", "")


def checked_tangents(tangents: Sequence[Any], outs: Sequence[Any], tree: PyTreeDef, rule: RuleName) -> list[Any]:
    """The tangents that a rule returned for `outs`; raises `DerivativeError` if their types do not match."""
    results = []
    for i, (t, out) in enumerate(zip(map(as_internal_tangent, tangents), outs, strict=True)):
        aval, have = typeof(out), typeof(t)
        expected = aval.tangent()
        if have.shape != expected.shape or have.dtype != expected.dtype:
            path = pytree.named_paths(tree)[i]
            raise DerivativeError(
                "Custom JVP rule must produce primal and tangent outputs with corresponding shapes and dtypes. "
                f"Expected {expected.str_short(False)} (tangent type of {aval.str_short(False)}) but got "
                f"{have.str_short(False)}. The {rule.kind} rule of {rule.function} returned it as the tangent of "
                f"result{pytree.keystr(path)}",
                instead=f"a tangent of type {expected.short}",
                expected=expected,
                got=have,
            )
        results.append(t)
    return results


def _is_converted(have: ShapedArray, target: Any) -> bool:
    """Whether a cotangent of the type `have` is converted to the dtype `target`."""
    # Python numbers give way, as in sums. An array of another kind is a mistake, which is named.
    kinds = {"i": "fc", "f": "fc"} if have.weak_type else {"f": "f"}
    return dtypes.kind(target) in kinds.get(dtypes.kind(have.dtype), "") and dtypes.bits(target) >= 16


def flat_cotangents(name: str, result: Any, like: Any, in_avals: Sequence[ShapedArray]) -> list[Any]:
    """The cotangents of all leaves; None for a part of the arguments means zeros for all of its leaves.

    A real cotangent of another dtype is converted to that of its argument: rules of programs in bfloat16 often compute
    in float32, and others return the number 0. JAX lets such a cotangent pass, which fails where it meets one of the
    argument's dtype. One that would be rounded to 8 bits is refused.
    """
    try:
        # None is a value here, and may stand for a whole argument.
        leaves = pytree.broadcast_prefix(result, like, is_leaf=pytree.is_none)
    except TreeError as error:
        raise pytree.tree_error(
            f"the bwd rule of {name} returned cotangents of another structure than its arguments have",
            error.differences,  # type: ignore[attr-defined]
            instead="a tuple with one cotangent for each argument, of its structure; None for zeros",
            kind=FunctionTreeError,
        ) from None
    cotangents: list[Any] = []
    for i, (ct, aval) in enumerate(zip(leaves, in_avals, strict=True)):
        expected = aval.cotangent()
        # Cotangents of integers are dropped whatever they are, as in JAX.
        if ct is None or expected.dtype == dtypes.float0:
            cotangents.append(Zero(expected))
            continue
        ct = as_internal_tangent(ct)
        have = typeof_value(ct)
        if have is not None and have.dtype != expected.dtype and _is_converted(have, expected.dtype):
            ct = convert(ct, expected.dtype)
            have = typeof_value(ct)
        if have is None or have.shape != expected.shape or have.dtype != expected.dtype:
            path = pytree.named_paths(pytree.tree_structure(like), like)[i]
            got = repr(ct) if have is None else have.short
            zeros = "Consider just returning a None here" if type(ct) is Zero else "None for zeros"
            raise DerivativeError(
                f"At output{pytree.keystr(path)} the bwd rule produced an output of type {got}, corresponding to an "
                f"argument of {name} of type {aval.short}",
                instead=f"a cotangent of type {expected.short}. {zeros}",
                expected=expected,
                got=have,
            )
        cotangents.append(ct)
    return cotangents


def check_returned_refs(rule: RuleName, refs: Sequence[Ref], passed: Sequence[Any]) -> None:
    """Raises `RefError` unless the references that a forward rule saves are among its arguments `passed`."""
    for ref in refs:
        if not any(ref is x for x in passed):
            raise RefError(
                f"custom_vjp fwd function {rule.name} returned a mutable array reference of type {ref.aval} that was "
                "not an argument",
                instead=f"a reference that is an argument of {rule.function}, or the array that it holds",
            )
