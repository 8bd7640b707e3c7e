"""Functions with a batching rule of their own: custom_vmap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._base import pytree
from .._base.errors import DtypeError, MissingRuleError, ShapeError, TreeError
from .._base.pytree import PyTreeDef, flatten
from .._base.wrapping import wraps
from .._ir.avals import ShapedArray
from .._ir.primitive import current_trace
from .._ops.custom_vmap import BatchRule, custom_vmap_call
from .._trace.trace import typeof
from . import arguments
from .custom import positional
from .staged import Staged, operands_of, paths


class custom_vmap:
    """A function whose batches you compute yourself.

    Args:
      fun: the function of one example.

    The rule, given by `def_vmap`, takes (axis_size, in_batched, *args): how many examples there are, a list with a tree
    of truth values for each argument that says which arrays carry the batch, and the arguments with the batch in front.
    It returns (out, out_batched) alike. `vmap` then calls the rule; everything else goes by `fun`.

    Forward derivatives follow from `fun` and the rule. Reverse mode is refused: put `custom_vjp` around it.

    >>> @custom_vmap
    ... def double(x):
    ...     return 2 * x
    >>> @double.def_vmap
    ... def double_batch(axis_size, in_batched, xs):
    ...     return 2 * xs + 100, True
    >>> double(1.0), phlox.vmap(double)(jnp.arange(3.0))
    (2.0, Array([100., 102., 104.], dtype=float32))
    """

    def __init__(self, fun: Callable[..., Any]):
        wraps(fun)(self)
        arguments.check_callable("custom_vmap", fun)
        self.fun = fun
        self.vmap_rule: Callable[..., tuple[Any, Any]] | None = None

    def def_vmap(self, vmap_rule: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
        """Sets the batching rule; returns it, so this is a decorator."""
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = arguments.fun_name(self.fun)
        if self.vmap_rule is None:
            raise MissingRuleError(
                f"{name} is a custom_vmap function and never got its rule",
                instead=f"{name}.def_vmap(rule)",
                function=self.fun,
                rule="vmap",
            )
        if current_trace.get() is None:
            return self.fun(*args, **kwargs)
        leaves, in_tree = operands_of("custom_vmap", self.fun, positional(self.fun, args, kwargs))
        program = Staged("custom_vmap", name, self.fun, in_tree, [typeof(x) for x in leaves])
        rule = self._flat_rule(len(program.consts), in_tree, program.out_tree, program.out_avals)
        outs = custom_vmap_call.bind(
            *program.consts,
            *leaves,
            call=program.closed,
            rule=BatchRule(rule, arguments.fun_name(self.vmap_rule)),
            num_consts=len(program.consts),
        )
        return program.out_tree.unflatten(outs)

    def _flat_rule(
        self, num_consts: int, in_tree: PyTreeDef, out_tree: PyTreeDef, out_avals: Sequence[ShapedArray]
    ) -> Callable[[int, list[bool], list[Any]], tuple[list[Any], list[bool]]]:
        vmap_rule, name = self.vmap_rule, arguments.fun_name(self.fun)
        assert vmap_rule is not None

        def rule(size: int, batched: list[bool], args: list[Any]) -> tuple[list[Any], list[bool]]:
            in_batched = list(in_tree.unflatten(batched[num_consts:]))
            result = vmap_rule(size, in_batched, *in_tree.unflatten(args[num_consts:]))
            if not (isinstance(result, tuple | list) and len(result) == 2):
                raise TreeError(f"the vmap rule of {name} must return a pair (out, out_batched), got {result!r}")
            outs, tree = flatten(result[0])
            out_batched, batched_tree = flatten(result[1])
            pytree.check_same(out_tree, tree, f"the vmap rule of {name} returns another structure than {name}")
            pytree.check_same(tree, batched_tree, f"the vmap rule of {name} returns an out_batched unlike its out")
            arguments.check_outputs(vmap_rule, result, outs)
            flags = [bool(there) for there in out_batched]
            _check_types(name, out_tree, outs, flags, size, out_avals)
            return outs, flags

        return rule


def _check_types(
    name: str, tree: PyTreeDef, outs: Sequence[Any], flags: Sequence[bool], size: int, out_avals: Sequence[ShapedArray]
) -> None:
    """Raises an error naming the result of a rule that is not a batch of what the function returns."""
    for path, out, there, one in zip(paths(tree), outs, flags, out_avals, strict=True):
        have, wanted = typeof(out), one.update(shape=(size, *one.shape)) if there else one
        what = f"the vmap rule of {name} returned {have.short} for result{pytree.keystr(path)}, "
        what += f"which is {one.short} for one of {size} examples and {'' if there else 'not '}batched"
        if have.shape != wanted.shape:
            raise ShapeError(what, instead=f"a value of type {wanted.short}", shapes=[have.shape, wanted.shape])
        if have.dtype != wanted.dtype:
            raise DtypeError(what, instead=f"a value of type {wanted.short}")
