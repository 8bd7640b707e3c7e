"""What a checkpoint holds, before its arrays are read: names, shapes and element types, as orbax describes them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import phlox

from ..errors import CheckpointError
from ._pack import Names

#: Python's numbers, by the kind of the dtype that orbax gives them.
NUMBERS: dict[str, type] = {"b": bool, "i": int, "f": float}


class Stored(NamedTuple):
    """One leaf of a checkpoint."""

    shape: tuple[int, ...]
    dtype: np.dtype
    number: bool = False  # a Python number, not an array
    impl: str | None = None  # the generator, if these are the words of PRNG keys

    def __str__(self) -> str:
        if self.number:
            return NUMBERS[self.dtype.kind].__name__
        if self.impl is not None:
            return keys_text(self.impl, self.shape[:-1])
        return array_text(self.shape, self.dtype)


def array_text(shape: Any, dtype: Any) -> str:
    """``f32[3,4]``."""
    return phlox.ShapeDtypeStruct(shape, dtype).aval.short


def keys_text(impl: str, shape: Any) -> str:
    """``keys of threefry2x32[3]``."""
    return f"keys of {impl}[{','.join(map(str, shape))}]"


class Contents:
    """Everything that one step holds.

    Args:
      tree: orbax's description of the stored tree.
      notes: what `pack` noted beside it; empty for checkpoints of other programs.
      kinds: the module `orbax.checkpoint.metadata`.

    Attributes:
      leaves: `Stored` by name.
      target: the tree to hand to orbax, so that it restores NumPy arrays and numbers of exactly these types.
    """

    def __init__(self, tree: Any, notes: dict[str, Any], kinds: Any):
        self._kinds = kinds
        self.target = self._target(tree)
        self.leaves = {names: self._stored(leaf) for names, leaf in by_name(tree).items()}
        self._empty = {tuple(names): np.empty(shape, dtype) for names, dtype, shape in notes.get("empty", ())}
        self.leaves |= {names: Stored(array.shape, array.dtype) for names, array in self._empty.items()}
        for names, impl in notes.get("keys", ()):
            self.leaves[tuple(names)] = self.leaves[tuple(names)]._replace(impl=impl)

    def values(self, restored: Any) -> dict[Names, Any]:
        """The leaves by name, given what orbax restored for `target`."""
        return by_name(restored) | self._empty

    def _stored(self, leaf: Any) -> Stored:
        if not isinstance(leaf, self._kinds.ArrayMetadata):
            raise CheckpointError(f"the checkpoint has a leaf that is no array: {leaf}")
        return Stored(tuple(leaf.shape), np.dtype(leaf.dtype), isinstance(leaf, self._kinds.ScalarMetadata))

    def _target(self, tree: Any) -> Any:
        if tree is None:
            return None
        if isinstance(tree, dict):
            return {key: self._target(child) for key, child in tree.items()}
        if isinstance(tree, list | tuple):
            return type(tree)([self._target(child) for child in tree])
        leaf = self._stored(tree)
        return NUMBERS[leaf.dtype.kind]() if leaf.number else np.empty(leaf.shape, leaf.dtype)


def by_name(tree: Any, names: Names = ()) -> dict[Names, Any]:
    """The leaves of a tree as orbax returns them: dicts and sequences, None where nothing is stored."""
    if tree is None:
        return {}
    if isinstance(tree, dict):
        items = [(str(key), child) for key, child in tree.items()]
    elif isinstance(tree, list | tuple):
        items = [(str(index), child) for index, child in enumerate(tree)]
    else:
        return {names: tree}
    return {found: leaf for key, child in items for found, leaf in by_name(child, (*names, key)).items()}
