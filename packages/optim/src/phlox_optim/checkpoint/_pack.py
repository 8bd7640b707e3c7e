"""Converts a tree of phlox to one that orbax saves: containers of Python, NumPy arrays and numbers.

Orbax supports neither phlox's arrays nor containers that are registered with phlox only. Notes (JSON) beside the tree
describe what orbax has no form for: PRNG keys (saved as words), text and numbers written as text (orbax refuses both,
so their UTF-8 bytes are saved), arrays without elements (refused too), the position of parts of arrays that several
processes save, and a checksum of each leaf.

The name of an array is the path to it as text: keys, indices and fields. Orbax names files in the same way.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

import phlox
from phlox.tree_util import KeyPath, keystr, tree_flatten_with_path

from ..errors import CheckpointError

Names = tuple[str, ...]

#: the dtypes of phlox that orbax can store
STORABLE = {
    *("bool", "int2", "int4", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    *("float4_e2m1fn", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
}


#: Python types that are saved as text, because orbax does not support them; int, because of integers over 64 bits
WRITTEN: dict[str, type] = {"str": str, "int": int, "complex": complex}


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


def unreadable(tree: Any) -> dict[Names, bool]:
    """For each leaf whether some parts of it are only in other processes."""
    return {names_of(path): _is_elsewhere(leaf) for path, leaf in tree_flatten_with_path(tree)[0]}


def _is_elsewhere(leaf: Any) -> bool:
    if not isinstance(leaf, phlox.Array) or isinstance(leaf, phlox.core.Tracer):
        return False
    return not (leaf.is_fully_addressable or (leaf.is_fully_replicated and leaf.sharding.has_addressable_devices))


def pack(tree: Any, first: bool = True, spread: Collection[Names] = ()) -> Packed:
    """`tree` in the form that orbax saves. Raises `CheckpointError` for leaves other than arrays, numbers and text.

    Of the leaves `spread`, which the first process cannot read completely, each process saves parts that it has, so
    that each part is saved once. The `first` process saves everything else.
    """
    notes: dict[str, Any] = {"format": 1, "keys": [], "written": [], "empty": [], "shares": [], "sums": []}
    saved: dict[str, KeyPath] = {}

    def walk(path: KeyPath, node: Any) -> Any:
        children, structure = tree_flatten_with_path(node, is_leaf=lambda x: x is not node)
        if structure.num_nodes == structure.num_leaves == 1:
            _claim(saved, path)
            if names_of(path) in spread:
                return _share(path, node, notes)
            leaf = _leaf(path, node, notes)
            return leaf if first else None
        return _container(node, [(key, walk((*path, key), child)) for (key,), child in children])

    packed = walk((), tree)
    if not saved:
        raise CheckpointError("the tree to save has no leaves")
    if () in map(names_of, saved.values()) and np.ndim(packed) == 0 and first:
        raise CheckpointError(f"the tree to save is {tree!r} alone", instead=f"a tree such as {{'value': {tree!r}}}")
    if not first:
        notes |= {"keys": [], "written": [], "empty": []}  # these are in the notes of the first process
        if not any(ranges for *_, ranges in notes["shares"]):
            packed = {"nothing": np.zeros(1, np.int8)}  # orbax does not save an empty tree
    notes["sums"] = [[names, checksum(leaf)] for names, leaf in by_name(packed).items() if leaf is not None]
    return Packed(packed, notes)


def checksum(leaf: Any) -> int:
    """A checksum of a leaf, because orbax restores corrupted bytes without an error."""
    return zlib.crc32(np.ascontiguousarray(leaf).view(np.uint8).data if np.ndim(leaf) else np.asarray(leaf).tobytes())


def by_name(tree: Any, names: Names = ()) -> dict[Names, Any]:
    """The leaves by name of a tree of dicts and sequences, as orbax returns it; None is no leaf."""
    if tree is None:
        return {}
    if isinstance(tree, dict):
        items = [(str(key), child) for key, child in tree.items()]
    elif isinstance(tree, tuple) and hasattr(tree, "_fields"):
        items = list(zip(tree._fields, tree, strict=True))
    elif isinstance(tree, list | tuple):
        items = [(str(index), child) for index, child in enumerate(tree)]
    else:
        return {names: tree}
    return {leaf_names: leaf for key, child in items for leaf_names, leaf in by_name(child, (*names, key)).items()}


def _claim(saved: dict[str, KeyPath], path: KeyPath) -> None:
    """Records the name of an array. Raises if two arrays have one name: their files would overwrite each other."""
    name = ".".join(names_of(path))
    if name in saved:
        raise CheckpointError(
            f"the leaves {keystr(saved[name])} and {keystr(path)} would both be saved as {name!r}",
            instead="keys without dots, and no numbers beside their text",
            path=path,
        )
    saved[name] = path


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
    if type(leaf) is int and -(1 << 63) <= leaf < 1 << 63:
        return leaf
    if type(leaf) in WRITTEN.values():
        notes["written"].append([names_of(path), type(leaf).__name__])
        leaf = np.frombuffer(str(leaf).encode("utf-8", "surrogatepass"), np.uint8)
    leaf = _words(path, leaf, notes)
    if not hasattr(leaf, "__array__"):
        raise CheckpointError(
            f"leaf {keystr(path)} is {leaf!r} of type {type(leaf).__name__}",
            instead="arrays, numbers and text; other things belong into a file of their own, or into the program",
            path=path,
        )
    array = np.asarray(leaf)
    _check_storable(path, array.dtype)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)  # as orbax restores it, for the checksum
    return None if _is_empty(path, array, notes) else array


def _is_empty(path: KeyPath, array: Any, notes: dict[str, Any]) -> bool:
    """Whether an array has no elements; then the notes describe it completely."""
    if array.size == 0:
        notes["empty"].append([names_of(path), array.dtype.name, array.shape])
    return array.size == 0


def _words(path: KeyPath, leaf: Any, notes: dict[str, Any]) -> Any:
    """The words of PRNG keys, recorded in the notes; other leaves unchanged."""
    if not (isinstance(leaf, phlox.Array) and is_key(leaf.dtype)):
        return leaf
    notes["keys"].append([names_of(path), leaf.dtype.impl.name])
    return phlox.random.key_data(leaf)


def _check_storable(path: KeyPath, dtype: Any) -> None:
    if dtype.name not in STORABLE:
        raise CheckpointError(
            f"leaf {keystr(path)} has element type {dtype}, which orbax cannot store",
            instead="another type, for example leaf.astype(phlox.numpy.int8)",
            path=path,
        )


def _share(path: KeyPath, leaf: Any, notes: dict[str, Any]) -> dict[str, np.ndarray] | None:
    """The parts of an array that this process saves, by number; the notes record start and end of each."""
    array = _words(path, leaf, notes)
    _check_storable(path, array.dtype)
    if _is_empty(path, array, notes):
        return None
    mine = [shard for shard in array.global_shards if shard.replica_id == 0 and shard.data is not None]
    ranges = [[part.indices(n)[:2] for part, n in zip(s.index, array.shape, strict=True)] for s in mine]
    notes["shares"].append([names_of(path), array.dtype.name, array.shape, ranges])
    return {str(number): np.asarray(shard.data) for number, shard in enumerate(mine)}
