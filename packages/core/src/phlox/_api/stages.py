"""The stages of a jitted call, for those who want to look: traced, lowered, compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._base import pytree
from .._base.errors import ShapeError
from .._base.pytree import PyTreeDef, flatten
from .._ir.avals import typeof_value
from .._ir.jaxpr import ClosedJaxpr


class Traced:
    """A function traced for one kind of arguments.

    Attributes:
      jaxpr: its program.
      out_tree: the structure of its result.
    """

    def __init__(self, closed: ClosedJaxpr, consts: list[Any], out_tree: PyTreeDef, lower: Callable[[], Lowered]):
        count = len(consts)
        jaxpr = closed.jaxpr
        opened = jaxpr.replace(constvars=jaxpr.invars[:count], invars=jaxpr.invars[count:])
        self.jaxpr = ClosedJaxpr(opened, consts)
        self.out_tree = out_tree
        self._lower = lower

    def lower(self) -> Lowered:
        """The next stage."""
        return self._lower()


class Lowered:
    """A function lowered to StableHLO. `as_text` is exactly what the compiler gets."""

    def __init__(
        self,
        text: str,
        in_tree: PyTreeDef,
        out_tree: PyTreeDef,
        keys: Sequence[Any],
        entry: Callable[[], Any],
        split: Callable[..., Any],
    ):
        self._text = text
        self.in_tree = in_tree
        self.out_tree = out_tree
        self._keys = keys
        self._entry = entry
        self._split = split

    def as_text(self) -> str:
        """The StableHLO module."""
        return self._text

    def compile(self) -> Compiled:
        """The next stage."""
        return Compiled(self._entry(), self.in_tree, self._keys, self._split)


class Compiled:
    """A compiled program for one kind of arguments; calling it never traces."""

    def __init__(self, entry: Any, in_tree: PyTreeDef, keys: Sequence[Any], split: Callable[..., Any]):
        self._entry = entry
        self.in_tree = in_tree
        self.out_tree = entry.out_tree
        self._avals = [getattr(k, "aval", k) for k in keys]
        self._split = split

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs, _ = self._split(args, kwargs)
        leaves, tree = flatten((args, kwargs))
        pytree.check_same(self.in_tree, tree, "this compiled function was made for arguments of another structure")
        for wanted, x in zip(self._avals, leaves, strict=True):
            have = typeof_value(x)
            if have is None or (have.shape, have.dtype) != (wanted.shape, wanted.dtype):
                got = repr(x) if have is None else have.short
                raise ShapeError(
                    f"this compiled function was made for an argument of type {wanted.short}, got {got}",
                    instead="the jitted function itself, which compiles for each type",
                )
        return self._entry.out_tree.unflatten(self._entry.run(leaves))

    def as_text(self) -> str:
        """The optimised program, as the compiler prints it."""
        return self._entry.program.executable.get_hlo_text()

    def cost_analysis(self) -> dict[str, float]:
        """The compiler's estimates: flops, bytes accessed …"""
        return dict(self._entry.program.executable.cost_analysis())

    def memory_analysis(self) -> Any:
        """Sizes of arguments, results and temporary memory, in bytes."""
        return self._entry.program.executable.get_compiled_memory_stats()
