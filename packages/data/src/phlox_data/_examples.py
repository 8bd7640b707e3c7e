"""Examples on the host: a tree of NumPy arrays, whose first axis counts the examples.

All data from outside is converted here: tensors become NumPy arrays, and for arrays that devices cannot hold there is
an error with their path. torch is used only if it was imported by other code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import phlox
from phlox.errors import ArgumentError, AxisSizeError, DtypeError, ShapeError
from phlox.tree_util import PyTreeDef, keystr, tree_flatten, tree_flatten_with_path, tree_leaves_with_path

from ._host import Names, OnHost, check_names, keep
from ._memory import Memory

_DROP = "host=[its name], with which it stays on the host; or leave it out where the examples are made"
_TREES = "dicts, tuples and lists of arrays; other containers through phlox.tree_util.register_pytree_node"

#: types that NumPy converts to arrays
_NUMPY = (np.ndarray, np.generic, bool, int, float, complex)
_PLAIN_DTYPES = frozenset(np.dtype(code) for code in "?bhilqBHILQefdFD")


@dataclass(frozen=True, slots=True)
class Examples:
    """Arrays with first axes of equal length, and the structure of the tree of which they are the leaves."""

    leaves: list[np.ndarray]
    structure: PyTreeDef
    host: frozenset[int] = frozenset()  # the numbers of the leaves that stay on the host
    final: bool = False  # whether nobody writes to the arrays any more, so that devices may use their memory

    def __len__(self) -> int:
        return len(self.leaves[0])

    def __getitem__(self, rows: slice | np.ndarray) -> Examples:
        return Examples([leaf[rows] for leaf in self.leaves], self.structure, self.host)

    def take(self, rows: slice | np.ndarray, memory: Memory) -> Examples:
        """``self[rows]``, with arrays of its own if rows are given by their numbers."""
        if isinstance(rows, slice):
            return self[rows]
        return Examples([take_rows(leaf, rows, memory) for leaf in self.leaves], self.structure, self.host, final=True)

    def filled_up(self, length: int) -> Examples:
        """The examples padded to `length` by repeating the last one."""
        # Not padded by zeros, which may be invalid inputs: a loss that is nan for a blank image stays nan when it is
        # multiplied with a mask.
        return self[np.minimum(np.arange(length), len(self) - 1)]


def take_rows(leaf: np.ndarray, rows: np.ndarray, memory: Memory) -> np.ndarray:
    """``leaf[rows]`` for an array of numbers from 0 to less than the length of `leaf`."""
    # Of others, take would first make an array that is contiguous.
    if not leaf.flags.c_contiguous or leaf.dtype.hasobject:
        return leaf[rows]
    # clip, because the mode that raises first writes to an array of its own.
    return leaf.take(rows, 0, memory.empty((len(rows), *leaf.shape[1:]), leaf.dtype), "clip")


def examples(tree: Any, name: str, host: frozenset[str | int] = frozenset(), final: bool = False) -> Examples:
    """The leaves of `tree` as NumPy arrays; NumPy arrays are not copied.

    `name` is the name of `tree` in errors, `host` the names of what stays on the host, `final` whether nobody writes to
    the arrays any more.

    Raises `ArgumentError` and `DtypeError` for leaves that are not arrays, and
    `AxisSizeError` if the lengths of first axes differ.
    """
    if not host:
        flat, structure = tree_flatten(tree)
        if flat and all(map(_is_plain, flat)) and len(set(map(len, flat))) == 1:  # as most are, and quickly seen
            return Examples(flat, structure, final=final)
    pairs, structure = tree_flatten_with_path(keep(tree, host))
    if not pairs:
        raise ArgumentError(f"{name} holds no arrays", instead=_TREES, value=tree)
    leaves = [as_numpy(leaf, name + keystr(path)) for path, leaf in pairs]
    for (path, _), leaf in zip(pairs, leaves, strict=True):
        if leaf.ndim == 0:
            raise ShapeError(
                f"{name}{keystr(path)} is a single number: it has no axis that counts examples",
                instead="batches (a loader with a batch size, dataset.batch(n)), or arrays of all examples",
                path=keystr(path),
                shape=(),
            )
    if len({len(leaf) for leaf in leaves}) > 1:
        sizes = [(keystr(path), 0, leaf.shape) for (path, _), leaf in zip(pairs, leaves, strict=True)]
        lines = "".join(f"\n    {name}{path} has shape {shape}" for path, _, shape in sizes)
        raise AxisSizeError(
            f"the first axis of all arrays of {name} must have one length{lines}",
            instead="arrays that hold the same examples",
            sizes=sizes,
        )
    on_host = frozenset(i for i, (_, leaf) in enumerate(pairs) if isinstance(leaf, OnHost)) if host else frozenset()
    return Examples(leaves, structure, on_host, final)


def _is_plain(leaf: Any) -> bool:
    return type(leaf) is np.ndarray and leaf.dtype in _PLAIN_DTYPES and leaf.ndim > 0


def as_numpy(leaf: Any, name: str) -> np.ndarray:
    """`leaf` as a NumPy array of a dtype that devices support; `name` is its name in errors."""
    if isinstance(leaf, OnHost):
        return leaf.array(name)
    torch = sys.modules.get("torch")
    if isinstance(leaf, getattr(torch, "Tensor", ())):
        array = _from_tensor(leaf, name)
    elif isinstance(leaf, _NUMPY) or hasattr(leaf, "__array__"):
        array = np.asarray(leaf)
    else:
        text = repr(leaf)
        shown = text if len(text) <= 60 else text[:57] + "..."
        raise ArgumentError(
            f"{name} is {shown} of type {type(leaf).__name__}, which is no array",
            instead=_DROP if isinstance(leaf, str | bytes) else _TREES,
            path=name,
            value=leaf,
        )
    if not array.dtype.isnative:  # big-endian, as in files of some old data sets
        array = array.astype(array.dtype.newbyteorder("="))
    try:
        phlox.dtypes.canonicalize_dtype(array.dtype)
    except DtypeError:
        raise DtypeError(
            f"{name} has dtype {array.dtype}, which no device knows", instead=_DROP, path=name, dtype=array.dtype
        ) from None
    return array


def _from_tensor(tensor: Any, name: str) -> np.ndarray:
    """A torch tensor as a NumPy array, which shares its memory if possible."""
    if str(tensor.layout) != "torch.strided":
        raise ArgumentError(
            f"{name} is a tensor of layout {tensor.layout}", instead="tensor.to_dense()", path=name, value=tensor
        )
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    kind = str(tensor.dtype).removeprefix("torch.")
    if kind.startswith(("bfloat16", "float8")):  # tensor.numpy() does not support these; ml_dtypes has the same names
        bits = tensor.view(getattr(sys.modules["torch"], f"uint{8 * tensor.element_size()}"))
        return bits.numpy().view(getattr(ml_dtypes, kind))
    try:
        return tensor.numpy()
    except TypeError:
        raise DtypeError(
            f"{name} has dtype {tensor.dtype}, which NumPy does not know", instead=_DROP, path=name, dtype=tensor.dtype
        ) from None


def collate(records: Sequence[Any], host: Names = ()) -> Any:
    """Stacks single examples to a batch: each array gets a new first axis, along which the examples are stacked.

    Args:
      records: trees of one structure with arrays, tensors, numbers or strings as leaves.
      host: names of entries that may hold anything else, such as lists of different length.

    Returns a tree of NumPy arrays. As `collate_fn` of a PyTorch `DataLoader` it makes batches without a detour over
    tensors, for datasets whose examples are NumPy arrays.

    Raises `ArgumentError` and `DtypeError` for leaves that are no arrays, `ShapeError` when shapes differ, `TreeError`
    when structures do.

    >>> collate([(np.array([1.0, 2.0]), 3), (np.array([4.0, 5.0]), 6)])
    (array([[1., 2.],
           [4., 5.]]), array([3, 6]))
    """
    if not len(records):
        raise ArgumentError("collate: no examples", instead="a list of at least one", value=records)
    return collated(records, check_names(host))


def collated(
    records: Sequence[Any], names: frozenset[str | int], empty: Callable[[tuple[int, ...], Any], np.ndarray] = np.empty
) -> Any:
    """`collate` of at least one example; `empty` makes the arrays to be filled, where examples are plain."""
    if names:
        records = [keep(record, names) for record in records]
    columns = None if names else plain_columns(records, empty)
    if columns is not None:
        return columns
    _, structure = tree_flatten(records[0])
    # tree.map over all records at once raises for different structures, with the path of the difference
    rows = phlox.tree.map(lambda *leaves: _Column(leaves), *records)
    columns = tree_leaves_with_path(rows)
    return structure.unflatten([_stacked(column.values, f"an example{keystr(path)}") for path, column in columns])


def plain_columns(records: Sequence[Any], empty: Callable[[tuple[int, ...], Any], np.ndarray] = np.empty) -> Any:
    """What `collate` makes of flat tuples, lists and dicts of NumPy arrays and numbers; None for everything else.

    This is the usual kind of examples. Trees of each of them would take longer than all else that happens to a batch.
    `empty` makes the arrays to be filled.
    """
    first, kind = records[0], type(records[0])
    if kind is not dict and kind is not tuple and kind is not list:
        return _plain_column(records, empty)
    if not first or set(map(type, records)) != {kind}:
        return None
    if kind is dict:
        keys = first.keys()
        if any(record.keys() != keys for record in records):
            return None
        columns = [_plain_column([record[key] for record in records], empty) for key in keys]
        return None if any(column is None for column in columns) else dict(zip(keys, columns, strict=True))
    if len(set(map(len, records))) > 1:
        return None
    columns = [_plain_column(column, empty) for column in zip(*records, strict=True)]
    return None if any(column is None for column in columns) else kind(columns)


def _plain_column(values: Sequence[Any], empty: Callable[[tuple[int, ...], Any], np.ndarray]) -> np.ndarray | None:
    """Arrays of one shape and dtype, or numbers of one type, stacked; None for everything else."""
    kind = type(values[0])
    if set(map(type, values)) != {kind}:
        return None
    if kind is np.ndarray:
        return _stacked_arrays(values, empty)
    if not issubclass(kind, np.number | np.bool_ | bool | int | float):
        return None
    column = np.asarray(values)
    return column if column.dtype in _PLAIN_DTYPES else None


def _stacked_arrays(
    values: Sequence[np.ndarray], empty: Callable[[tuple[int, ...], Any], np.ndarray]
) -> np.ndarray | None:
    first = values[0]
    if first.ndim == 0 or first.dtype not in _PLAIN_DTYPES or len(set(map(len, values))) > 1:
        return None
    column = empty((len(values), *first.shape), first.dtype)
    try:  # as np.stack, in half of its time
        np.concatenate(values, out=column.reshape(len(values) * len(first), *first.shape[1:]), casting="no")
    except (TypeError, ValueError):  # arrays without axes, of another dtype or another shape
        return None
    return column


class _Column:
    """The leaves at one path of all records. Not a tuple, because this class is a leaf of pytrees."""

    __slots__ = ("values",)

    def __init__(self, values: tuple[Any, ...]):
        self.values = values


def _stacked(values: Sequence[Any], name: str) -> np.ndarray:
    if isinstance(values[0], OnHost):
        return OnHost([value.value for value in values]).array(name)
    if all(isinstance(value, str | bytes) for value in values):
        return np.asarray(values)  # refused where batches are put on devices, unless `host` names it
    if not all(isinstance(value, _NUMPY) for value in values):
        values = [as_numpy(value, name) for value in values]
    shapes = {np.shape(value) for value in values}
    if len(shapes) > 1:
        raise ShapeError(
            f"{name} has different shapes: {', '.join(map(str, sorted(shapes)[:4]))}",
            instead="examples padded or cut to one length",
            path=name,
            shapes=sorted(shapes),
        )
    return as_numpy(np.stack(values) if shapes.pop() else np.asarray(values), name)
