"""Folders of models: a folder on disk, or a copy of one on the Hugging Face hub."""

from __future__ import annotations

import os
import re
from pathlib import Path

from phlox.errors import ArgumentError

#: the files that models and tokenizers consist of; others, such as weights for other frameworks, are not fetched
_FILES = ("*.json", "*.safetensors", "*.txt", "*.model")
#: names on the hub, such as ``openai-community/gpt2`` and ``gpt2``
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


def folder(name: str | os.PathLike[str], revision: str | None = None) -> Path:
    """The folder of this name, or else the local copy of the model of this name on the hub, which is fetched if needed.

    Raises `ArgumentError` if there is neither.
    """
    path = Path(name)
    if path.is_dir():
        return path
    text = os.fspath(name)
    if path.exists():
        raise ArgumentError(f"{text!r} is a file", instead=f"the folder that it is in, {str(path.parent)!r}")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.startswith("."):
        raise ArgumentError(
            f"there is no folder {text!r}",
            instead="a folder with config.json and model.safetensors, or a name on the hub",
        )
    try:
        import huggingface_hub
    except ImportError:
        raise ArgumentError(
            f"there is no folder {text!r}, and models of the Hugging Face hub need its library",
            instead="pip install phlox-models[hub], or a folder",
        ) from None
    try:
        return _fetched(huggingface_hub, name, revision)
    except Exception as error:  # errors of the network, of the hub and of its library
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ArgumentError(
            f"there is no folder {text!r}, and the Hugging Face hub did not give a model of this name: {reason:.300}",
            instead="a folder, which works offline, or the name of a model, such as 'openai-community/gpt2'",
        ) from error


def _fetched(hub: object, name: str, revision: str | None) -> Path:
    """The local copy of a model on the hub. Files that torch wrote are fetched only if there are no others."""
    snapshot = hub.snapshot_download  # type: ignore[attr-defined]
    path = Path(snapshot(name, revision=revision, allow_patterns=list(_FILES)))
    if not any(path.glob("*.safetensors")):
        path = Path(snapshot(name, revision=revision, allow_patterns=[*_FILES, "pytorch_model*.bin"]))
    return path
