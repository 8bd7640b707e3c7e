"""Loading and saving PyTorch state dicts: matches their tensors with the arrays of a model.

Every layer states the names and layouts of its arrays in PyTorch (`Layer.torch_layout`); this module compares them with
a state dict. No tensor is read before all names and shapes match. torch is imported only to make its tensors.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

import phlox
import phlox.numpy as jnp
from phlox.errors import ArgumentError, DtypeError, TreeError

from . import _paths
from ._layer import Layer
from ._paths import Path, Tree
from ._rename import Rename, in_file, renamed
from ._torch_layout import SAME, Layout, Source, Tensor


@dataclasses.dataclass(frozen=True)
class Stored:
    """A tensor in a file or module: its name there, its shape, and a function that reads it.

    `release` frees the memory that reading a memory-mapped file took; the array remains valid.
    """

    name: str
    shape: tuple[int, ...]
    read: Callable[[], np.ndarray[Any, Any]]
    release: Callable[[], None] = lambda: None


@dataclasses.dataclass(frozen=True)
class WeightReport:
    """The result of `compare_weights`.

    Attributes:
      matched: (name in the file, paths of the model's arrays).
      missing: (name that the tensor would have, shape) for tensors that the model needs and the file lacks.
      unused: (name, shape) for tensors in the file that the model does not use.
      misshapen: (name, shape in the file, shape that the model needs).
    """

    matched: tuple[tuple[str, tuple[str, ...]], ...]
    missing: tuple[tuple[str, tuple[int, ...]], ...]
    unused: tuple[tuple[str, tuple[int, ...]], ...]
    misshapen: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]

    @property
    def fits(self) -> bool:
        """Whether all tensors are in the file, with the right shapes, and no others."""
        return not (self.missing or self.unused or self.misshapen)

    def __str__(self) -> str:
        lines = [f"{len(self.matched)} tensors fit"]
        lines += [f"missing:   {name} {shape}" for name, shape in self.missing]
        lines += [f"misshapen: {name} has {got}, but the model needs {needed}" for name, got, needed in self.misshapen]
        lines += [f"left over: {name} {shape}" for name, shape in self.unused]
        return "\n".join(lines)


def compare_weights(model: Layer, weights: Any, *, rename: Rename = ()) -> WeightReport:
    """Compares names and shapes of these weights with those of a model; nothing is loaded.

    Args:
      model: a layer.
      weights: a state dict, a module of PyTorch, or the path of a safetensors file or index.
      rename: as for `load_torch`.

    Returns a `WeightReport`; printed, it has a line for each thing that does not fit.

    >>> import numpy as np
    >>> import phlox_nn as nn
    >>> print(compare_weights(nn.Linear(2, 3), {"weight": np.ones((2, 3)), "scale": np.ones(3)}))
    0 tensors fit
    missing:   bias (3,)
    misshapen: weight has (2, 3), but the model needs (3, 2)
    left over: scale (3,)
    """
    return _match(model, weights, rename)[0]


def load_torch(
    model: Layer, weights: Any, *, rename: Rename = (), dtype: Any = None, sharding: Any = None
) -> tuple[Tree, Tree]:
    """Parameters and state of a model from a PyTorch module or its state dict.

    Args:
      model: the model to load them for.
      weights: a ``torch.nn.Module``, its ``state_dict()``, of tensors or of NumPy arrays, or the path of a file that
        `load_safetensors` reads.
      rename: maps names in the file to names in the model, if they differ: ordered rules ``(pattern, pattern)``, of
        which the first that matches a whole name is used. Each ``*`` matches any text, which is inserted in the second
        pattern. A second pattern None means that the tensor is not needed; several patterns mean that the tensor is the
        concatenation of several along its first axis. A third item "transposed" means that matrices in the file have
        the layout of phlox_nn, as in GPT-2; a pair of functions converts from the layout of the file to PyTorch's, and
        back. Alternatively, for loading, a function from name to name (or None).
      dtype: of the parameters that do not fix theirs, by default that of the file, which must be a floating-point type.
      sharding: a sharding or device for all arrays, or nested dicts of them as `phlox_nn.shardings` returns. Devices
        read only their parts of the file.

    Returns:
      ``(params, state)``, for `Layer.apply`.

    Raises:
      TreeError: tensors are missing, unused or have wrong shapes; one error, raised before anything is loaded, lists
        all of them with both shapes. Its attribute `report` is a `WeightReport`.
      DtypeError: parameters are integers or bools in the file, and no `dtype` is given; or a value would be lost, as
        that of a float in a state of integers. It lists all of them.

    >>> import numpy as np
    >>> import phlox_nn as nn
    >>> weights = {"fc.weight": np.ones((3, 2), np.float32), "fc.bias": np.ones(3, np.float32)}
    >>> params, state = load_torch(nn.Sequential(nn.Linear(2, 3)), weights, rename=[("fc.*", "0.*")])
    >>> params["0"]["weight"].shape, state
    ((2, 3), {})
    """
    report, pairs = _match(model, weights, rename)
    if not report.fits:
        raise TreeError(
            f"the weights do not fit {type(model).__name__}:\n  " + str(report).replace("\n", "\n  "),
            instead="rename=[(pattern in the file, pattern in the model), (what is not needed, None)]",
            report=report,
        )
    return _loaded(model, pairs, dtype, sharding)


def to_torch(model: Layer, params: Any, state: Any = None, *, rename: Rename = ()) -> dict[str, Any]:
    """The state dict of PyTorch for parameters and state of a model: what `load_torch` reads.

    Args:
      model: the model.
      params, state: as `Layer.init` and `Layer.init_state` make them.
      rename: the rules that `load_torch` was given; they are applied backwards.

    Returns:
      A dict of ``torch.Tensor`` by name, for ``module.load_state_dict``.

    >>> import phlox
    >>> import phlox_nn as nn
    >>> model = nn.Linear(2, 3)
    >>> {k: tuple(v.shape) for k, v in to_torch(model, model.init(phlox.random.key(0))).items()}  # doctest: +SKIP
    {'weight': (3, 2), 'bias': (3,)}
    """
    import torch

    def to_tensor(x: np.ndarray[Any, Any]) -> Any:
        if x.dtype == ml_dtypes.bfloat16:
            return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(x)

    return {name: to_tensor(x) for name, x in to_numpy(model, params, state, rename).items()}


def to_numpy(model: Layer, params: Any, state: Any, rename: Rename) -> dict[str, np.ndarray[Any, Any]]:
    """The state dict of PyTorch with NumPy arrays, which are copies."""
    model.bind(params)  # raises if these are not parameters of the model
    arrays = dict(_paths.leaves(params)) | dict(_paths.leaves({} if state is None else state))
    tensors: dict[str, np.ndarray[Any, Any]] = {}
    for part in model.torch_layout():
        if state is None and not all(source.path in arrays for source in part.sources):
            continue  # a variable, such as batch statistics, and no state was given
        pieces = [np.asarray(part.layout.to_torch(np.asarray(arrays[s.path])[s.place])) for s in part.sources]
        array = np.concatenate(pieces) if len(pieces) > 1 else pieces[0] if pieces else np.zeros((), np.int64)
        tensors[part.name] = array
    return {name: np.array(array, order="C") for name, array in in_file(tensors, rename)}


def _loaded(model: Layer, pairs: list[tuple[Tensor, Stored]], dtype: Any, sharding: Any) -> tuple[Tree, Tree]:
    """Parameters and state, read from the matched tensors. Raises `DtypeError` for types that do not fit."""
    # Parameters that do not get this dtype fix theirs.
    params = dict(_paths.leaves(phlox.eval_shape(lambda key: model.init(key, dtype=jnp.float16), _KEY)))
    state = dict(_paths.leaves(model.init_state()))
    fixed = {path: x.dtype for path, x in {**params, **state}.items() if path in state or x.dtype != jnp.float16}
    pieces: dict[Path, dict[tuple[int, ...], Any]] = {}
    files: dict[Path, list[Stored]] = {}
    wrong: list[tuple[str, Any, Any]] = []
    for part, stored in pairs:
        array, start = stored.read(), 0
        for source in part.sources:
            needed = fixed.get(source.path, dtype)
            if not _is_castable(array, needed):
                wrong.append((stored.name, array, needed))
                break
            length = _shape(model, part, source)[:1]
            piece = array[start : start + length[0]] if len(part.sources) > 1 else array
            start += length[0] if length else 0
            pieces.setdefault(source.path, {})[source.place] = part.layout.from_torch(piece)
            files.setdefault(source.path, []).append(stored)
    if wrong:
        raise _uncastable(model, wrong)
    shardings = _shardings(sharding, pieces)
    arrays = {}
    # The largest first: its copies are freed before the model is complete, which bounds the peak of memory.
    for path in sorted(pieces, key=lambda path: -_size(pieces[path])):
        slices = pieces.pop(path)
        if () in slices:
            whole = slices[()]
        else:
            shape = (params[path] if path in params else state[path]).shape
            whole = np.stack([slices[place] for place in sorted(slices)]).reshape(shape)
        del slices
        arrays[path] = _on_device(whole, fixed.get(path, whole.dtype if dtype is None else dtype), shardings(path))
        del whole
        for stored in files[path]:
            stored.release()
    return (
        _paths.nested({path: arrays[path] for path in params}),
        _paths.nested({path: arrays.get(path, first) for path, first in state.items()}),
    )


def _size(slices: Mapping[Any, np.ndarray[Any, Any]]) -> int:
    return sum(piece.nbytes for piece in slices.values())


def _shardings(sharding: Any, pieces: Mapping[Path, Any]) -> Callable[[Path], Any]:
    """The sharding, or None, by path. Raises `TreeError` for nested dicts that do not have the names of the arrays."""
    if not isinstance(sharding, Mapping):
        return lambda path: sharding
    by_path = dict(_paths.leaves(sharding))
    unknown = [_paths.text(path) for path in by_path if path not in pieces]
    if unknown:
        raise TreeError(
            f"sharding: the model has no array {unknown[0]!r}",
            instead="nested dicts with the names of the parameters, from phlox_nn.shardings",
        )
    return by_path.get


def _on_device(array: np.ndarray[Any, Any], dtype: Any, sharding: Any) -> Any:
    """The array of this dtype with this sharding (None: on the default device). Devices get only their parts."""

    def part(index: Any) -> np.ndarray[Any, Any]:
        return np.ascontiguousarray(array[index], dtype).reshape(np.shape(array[index]))

    if sharding is None:
        return jnp.array(np.ascontiguousarray(array).reshape(array.shape), dtype)
    if not isinstance(sharding, phlox.sharding.Sharding):
        return phlox.device_put(part(...), sharding)
    return phlox.make_array_from_callback(array.shape, sharding, part)


def _is_castable(array: np.ndarray[Any, Any], dtype: Any) -> bool:
    """Whether `array` can be an array of this dtype (None: of any floating-point one) without losing its meaning.

    Floats are rounded to other floats, as everywhere. Integers and bools become floats only if a dtype is given: they
    may be quantized weights, which mean other numbers.
    """
    kinds = [jnp.bool_, jnp.integer, jnp.floating, jnp.complexfloating]
    rank = next((n for n, kind in enumerate(kinds) if jnp.issubdtype(array.dtype, kind)), len(kinds))
    if dtype is None:
        return rank == kinds.index(jnp.floating)
    needed = next((n for n, kind in enumerate(kinds) if jnp.issubdtype(dtype, kind)), -1)
    if rank == needed == kinds.index(jnp.integer) and array.size:
        limits = jnp.iinfo(dtype)
        return bool(limits.min <= array.min() and array.max() <= limits.max)
    return rank <= needed


def _uncastable(model: Layer, wrong: list[tuple[str, Any, Any]]) -> DtypeError:
    """The error for arrays, by name, that are not castable to the dtypes that the model needs."""

    def line(name: str, array: Any, dtype: Any) -> str:
        needed = "floats" if dtype is None else jnp.dtype(dtype).name
        return f"{name} is {phlox.ShapeDtypeStruct(array.shape, array.dtype).aval.short}, the model needs {needed}"

    integers = all(dtype is None and not jnp.issubdtype(array.dtype, jnp.inexact) for _, array, dtype in wrong)
    return DtypeError(
        f"the element types of the weights do not fit {type(model).__name__}:\n  "
        + "\n  ".join(line(*item) for item in wrong),
        instead="dtype=phlox.numpy.float32 converts integers and bools; quantized weights need their scales too"
        if integers
        else "arrays of these types",
    )


_KEY = phlox.ShapeDtypeStruct((2,), np.uint32)


def _match(model: Layer, weights: Any, rename: Rename) -> tuple[WeightReport, list[tuple[Tensor, Stored]]]:
    """The report, and the pairs of matching tensors of the model and of the file."""
    layout = model.torch_layout()
    needed = {part.name: _tensor_shape(model, part) for part in layout if part.sources}
    there: dict[str, Stored] = {}
    misshapen = []
    for stored in _stored(weights):
        names, form = renamed(stored.name, rename)
        whole = stored if form is SAME else _converted(stored, form)
        pieces = (
            _split(whole, [needed.get(name, (0,))[0] for name in names]) if len(names) > 1 else [whole] * len(names)
        )
        if pieces is None:
            lengths = sum(needed[name][0] for name in names if name in needed)
            misshapen.append((stored.name, whole.shape, (lengths, *needed.get(names[0], whole.shape)[1:])))
            needed = {name: shape for name, shape in needed.items() if name not in names}
        for name, piece in zip(names, pieces or (), strict=False):
            if name in there:
                raise ArgumentError(f"rename: {there[name].name!r} and {stored.name!r} would both be {name!r}")
            there[name] = piece
    pairs: list[tuple[Tensor, Stored]] = []
    missing = []
    for part in _present(layout, there):
        stored_ = there.pop(part.name, None)
        if not part.sources:
            continue
        shape = _tensor_shape(model, part)
        if stored_ is not None and stored_.shape != shape:
            misshapen.append((stored_.name, stored_.shape, shape))
        elif stored_ is not None:
            pairs.append((part, stored_))
        elif part.name in needed or part not in layout:
            missing.append((part.name, shape))
    unused = tuple((stored.name, stored.shape) for stored in there.values())
    matched = tuple((s.name, tuple(_paths.text(source.path) for source in part.sources)) for part, s in pairs)
    return WeightReport(matched, tuple(missing), unused, tuple(misshapen)), pairs


def _split(stored: Stored, lengths: list[int]) -> list[Stored] | None:
    """Consecutive parts of a tensor, of these lengths along its first axis; None if it has another length."""
    if sum(lengths) != (stored.shape or (0,))[0]:
        return None
    ends = list(itertools.accumulate(lengths))

    def part(start: int, end: int) -> Stored:
        return dataclasses.replace(
            stored, shape=(end - start, *stored.shape[1:]), read=lambda: stored.read()[start:end]
        )

    return [part(end - length, end) for end, length in zip(ends, lengths, strict=True)]


def _converted(stored: Stored, layout: Layout) -> Stored:
    """A tensor in PyTorch's layout, for one that the file has in another."""
    blank = np.broadcast_to(np.zeros((), np.float32), stored.shape)
    try:
        shape = layout.from_torch(blank).shape
    except (ValueError, IndexError):  # the axes are others than the layout has: reported as misshapen
        return stored
    return dataclasses.replace(stored, shape=tuple(shape), read=lambda: layout.from_torch(stored.read()))


def _present(layout: Sequence[Tensor], there: Mapping[str, Any]) -> Iterator[Tensor]:
    """The tensors to look for; a missing tensor is replaced by those of `instead` if some of them are present."""
    for part in layout:
        if part.name not in there and any(other.name in there for other in part.instead):
            yield from part.instead
        else:
            yield part


def _tensor_shape(model: Layer, part: Tensor) -> tuple[int, ...]:
    """The shape of a tensor in PyTorch: that of its arrays, concatenated."""
    shapes = [_shape(model, part, source) for source in part.sources]
    return (sum(s[0] for s in shapes), *shapes[0][1:]) if len(shapes) > 1 else shapes[0]


def _shape(model: Layer, part: Tensor, source: Source) -> tuple[int, ...]:
    """The shape in PyTorch of an array of the model."""
    full = _declared(model, source.path)[len(source.place) :]
    laid = phlox.eval_shape(part.layout.to_torch, phlox.ShapeDtypeStruct(full, jnp.float32))
    return tuple(laid.shape)


def _declared(layer: Layer, path: Path) -> tuple[int, ...]:
    """The shape of an array of a model, with the leading axes that enclosing `Stack` layers add."""
    plan = layer._plan()
    if len(path) == 1 and path[0] in {**plan.parameters, **plan.variables}:
        return tuple({**plan.parameters, **plan.variables}[path[0]][1])
    below, inner = next((below, inner) for below, inner in plan.parts if path[: len(below)] == below)
    return (*layer._copies, *_declared(inner, path[len(below) :]))


def _stored(weights: Any) -> Iterator[Stored]:
    """The tensors in a module, a dict of tensors or arrays, or a file."""
    if isinstance(weights, str) or hasattr(weights, "__fspath__"):
        from . import _safetensors

        yield from _safetensors.stored(weights)
        return
    if hasattr(weights, "state_dict"):
        weights = weights.state_dict()
    if not isinstance(weights, Mapping):
        raise ArgumentError(
            f"weights must be a module of PyTorch, a state dict or a path, got a {type(weights).__name__}",
            instead="module.state_dict()",
        )
    for name, value in weights.items():
        if not hasattr(value, "shape") or not hasattr(value, "dtype"):
            inner = [key for key, x in weights.items() if isinstance(x, Mapping)]
            raise ArgumentError(
                f"weights[{name!r}] is no tensor, but of type {type(value).__name__}",
                instead=f"weights[{inner[0]!r}]" if inner else "a state dict of tensors or arrays by name",
                name=name,
            )
        yield Stored(name, tuple(value.shape), lambda value=value: to_array(value))  # type: ignore[misc]


def to_array(value: Any) -> np.ndarray[Any, Any]:
    """A PyTorch tensor, or an array of any kind, as a NumPy array."""
    if not hasattr(value, "detach"):
        return np.asarray(value)
    import torch

    value = value.detach().cpu()
    if value.is_sparse or value.is_quantized:
        value = value.to_dense() if value.is_sparse else value.dequantize()
    bits = {torch.bfloat16: (torch.int16, ml_dtypes.bfloat16)}
    bits |= {
        getattr(torch, name): (torch.uint8, getattr(ml_dtypes, name))
        for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
    }
    if value.dtype in bits:
        integers, dtype = bits[value.dtype]
        return value.contiguous().view(integers).numpy().view(dtype)
    return value.numpy()
