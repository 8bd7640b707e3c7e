"""Tokens of texts, by the tokenizer that comes with a model."""

from __future__ import annotations

import os
from typing import Any

from phlox.errors import ArgumentError

from . import _hub


def tokenizer(name: str | os.PathLike[str], *, revision: str | None = None) -> Any:
    """The tokenizer in the folder of a model, or of a model on the Hugging Face hub.

    Needs ``phlox-models[tokenizers]``.

    Args:
      name, revision: as for `load`; the folder has a ``tokenizer.json``.

    Returns:
      A ``tokenizers.Tokenizer``: ``encode(text).ids`` are the tokens of a text, ``decode(tokens)`` is their text.

    Raises:
      ArgumentError: the library is missing, or there is no ``tokenizer.json`` that it reads.

    >>> import tempfile
    >>> import phlox_models
    >>> import tokenizers
    >>> words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"to": 0, "be": 1, "?": 2}, unk_token="?"))
    >>> words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     words.save(folder + "/tokenizer.json")
    ...     phlox_models.tokenizer(folder).encode("to be or").ids
    [0, 1, 2]
    """
    try:
        import tokenizers
    except ImportError:
        raise ArgumentError(
            "tokens of texts need the tokenizers library", instead="pip install phlox-models[tokenizers]"
        ) from None
    file = _hub.folder(name, revision) / "tokenizer.json"
    if not file.is_file():
        raise ArgumentError(
            f"the folder {str(file.parent)!r} has no tokenizer.json",
            instead="a folder that tokenizer.save_pretrained(folder) of a fast tokenizer wrote",
        )
    try:
        return tokenizers.Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises plain Exception
        raise ArgumentError(
            f"{str(file)!r} is no tokenizer: {error}", instead="the tokenizer.json of the model's authors"
        ) from None
