"""Weights in safetensors files: one file, or several that a Hugging Face index lists.

Files are memory-mapped, so a tensor is read when it is used. The library is an extra, ``phlox-nn[safetensors]``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any

from phlox.errors import ArgumentError

from . import _weights
from ._layer import Layer
from ._paths import Tree
from ._weights import Rename, Stored

FileName = str | os.PathLike[str]


def load_safetensors(model: Layer, file: FileName, *, rename: Rename = (), dtype: Any = None) -> tuple[Tree, Tree]:
    """Parameters and state of a model from a safetensors file that has the names and layouts of PyTorch.

    Args:
      model: the model to load them for.
      file: a ``.safetensors`` file; an index ``.safetensors.index.json`` with files beside it; or a folder with one of
        them, called ``model.safetensors`` or ``model.safetensors.index.json`` as Hugging Face does.
      rename, dtype: as for `load_torch`.

    Returns:
      ``(params, state)``, for `Layer.apply`.

    Raises:
      TreeError: as `load_torch`, before anything is loaded.

    >>> import os, tempfile
    >>> import phlox
    >>> import phlox_nn as nn
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.relu)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "model.safetensors")
    ...     save_safetensors(model, model.init(phlox.random.key(0)), file)
    ...     params, state = load_safetensors(model, file)
    >>> params["0"]["weight"].shape
    (2, 3)
    """
    return _weights.load_torch(model, os.fspath(file), rename=rename, dtype=dtype)


def save_safetensors(model: Layer, params: Any, file: FileName, *, state: Any = None, rename: Rename = ()) -> None:
    """Writes parameters, and state if given, to a safetensors file with the names and layouts of PyTorch.

    Args:
      model: the model.
      params: its parameters.
      file: the file to write.
      state: its state, if it has any.
      rename: the rules that `load_safetensors` takes; they are applied in reverse.
    """
    _library()
    from safetensors.numpy import save_file

    save_file(_weights.to_numpy(model, params, state, rename), os.fspath(file), {"format": "pt"})


def stored(file: FileName) -> Iterator[Stored]:
    """The tensors in a file, in the files of an index, or in a folder."""
    path = FilePath(file)
    if path.is_dir():
        names = ("model.safetensors", "model.safetensors.index.json")
        path = next((path / name for name in names if (path / name).exists()), path / names[0])
    if path.name.endswith(".json"):
        listed: dict[str, str] = json.loads(path.read_text())["weight_map"]
        for part in dict.fromkeys(listed.values()):
            for tensor in _of_file(path.parent / part):
                if listed.get(tensor.name) == part:
                    yield tensor
    else:
        yield from _of_file(path)


def _of_file(path: FilePath) -> Iterator[Stored]:
    if not path.exists():
        raise ArgumentError(f"there is no file {str(path)!r}", file=str(path))
    handle = _library().safe_open(os.fspath(path), framework="np")
    for name in handle.keys():  # noqa: SIM118 (no dict)
        shape = tuple(handle.get_slice(name).get_shape())
        yield Stored(name, shape, lambda name=name: handle.get_tensor(name))  # type: ignore[misc]


def _library() -> Any:
    try:
        import safetensors
    except ImportError:
        raise ArgumentError(
            "files of weights need the safetensors library", instead="pip install phlox-nn[safetensors]"
        ) from None
    return safetensors
