"""Functions with a batching rule of their own: custom_vmap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._base import pytree
from ..._base.errors import ShapeError, TreeError
from ..._base.pytree import PyTreeDef, flatten
from ..._ir.primitive import current_trace
from ..._ops.control.custom_vmap import BatchRule, custom_vmap_call
from ..._trace.partial_evaluation import runs_at_once
from ..._trace.trace import typeof
from ..derivatives.function_with_rules import FunctionWithRules, no_rule, positional
from ..jit import arguments
from ..jit.bodies import Staged, operands_of


class custom_vmap(FunctionWithRules[..., Any]):
    """A function with a batching rule of your own.

    The rule, set by `def_vmap`, takes (axis_size, in_batched, *args): the number of examples; a list with a tree of
    bools for each argument, true for arrays that have the batch axis; and the arguments, with the batch axis in front.
    It returns (out, out_batched) in the same form. `vmap` calls the rule; all other uses call `fun`.

    Forward derivatives follow from `fun` and the rule. Reverse mode is refused: wrap the function in `custom_vjp`.

    Args:
      fun: the function of one example, of positional arguments, trees of arrays.

    Raises:
      UndefinedRuleError: when it is called, there is no rule yet.

    >>> @custom_vmap
    ... def double(x):
    ...     return 2 * x
    >>> @double.def_vmap
    ... def double_batch(axis_size, in_batched, xs):
    ...     return 2 * xs + 100, True
    >>> double(1.0), phlox.vmap(double)(jnp.arange(3.0))
    (Array(2., dtype=float32, weak_type=True), Array([100., 102., 104.], dtype=float32))
    """

    def __init__(self, fun: Callable[..., Any]):
        arguments.check_callable("custom_vmap", fun)
        super().__init__(fun)
        self.vmap_rule: Callable[..., tuple[Any, Any]] | None = None

    def def_vmap(self, vmap_rule: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
        """Sets the batching rule; returns it, so this is a decorator.

        Args:
          vmap_rule: ``vmap_rule(axis_size, in_batched, *args)`` returns (out, out_batched), as `custom_vmap` describes
            it.

        Returns:
          `vmap_rule`.

        >>> double = custom_vmap(lambda x: 2 * x)
        >>> _ = double.def_vmap(lambda axis_size, in_batched, xs: (2 * xs, True))
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = arguments.fun_name(self.fun)
        if self.vmap_rule is None:
            raise no_rule(self.fun, "custom_vmap", "batching rule", "def_vmap(rule)")
        args = positional(self.fun, args, kwargs, "custom_vmap")
        # Without a transformation the rule has no part. The function sees and returns arrays, as when it is traced.
        if runs_at_once(current_trace.get(), args):
            return arguments.as_arrays(self.fun(*arguments.as_arrays(args)))
        leaves, in_tree = operands_of("custom_vmap", self.fun, args)
        program = Staged("custom_vmap", name, self.fun, in_tree, [typeof(x) for x in leaves])
        rule = self._flat_rule(len(program.consts), in_tree, program.out_tree)
        outs = custom_vmap_call.bind(
            *program.consts,
            *leaves,
            call=program.closed,
            rule=BatchRule(rule, arguments.fun_name(self.vmap_rule)),
            num_consts=len(program.consts),
        )
        return program.out_tree.unflatten(outs)

    def _flat_rule(
        self, num_consts: int, in_tree: PyTreeDef, out_tree: PyTreeDef
    ) -> Callable[[int, list[bool], list[Any]], tuple[list[Any], list[bool]]]:
        vmap_rule, name = self.vmap_rule, arguments.fun_name(self.fun)
        assert vmap_rule is not None
        rule_name = arguments.fun_name(vmap_rule)

        def rule(size: int, batched: list[bool], args: list[Any]) -> tuple[list[Any], list[bool]]:
            in_batched = list(in_tree.unflatten(batched[num_consts:]))
            result = vmap_rule(size, in_batched, *in_tree.unflatten(args[num_consts:]))
            if not (isinstance(result, tuple | list) and len(result) == 2):
                raise TreeError(f"the vmap rule of {name} must return a pair (out, out_batched), got {result!r}")
            outs, tree = flatten(result[0])
            out_batched, batched_tree = flatten(result[1])
            stated = f"custom vmap rule ({rule_name})"
            pytree.check_same(
                tree,
                batched_tree,
                f"structure of output value and output batching specification returned by {stated} do not match, "
                f"for {name}",
                kind=TreeError,
            )
            pytree.check_same(
                out_tree,
                tree,
                f"structure of output returned by {stated} does not match that of original custom-vmapped function "
                f"{name}",
                kind=TreeError,
            )
            arguments.check_outputs(vmap_rule, result, outs)
            # Trees of bools, in which users also write 0 and 1.
            flags = [bool(there) for there in out_batched]
            if any(batched):  # without batched operands, a rule may return results without the batch axis
                _check_axes(name, out_tree, outs, flags, size)
            return outs, flags

        return rule


def _check_axes(name: str, tree: PyTreeDef, outs: Sequence[Any], flags: Sequence[bool], size: int) -> None:
    """Raises an error that names the result for which `flags` is true and which lacks the batch axis in front."""
    for path, out, there in zip(pytree.named_paths(tree), outs, flags, strict=True):
        have = typeof(out)
        if there and have.shape[:1] != (size,):
            raise ShapeError(
                f"the vmap rule of {name} returned {have.short} for result{pytree.keystr(path)}, and True for it in "
                f"out_batched, but its first axis is no batch axis of length {size}",
                instead=f"a value for each of the {size} examples, or False in out_batched",
                shapes=[have.shape],
            )
