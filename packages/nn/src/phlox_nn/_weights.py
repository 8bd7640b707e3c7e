"""Loading and saving PyTorch state dicts: matches their tensors with the arrays of a model.

Every layer states the names and layouts of its arrays in PyTorch (`Layer.torch_layout`); this module compares them with
a state dict. No tensor is read before all names and shapes match. torch is imported only to make its tensors.
"""

from __future__ import annotations

import dataclasses
import re
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
from ._torch_layout import SAME, TRANSPOSED, Layout, Source, Tensor

#: Maps names in a file to names in the model: rules (pattern, pattern) or (pattern, pattern, "transposed"), of which
#: the first that matches is used, or a function of a name. None: the tensor is not needed.
Rename = Sequence[tuple[Any, ...]] | Callable[[str], str | None]


@dataclasses.dataclass(frozen=True)
class Stored:
    """A tensor in a file or module: its name there, its shape, and a function that reads it."""

    name: str
    shape: tuple[int, ...]
    read: Callable[[], np.ndarray[Any, Any]]


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


def load_torch(model: Layer, weights: Any, *, rename: Rename = (), dtype: Any = None) -> tuple[Tree, Tree]:
    """Parameters and state of a model from a PyTorch module or its state dict.

    Args:
      model: the model to load them for.
      weights: a ``torch.nn.Module``, or its ``state_dict()``, of tensors or of NumPy arrays.
      rename: maps names in the file to names in the model, if they differ: ordered rules ``(pattern, pattern)``, of
        which the first that matches a whole name is used. Each ``*`` matches any text, which is inserted in the second
        pattern. A second pattern None means that the tensor is not needed. A third item "transposed" means that
        matrices in the file have the layout of phlox_nn, as in GPT-2. Alternatively, for loading, a function from name
        to name (or None).
      dtype: of the parameters that do not fix theirs, by default that of the file, which must be a floating-point type.

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
    return _loaded(model, pairs, dtype)


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
    if callable(rename):
        raise ArgumentError("names cannot be given back by a function", instead="rename=[(pattern, pattern), ...]")
    model.bind(params)  # raises if these are not parameters of the model
    arrays = dict(_paths.leaves(params)) | dict(_paths.leaves({} if state is None else state))
    tensors: dict[str, np.ndarray[Any, Any]] = {}
    for part in model.torch_layout():
        if state is None and not all(source.path in arrays for source in part.sources):
            continue  # a variable, such as batch statistics, and no state was given
        pieces = [np.asarray(part.layout.to_torch(np.asarray(arrays[s.path])[s.place])) for s in part.sources]
        array = np.concatenate(pieces) if len(pieces) > 1 else pieces[0] if pieces else np.zeros((), np.int64)
        name, layout = _back(part.name, rename)
        tensors[name] = np.array(layout.to_torch(array), order="C")
    return tensors


def _loaded(model: Layer, pairs: list[tuple[Tensor, Stored]], dtype: Any) -> tuple[Tree, Tree]:
    """Parameters and state, read from the matched tensors. Raises `DtypeError` for types that do not fit."""
    # Parameters that do not get this dtype fix theirs.
    params = dict(_paths.leaves(phlox.eval_shape(lambda key: model.init(key, dtype=jnp.float16), _KEY)))
    state = dict(_paths.leaves(model.init_state()))
    fixed = {path: x.dtype for path, x in {**params, **state}.items() if path in state or x.dtype != jnp.float16}
    pieces: dict[Path, dict[tuple[int, ...], Any]] = {}
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
    if wrong:
        raise _uncastable(model, wrong)
    arrays = {}
    for path, slices in pieces.items():
        if () in slices:
            whole = slices[()]
        else:
            shape = (params[path] if path in params else state[path]).shape
            whole = np.stack([slices[place] for place in sorted(slices)]).reshape(shape)
        needed = fixed.get(path, whole.dtype if dtype is None else dtype)
        arrays[path] = jnp.array(np.ascontiguousarray(whole).reshape(whole.shape), needed)
    return (
        _paths.nested({path: arrays[path] for path in params}),
        _paths.nested({path: arrays.get(path, first) for path, first in state.items()}),
    )


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
    there: dict[str, Stored] = {}
    for stored in _stored(weights):
        name, layout = _renamed(stored.name, rename)
        if name is None:
            continue
        if name in there:
            raise ArgumentError(f"rename: {there[name].name!r} and {stored.name!r} would both be {name!r}")
        there[name] = stored if layout is SAME else _transposed(stored)
    pairs: list[tuple[Tensor, Stored]] = []
    missing, misshapen = [], []
    for part in _present(model.torch_layout(), there):
        stored_ = there.pop(part.name, None)
        if not part.sources:
            continue
        shapes = [_shape(model, part, source) for source in part.sources]
        shape = (sum(s[0] for s in shapes), *shapes[0][1:]) if len(shapes) > 1 else shapes[0]
        if stored_ is None:
            missing.append((part.name, shape))
        elif stored_.shape != shape:
            misshapen.append((stored_.name, stored_.shape, shape))
        else:
            pairs.append((part, stored_))
    unused = tuple((stored.name, stored.shape) for stored in there.values())
    matched = tuple((s.name, tuple(_paths.text(source.path) for source in part.sources)) for part, s in pairs)
    return WeightReport(matched, tuple(missing), unused, tuple(misshapen)), pairs


def _present(layout: Sequence[Tensor], there: Mapping[str, Any]) -> Iterator[Tensor]:
    """The tensors to look for; a missing tensor is replaced by those of `instead` if some of them are present."""
    for part in layout:
        if part.name not in there and any(other.name in there for other in part.instead):
            yield from part.instead
        else:
            yield part


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
        yield Stored(name, tuple(value.shape), lambda value=value: _numpy(value))  # type: ignore[misc]


def _numpy(value: Any) -> np.ndarray[Any, Any]:
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


def _transposed(stored: Stored) -> Stored:
    return Stored(stored.name, stored.shape[::-1], lambda: stored.read().T)


def _renamed(name: str, rename: Rename) -> tuple[str | None, Layout]:
    """The name in the model for a name in the file, and the layout of the tensor in the file."""
    if callable(rename):
        return rename(name), SAME
    for theirs, ours, *layout in rename:
        match = _pattern(theirs).fullmatch(name)
        if match:
            return (None if ours is None else _filled(ours, theirs, match)), TRANSPOSED if layout else SAME
    return name, SAME


def _back(name: str, rename: Any) -> tuple[str, Layout]:
    """The name in the file for a name in the model, and the layout of the tensor in the file."""
    for theirs, ours, *layout in rename:
        match = ours is not None and _pattern(ours).fullmatch(name)
        if match:
            return _filled(theirs, ours, match), TRANSPOSED if layout else SAME
    return name, SAME


def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile("(.*)".join(re.escape(text) for text in pattern.split("*")))


def _filled(pattern: str, other: str, match: re.Match[str]) -> str:
    """`pattern` with its stars replaced by the texts that the stars of the `other` pattern matched."""
    if pattern.count("*") != other.count("*"):
        raise ArgumentError(
            f"rename: {other!r} and {pattern!r} must have the same number of stars",
            instead='("h.*.mlp.*", "blocks.*.*")',
        )
    pieces = pattern.split("*")
    return "".join(a + b for a, b in zip(pieces, (*match.groups(), ""), strict=True))
