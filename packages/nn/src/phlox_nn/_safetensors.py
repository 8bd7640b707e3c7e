"""Weights in files: safetensors files or those of PyTorch, one file or several that a Hugging Face index lists.

Files are memory-mapped, so a tensor is read when it is used. They may come from anywhere: nothing in them is trusted,
and an index reads no file outside of its folder. Writing needs the extra ``phlox-nn[safetensors]``; reading does not,
because that library gives no array of float8, and of two tensors of one name the last.
"""

from __future__ import annotations

import functools
import json
import math
import mmap
import os
from collections.abc import Iterator
from pathlib import Path as FilePath, PurePosixPath, PureWindowsPath
from typing import Any, TypeGuard

import numpy as np

import phlox.numpy as jnp
from phlox.errors import ArgumentError

from . import _torch_files, _weights
from ._layer import Layer
from ._paths import Tree
from ._rename import Rename
from ._weights import Stored

FileName = str | os.PathLike[str]


def load_safetensors(
    model: Layer, file: FileName, *, rename: Rename = (), dtype: Any = None, sharding: Any = None
) -> tuple[Tree, Tree]:
    """Parameters and state of a model from a safetensors file that has the names and layouts of PyTorch.

    Args:
      model: the model to load them for.
      file: a ``.safetensors`` file; an index ``.safetensors.index.json`` with files beside it; or a folder with one of
        them, called ``model.safetensors`` or ``model.safetensors.index.json`` as Hugging Face does. Files that
        ``torch.save`` wrote (``pytorch_model.bin``) are read too, without running code in them, if torch is installed.
      rename, dtype, sharding: as for `load_torch`.

    Returns:
      ``(params, state)``, for `Layer.apply`.

    Raises:
      ArgumentError: a file is missing, truncated or no safetensors file; or an index lists a file that is not below its
        own folder.
      TreeError, DtypeError: as `load_torch`.

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
    return _weights.load_torch(model, os.fspath(file), rename=rename, dtype=dtype, sharding=sharding)


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
        names = [stem + ending for stem in _STEMS for ending in ("", ".index.json")]
        path = next((path / name for name in names if (path / name).exists()), path / names[0])
    if path.name.endswith(".json"):
        yield from _of_index(path)
    else:
        yield from _of_any_file(path)


def _of_any_file(path: FilePath) -> Iterator[Stored]:
    if path.suffix not in _torch_files.ENDINGS:
        yield from _of_file(path)
        return
    _check_file(path)
    for name, tensor in _torch_files.state_dict(path):
        yield Stored(name, tuple(tensor.shape), functools.partial(_weights.to_array, tensor))


def _of_index(path: FilePath) -> Iterator[Stored]:
    _check_file(path)
    if path.stat().st_size > _LONGEST_HEADER:
        raise _invalid(path, f"it has {path.stat().st_size} bytes")
    index = _parsed(path, path.read_bytes())
    listed = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(listed, dict) or not all(isinstance(part, str) for part in listed.values()):
        raise _invalid(path, 'it has no "weight_map" from names of tensors to names of files')
    parts = dict.fromkeys(listed.values())
    for part in parts:
        _check_inside(path, part)
    for part in parts:
        expected = {name for name, file in listed.items() if file == part}
        for tensor in _of_any_file(path.parent / part):
            if tensor.name in expected:
                expected.remove(tensor.name)
                yield tensor
        if expected:
            raise _invalid(path, f"it lists {min(expected)!r} in {part!r}, which has no such tensor")


def _check_inside(index: FilePath, part: str) -> None:
    """Raises `ArgumentError` unless `part` is the name of a file of weights below the folder of the index.

    Links in the folder are followed: Hugging Face's cache consists of them.
    """
    for path in (PurePosixPath(part), PureWindowsPath(part)):
        if path.is_absolute() or path.drive or path.root or ".." in path.parts or "\0" in part:
            raise _invalid(index, f"it lists the file {part!r}, which is not below its folder")
    # An index of safetensors files, which cannot run code, does not lead to pickles, which torch has to check.
    ending = ".bin" if index.name.endswith(".bin.index.json") else ".safetensors"
    if not part.endswith(ending):
        raise _invalid(index, f"it lists the file {part!r}, which is no {ending} file")


def _check_file(path: FilePath) -> None:
    """Raises `ArgumentError` unless there is a regular file."""
    if not path.is_file():
        raise ArgumentError(f"there is no file {str(path)!r}", file=str(path))


#: the element types of the format, and their dtypes. F4 and F6, which are smaller than a byte, have no array.
_DTYPES = dict(
    pair.split(" ")
    for pair in (
        *("BOOL bool", "U8 uint8", "U16 uint16", "U32 uint32", "U64 uint64", "I8 int8", "I16 int16", "I32 int32"),
        *("I64 int64", "F16 float16", "BF16 bfloat16", "F32 float32", "F64 float64", "C64 complex64"),
        *("F8_E4M3 float8_e4m3fn", "F8_E5M2 float8_e5m2", "F8_E8M0 float8_e8m0fnu"),
    )
)
#: the files of weights in a folder, as transformers and diffusers write them, the first that exists
_STEMS = ("model.safetensors", "diffusion_pytorch_model.safetensors", "pytorch_model.bin")
#: the longest header or index, in bytes; the format's own limit
_LONGEST_HEADER = 100_000_000


def _of_file(path: FilePath) -> Iterator[Stored]:
    """The tensors of a file: 8 bytes with the length of the header, the header (JSON), and the bytes of the tensors."""
    _check_file(path)
    if path.stat().st_size < 8:
        raise _invalid(path, "it has fewer than 8 bytes")
    content = np.memmap(path, np.uint8, "r")
    length = int(content[:8].view("<u8")[0])
    if length > min(len(content) - 8, _LONGEST_HEADER):
        raise _invalid(path, f"its header would have {length} bytes, the file has {len(content)}")
    header, data = _parsed(path, content[8 : 8 + length].tobytes()), content[8 + length :]
    if not isinstance(header, dict):
        raise _invalid(path, "its header is no JSON object")
    header.pop("__metadata__", None)
    tensors = [_described(path, name, entry) for name, entry in header.items()]
    end = 0
    for name, _, _, (start, stop) in sorted(tensors, key=lambda tensor: tensor[3]):
        if start != end:
            raise _invalid(path, f"the bytes of the tensor {name!r} do not follow those of the one before")
        end = stop
    if end != len(data):
        raise _invalid(path, f"its tensors have {end} bytes, of which {len(data)} are in the file")
    mapping: Any = content._mmap  # type: ignore[attr-defined]
    release = functools.partial(mapping.madvise, mmap.MADV_DONTNEED)
    for name, shape, dtype, (start, stop) in tensors:
        yield Stored(name, shape, functools.partial(_read, data[start:stop], dtype, shape), release)


def _described(path: FilePath, name: str, written: Any) -> tuple[str, tuple[int, ...], Any, tuple[int, int]]:
    """Name, shape, dtype and place of a tensor from its entry in the header."""

    def is_sizes(value: Any) -> TypeGuard[list[int]]:
        return isinstance(value, list) and all(type(n) is int and n >= 0 for n in value)

    entry: dict[str, Any] = written if isinstance(written, dict) else {}
    kind, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not is_sizes(shape) or not is_sizes(offsets) or len(offsets) != 2 or not isinstance(kind, str):
        raise _invalid(path, f"the entry of the tensor {name!r} is not a dtype, a shape and two offsets")
    if kind not in _DTYPES:
        raise _invalid(path, f"the tensor {name!r} has the element type {kind!r}, which no array has")
    dtype = jnp.dtype(_DTYPES[kind])
    if offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize:
        raise _invalid(path, f"the tensor {name!r} of shape {tuple(shape)} does not fit into bytes {offsets}")
    return name, tuple(shape), dtype, (offsets[0], offsets[1])


def _read(data: Any, dtype: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    array = data != 0 if dtype == np.bool_ else data.view(dtype)
    return np.require(np.asarray(array).reshape(shape), requirements="A")


def _parsed(path: FilePath, text: bytes) -> Any:
    """The value of a JSON text. Raises `ArgumentError` if it is none, or names something twice."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) < len(pairs):
            names = [name for name, _ in pairs]
            raise _invalid(path, f"it has {next(n for n in names if names.count(n) > 1)!r} twice")
        return entries

    try:
        return json.loads(text, object_pairs_hook=unique)
    except ArgumentError:
        raise
    except (ValueError, RecursionError):
        raise _invalid(path, "it is not JSON" if path.suffix == ".json" else "its header is not JSON") from None


#: how to read files of other formats, by their endings
_OTHERS = {".npz": "load_torch(model, dict(numpy.load(file)))"}


def _invalid(path: FilePath, reason: str) -> ArgumentError:
    """The error for a file that is not what it should be."""
    what = "index of safetensors files" if path.suffix == ".json" else "safetensors file"
    return ArgumentError(
        f"{str(path)!r} is no valid {what}: {reason}",
        instead=_OTHERS.get(path.suffix, "a complete file, as the model's authors published it"),
        file=str(path),
    )


def _library() -> Any:
    try:
        import safetensors
    except ImportError:
        raise ArgumentError(
            "writing files of weights needs the safetensors library", instead="pip install phlox-nn[safetensors]"
        ) from None
    return safetensors
