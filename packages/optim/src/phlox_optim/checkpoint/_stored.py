"""The contents of a checkpoint before its arrays are read: names, shapes and dtypes, from orbax's metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import phlox

from ..errors import CheckpointError
from ._pack import WRITTEN, Names, by_name, checksum

#: types of Python numbers, by the kind of the dtype that orbax reports for them
NUMBERS: dict[str, type] = {"b": bool, "i": int, "f": float}


class Stored(NamedTuple):
    """One leaf of a checkpoint."""

    shape: tuple[int, ...]
    dtype: np.dtype
    number: bool = False  # a Python number, not an array
    impl: str | None = None  # the PRNG implementation, if these are the words of keys
    written: str | None = None  # the name of the Python type, if these are the bytes of a value written as text

    def __str__(self) -> str:
        if self.number:
            return NUMBERS[self.dtype.kind].__name__
        if self.written is not None:
            return self.written
        if self.impl is not None:
            return keys_text(self.impl, self.shape[:-1])
        return array_text(self.shape, self.dtype)


def array_text(shape: Any, dtype: Any) -> str:
    """An array type as text, such as ``f32[3,4]``."""
    return phlox.ShapeDtypeStruct(shape, dtype).aval.short


def keys_text(impl: str, shape: Any) -> str:
    """A type of keys as text, such as ``keys of threefry2x32[3]``."""
    return f"keys of {impl}[{','.join(map(str, shape))}]"


class Contents:
    """The contents of one step.

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
        self._sums = notes.get("sums", ())
        #: parts of arrays that several processes saved: name → (shape, dtype, start and end of each part)
        self.shares = {tuple(names): (shape, dtype, ranges) for names, dtype, shape, ranges in notes.get("shares", ())}
        for names, (shape, dtype, ranges) in self.shares.items():
            for number in range(len(ranges)):
                del self.leaves[(*names, str(number))]
            self.leaves[names] = Stored(tuple(shape), np.dtype(dtype))
        for names, impl in notes.get("keys", ()):
            self.leaves[tuple(names)] = self.leaves[tuple(names)]._replace(impl=impl)
        for names, kind in notes.get("written", ()):
            self.leaves[tuple(names)] = self.leaves[tuple(names)]._replace(written=kind)

    def values(self, restored: Any) -> dict[Names, Any]:
        """The leaves by name, from what orbax restored for `target`; for shared arrays their parts, see `join`.

        Raises `ValueError` if a leaf is not what was saved.
        """
        leaves = by_name(restored)
        for names, expected in self._sums:
            if checksum(leaves[tuple(names)]) != expected:
                raise ValueError(f"the elements of {'.'.join(names)} are not those that were saved")
        return leaves | self._empty

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


def value_of(kind: str, written: Any) -> Any:
    """The Python value of type `kind` whose text has these bytes."""
    return WRITTEN[kind](np.asarray(written).tobytes().decode("utf-8", "surrogatepass"))


def join(parts: Sequence[tuple[Contents, dict[Names, Any]]]) -> dict[Names, Any]:
    """The leaves by name, joined from the parts that each process saved."""
    leaves = dict(parts[0][1])
    for names, (shape, dtype, _) in parts[0][0].shares.items():
        whole = np.empty(shape, dtype)
        for contents, values in parts:
            for number, place in enumerate(contents.shares[names][2]):
                whole[tuple(slice(*ends) for ends in place)] = values[(*names, str(number))]
        leaves[names] = whole
    return leaves
