"""Converts restored arrays to a tree of phlox, checked against the tree that the caller expects.

The checks are here because orbax returns arrays of other shapes, and converts dtypes, without an error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import phlox
from phlox.errors import DtypeError, ShapeError
from phlox.extend import Difference, tree_error
from phlox.tree_util import DictKey, keystr, tree_flatten_with_path

from ._pack import WRITTEN, Names, is_key, names_of
from ._stored import NUMBERS, Contents, Stored, array_text, keys_text, value_of

#: the types of leaves that are Python values
_PLAIN = {*NUMBERS.values(), *WRITTEN.values()}


def check(like: Any, stored: dict[Names, Stored], what: str) -> None:
    """Raises unless each leaf of `like` is stored with its shape and dtype, and nothing else is.

    `what` names the checkpoint. TreeError: leaves are missing or additional. ShapeError, DtypeError: types differ. All
    list the paths and both types.
    """
    leaves = {names_of(path): (path, leaf) for path, leaf in tree_flatten_with_path(like)[0]}
    parted = [
        Difference(path, _describe(leaf), "nothing") for names, (path, leaf) in leaves.items() if names not in stored
    ]
    parted += [
        Difference(tuple(map(DictKey, names)), "no such leaf", str(entry))
        for names, entry in stored.items()
        if names not in leaves
    ]
    if parted:
        raise tree_error(f"the tree to restore differs from {what}", parted, "like= a tree of the structure saved")
    fits = {names: _fit(leaf, stored[names]) for names, (_, leaf) in leaves.items()}
    wrong = [
        Difference(path, _describe(leaf), str(stored[names]))
        for names, (path, leaf) in leaves.items()
        if not all(fits[names])
    ]
    if wrong:
        kind = DtypeError if all(fit.shape for fit in fits.values()) else ShapeError
        lines = [f"    at {keystr(d.path) or 'the top'}: expected {d.expected}, got {d.got}" for d in wrong[:5]]
        more = [f"    and {len(wrong) - 5} more places"] if len(wrong) > 5 else []
        raise kind(
            "\n".join([f"types in the tree to restore differ from {what}", *lines, *more]),
            instead="like= a tree with the types saved; convert after restoring",
            path=wrong[0].path,
            expected=wrong[0].expected,
            got=wrong[0].got,
            differences=wrong,
        )


def check_like(like: Any) -> None:
    """Raises a `TreeError` for leaves of `like` that have no type."""
    for path, leaf in tree_flatten_with_path(like)[0]:
        if type(leaf) not in _PLAIN and not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
            difference = Difference(path, "an array, a number, text or a ShapeDtypeStruct", f"a {type(leaf).__name__}")
            raise tree_error("restore: like= has a leaf without a type", [difference])


class _Fit(NamedTuple):
    shape: bool
    dtype: bool


def _fit(leaf: Any, stored: Stored) -> _Fit:
    if stored.written is not None:
        return _Fit(True, stored.written == type(leaf).__name__)
    if type(leaf) in _PLAIN:
        kind = "i" if stored.dtype.kind == "u" else stored.dtype.kind
        return _Fit(stored.shape == (), stored.impl is None and NUMBERS.get(kind) is type(leaf))
    if is_key(leaf.dtype):
        same = stored.impl == leaf.dtype.impl.name
        # Programs on jax do not store the PRNG implementation, so arrays of words are accepted for keys.
        plain = stored.impl is None and stored.dtype == np.uint32 and not stored.number
        return _Fit(stored.shape == (*leaf.shape, *leaf.dtype.impl.key_shape), same or plain)
    same = not stored.number and stored.impl is None and stored.dtype == leaf.dtype.newbyteorder("=")
    # For keys and numbers only the dtype can differ.
    return _Fit(stored.impl is not None or stored.shape == tuple(leaf.shape), same)


def _describe(leaf: Any) -> str:
    if type(leaf) in _PLAIN:
        return type(leaf).__name__
    if is_key(leaf.dtype):
        return keys_text(leaf.dtype.impl.name, leaf.shape)
    return array_text(leaf.shape, leaf.dtype)


def rebuild(like: Any, values: dict[Names, Any]) -> Any:
    """The tree of structure `like` with `values`; each leaf gets the type and the placement of the leaf in `like`."""
    pairs, structure = tree_flatten_with_path(like)
    return structure.unflatten([_restore(leaf, values[names_of(path)]) for path, leaf in pairs])


def _restore(leaf: Any, value: Any) -> Any:
    if type(leaf) in _PLAIN:
        is_bytes = isinstance(value, np.ndarray) and type(leaf) in WRITTEN.values()
        return value_of(type(leaf).__name__, value) if is_bytes and value.ndim else type(leaf)(value)
    if isinstance(leaf, np.ndarray | np.generic):
        return np.asarray(value)[()] if isinstance(leaf, np.generic) else np.asarray(value)
    place = _place(leaf)
    if not is_key(leaf.dtype):
        _check_width(leaf, phlox.dtypes.canonicalize_dtype(value.dtype))
        return phlox.numpy.asarray(value) if place is None else phlox.device_put(value, place)
    keys = phlox.random.wrap_key_data(phlox.numpy.asarray(value), impl=leaf.dtype.impl.name)
    return keys if place is None else phlox.device_put(keys, place)


def _check_width(leaf: Any, dtype: Any) -> None:
    if dtype != leaf.dtype:
        raise DtypeError(
            f"restore: {_describe(leaf)} does not exist while 64-bit types are off",
            instead='phlox.config.update("enable_x64", True)',
        )


def restored_alone(target: Any, contents: Contents, values: dict[Names, Any]) -> Any:
    """The tree as it was saved, without `like`: dicts, lists, and arrays on the default device."""

    def build(names: Names, node: Any) -> Any:
        stored = contents.leaves.get(names)
        if stored is not None:
            return _alone(stored, values[names])
        if isinstance(node, dict):
            return {key: build((*names, str(key)), child) for key, child in node.items()}
        if isinstance(node, list | tuple):
            return [build((*names, str(number)), child) for number, child in enumerate(node)]
        return None

    return build((), target)


def _alone(stored: Stored, value: Any) -> Any:
    if stored.written is not None:
        return value_of(stored.written, value)
    if stored.number:
        return NUMBERS[stored.dtype.kind](value)
    array = phlox.numpy.asarray(value)
    return array if stored.impl is None else phlox.random.wrap_key_data(array, impl=stored.impl)


def _place(leaf: Any) -> Any:
    """The placement of this leaf's array; None: the default placement of new arrays."""
    if isinstance(leaf, phlox.ShapeDtypeStruct) or (isinstance(leaf, phlox.Array) and leaf.committed):
        return leaf.sharding
    return None
