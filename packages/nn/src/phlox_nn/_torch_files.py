"""Weights in files that ``torch.save`` wrote, such as ``pytorch_model.bin``.

Such files are pickles, which can run code. Only ``weights_only`` reading is used: tensors and plain containers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

from phlox.errors import ArgumentError

#: endings of files that torch.save wrote
ENDINGS = (".bin", ".pt", ".pth", ".ckpt")


def state_dict(path: FilePath) -> Iterator[tuple[str, Any]]:
    """(name, tensor) of each tensor in a file. The file is memory-mapped if it is in torch's present format."""
    try:
        import torch
    except ImportError:
        raise ArgumentError(
            f"reading {str(path)!r} needs PyTorch", instead="pip install phlox-nn[torch], or a .safetensors file"
        ) from None
    try:
        try:
            weights = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except RuntimeError:  # the format before torch 1.6 cannot be memory-mapped
            weights = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises pickle's, zip's and its own errors
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise _invalid(path, f"torch.load(..., weights_only=True) does not read it: {reason:.200}") from error
    if isinstance(weights, Mapping) and isinstance(weights.get("state_dict"), Mapping):  # as training loops save it
        weights = weights["state_dict"]
    if not isinstance(weights, Mapping):
        raise _invalid(path, f"it has a {type(weights).__name__}, not tensors by name")
    for name, value in weights.items():
        if not isinstance(value, torch.Tensor):
            raise _invalid(path, f"{name!r} is no tensor, but of type {type(value).__name__}")
        yield str(name), value


def _invalid(path: FilePath, reason: str) -> ArgumentError:
    return ArgumentError(
        f"{str(path)!r} is no valid file of weights: {reason}",
        instead="a state dict, written by torch.save(module.state_dict(), file)",
        file=str(path),
    )
