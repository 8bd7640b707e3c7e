"""Prompts of `generate`: checks, padding to buckets of lengths, and the form of the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import phlox.numpy as jnp
from phlox.errors import ArgumentError, DtypeError, ShapeError

#: the form of a text: int32 (length,)
Text = np.ndarray[Any, Any]


class Prompts(NamedTuple):
    """Prompts, and the form in which they were given.

    Attributes:
      texts: the tokens of each, without padding.
      rows: the tokens as they were given, with padding, (batch, length); None for a list.
      is_single: whether there was one text, without an axis for the batch.
    """

    texts: list[Text]
    rows: Text | None
    is_single: bool

    @property
    def longest(self) -> int:
        """The length of the longest text."""
        return max(map(len, self.texts))

    def padded(self, count: int = 1) -> tuple[Text, Text]:
        """Tokens and mask (batch * count, bucket of the longest), with padding at the left; each text `count` times."""
        length = bucket(self.longest)
        tokens = np.zeros((len(self.texts) * count, length), np.int32)
        mask = np.zeros(tokens.shape, bool)
        for n, text in enumerate(text for text in self.texts for _ in range(count)):
            tokens[n, length - len(text) :] = text
            mask[n, length - len(text) :] = True
        return tokens, mask

    def with_new(self, new: Text, lengths: Text, pad: int, start: int | None) -> Any:
        """The results: prompts, or the token `start` of a decoder, and the new tokens.

        Args:
          new: new tokens (batch, length).
          lengths: the number of new tokens of each text.
          pad: the token after the end of texts.
          start: the first token of a decoder, which replaces the prompts; or None.
        """
        texts = self.texts if start is None else [np.array([start], np.int32)] * len(self.texts)
        if self.rows is None or self.is_single:
            pieces = [
                jnp.asarray(np.concatenate([text, row[:length]]))
                for text, row, length in zip(texts, new, lengths, strict=True)
            ]
            return pieces[0] if self.is_single else pieces
        rows = self.rows if start is None else np.full((len(texts), 1), start, np.int32)
        longest = int(max(lengths))
        after = np.arange(longest) < lengths[:, None]
        return jnp.asarray(np.concatenate([rows, np.where(after, new[:, :longest], pad)], axis=1))


def bucket(length: int) -> int:
    """The length that texts are padded to, so that few programs are compiled: powers of two, or multiples of 128."""
    return max(16, 1 << (length - 1).bit_length()) if length <= 128 else -(-length // 128) * 128


def prompts(tokens: Any, mask: Any, vocabulary: int) -> Prompts:
    """The prompts from an array (length,) or (batch, length), with a mask if some are padding, or a list of arrays.

    Raises `ArgumentError`, `DtypeError` or `ShapeError` for others, and for texts without tokens.
    """
    is_list = isinstance(tokens, Sequence) and any(np.ndim(text) for text in tokens)
    if is_list:
        if mask is not None:
            raise ArgumentError("generate: a mask is for an array of prompts, not for a list", instead="no mask")
        texts = [_integers(text) for text in tokens]
        for n, text in enumerate(texts):
            if text.ndim != 1:
                raise ShapeError(f"generate: prompt {n} has shape {text.shape}", instead="tokens of shape (length,)")
        result = Prompts(texts, None, False)
    else:
        rows = _integers(tokens)
        if rows.ndim not in (1, 2):
            raise ShapeError(
                f"generate: prompts of shape {rows.shape}", instead="(length,), (batch, length), or a list of arrays"
            )
        counts = np.ones(rows.shape, bool) if mask is None else np.asarray(mask).astype(bool)
        if counts.shape != rows.shape:
            raise ShapeError(f"generate: the mask has shape {counts.shape}, the prompts have {rows.shape}")
        texts = [row[count] for row, count in zip(np.atleast_2d(rows), np.atleast_2d(counts), strict=True)]
        result = Prompts(texts, np.atleast_2d(rows), rows.ndim == 1)
    _check_tokens(result.texts, vocabulary)
    return result


def _integers(tokens: Any) -> Text:
    array = np.asarray(tokens)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise DtypeError(f"generate: prompts are tokens, got {array.dtype}", instead="integers")
    return array.astype(np.int64)  # not as it is: unsigned numbers of 64 bits beside new tokens become floats


def _check_tokens(texts: list[Text], vocabulary: int) -> None:
    if not texts:
        raise ArgumentError("generate: there are no prompts", instead="at least one token")
    for n, text in enumerate(texts):
        if not len(text):
            raise ArgumentError(
                f"generate: prompt {n} is empty", instead="at least one token, such as that of the beginning of texts"
            )
        if text.min() < 0 or text.max() >= vocabulary:
            wrong = text[(text < 0) | (text >= vocabulary)][0]
            raise ArgumentError(
                f"generate: prompt {n} has the token {wrong}, but the model has {vocabulary} tokens",
                instead=f"tokens from 0 to {vocabulary - 1}, from the tokenizer of this model",
            )
