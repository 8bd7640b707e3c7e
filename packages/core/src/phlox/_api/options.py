"""The options of `jit`, in a form that caches can key on."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._base import pytree
from .._base.pytree import PyTreeDef, flatten
from .._xla.devices import Device
from .._xla.pipeline import Overrides
from .._xla.sharding import Sharding
from .meshes import named


class Prefix(NamedTuple):
    """A tree of shardings (None: not specified) in hashable form: a prefix of (args, kwargs), or of results."""

    leaves: tuple[Any, ...]
    tree: PyTreeDef

    @staticmethod
    def of(tree: Any) -> Prefix | None:
        """The prefix that a user wrote."""
        if tree is None:
            return None
        leaves, treedef = flatten(tree, pytree.is_none)
        return Prefix(tuple(leaves), treedef)

    def spread(self, tree: Any) -> list[Sharding | None]:
        """One sharding for each leaf of `tree`."""
        spread = pytree.broadcast_prefix(self.tree.unflatten(self.leaves), tree, is_leaf=pytree.is_none)
        return [named("jit", sharding) for sharding in spread]


class Options(NamedTuple):
    """What `jit` was told, in a form that caches can key on."""

    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()
    donate_argnums: tuple[int, ...] = ()
    donate_argnames: tuple[str, ...] = ()
    keep_unused: bool = False
    inline: bool = False
    device: Device | None = None
    in_shardings: Prefix | None = None
    out_shardings: Prefix | None = None
    compiler_options: Overrides = ()
