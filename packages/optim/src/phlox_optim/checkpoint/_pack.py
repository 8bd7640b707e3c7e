"""From a tree of phlox to what orbax saves: dicts, lists, tuples, named tuples and None, with NumPy arrays and numbers.

Orbax knows neither phlox's arrays nor the containers that are registered with phlox alone. Three things have no form of
their own there, and are told in notes beside the tree: which arrays are PRNG keys (their words are saved), arrays
without elements (orbax refuses them), and the version of these notes.

Arrays are known by their names: the keys, indices and fields that lead to them, as text. That is how orbax files them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import phlox
from phlox.tree_util import KeyPath, keystr, tree_flatten_with_path

from ..errors import CheckpointError

Names = tuple[str, ...]

#: The element types that orbax's files can hold, of those that phlox has.
STORABLE = {
    *("bool", "int2", "int4", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    *("float4_e2m1fn", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
}


class Packed(NamedTuple):
    """A tree for orbax, and the notes beside it (JSON)."""

    tree: Any
    notes: dict[str, Any]


def names_of(path: KeyPath) -> Names:
    """The keys, indices and fields of a path as text."""
    return tuple(keystr((key,), simple=True) for key in path)


def is_key(dtype: Any) -> bool:
    """Whether a dtype is that of PRNG keys."""
    return phlox.dtypes.issubdtype(dtype, phlox.dtypes.prng_key)


def pack(tree: Any) -> Packed:
    """`tree` in the form that orbax saves. Raises `CheckpointError` for leaves that are neither arrays nor numbers."""
    notes: dict[str, Any] = {"format": 1, "keys": [], "empty": []}
    filed: dict[str, KeyPath] = {}

    def walk(path: KeyPath, node: Any) -> Any:
        children, structure = tree_flatten_with_path(node, is_leaf=lambda x: x is not node)
        if structure.num_nodes == structure.num_leaves == 1:
            _claim(filed, path)
            return _leaf(path, node, notes)
        return _container(node, [(key, walk((*path, key), child)) for (key,), child in children])

    packed = walk((), tree)
    if not filed:
        raise CheckpointError("the tree to save has no leaves")
    return Packed(packed, notes)


def _claim(filed: dict[str, KeyPath], path: KeyPath) -> None:
    """Two arrays of one name would overwrite each other's file."""
    name = ".".join(names_of(path))
    if name in filed:
        raise CheckpointError(
            f"the leaves {keystr(filed[name])} and {keystr(path)} would both be filed as {name!r}",
            instead="keys without dots, and no numbers beside their text",
            path=path,
        )
    filed[name] = path


def _container(node: Any, children: list[tuple[Any, Any]]) -> Any:
    values = [value for _, value in children]
    if node is None:
        return None
    if type(node) in (list, tuple):
        return type(node)(values)
    if isinstance(node, tuple) and hasattr(node, "_fields"):
        return type(node)(*values)
    return {names_of((key,))[0]: value for key, value in children}


def _leaf(path: KeyPath, leaf: Any, notes: dict[str, Any]) -> Any:
    if type(leaf) in (bool, float):
        return leaf
    if type(leaf) is int:
        if not -(1 << 63) <= leaf < 1 << 63:
            raise CheckpointError(f"leaf {keystr(path)} is {leaf}, which does not fit into 64 bits", path=path)
        return leaf
    if isinstance(leaf, phlox.Array) and is_key(leaf.dtype):
        notes["keys"].append([names_of(path), leaf.dtype.impl.name])
        leaf = phlox.random.key_data(leaf)
    if not hasattr(leaf, "__array__"):
        raise CheckpointError(
            f"leaf {keystr(path)} is {leaf!r} of type {type(leaf).__name__}",
            instead="arrays and numbers; other things belong into a file of their own, or into the program",
            path=path,
        )
    array = np.asarray(leaf)
    if array.dtype.name not in STORABLE:
        raise CheckpointError(
            f"leaf {keystr(path)} has element type {array.dtype}, which orbax cannot store",
            instead="another type, for example leaf.astype(phlox.numpy.int8)",
            path=path,
        )
    if array.size == 0:
        notes["empty"].append([names_of(path), array.dtype.name, array.shape])
        return None
    return array
