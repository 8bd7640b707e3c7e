"""Rules that map names and layouts of tensors in a file to those of a model, and back.

A rule is (pattern in the file, pattern in the model), or with a third item for the layout in the file. Each ``*`` of a
pattern matches any text, which is inserted at the stars of the other pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from phlox.errors import ArgumentError

from ._torch_layout import SAME, TRANSPOSED, Layout

#: Rules, of which the first that matches is used, or a function of a name in the file. `load_torch` describes them.
Rename = Sequence[tuple[Any, ...]] | Callable[[str], str | None]


def renamed(name: str, rename: Rename) -> tuple[tuple[str, ...], Layout]:
    """The names in the model of a tensor in the file, and the layout of the tensor in the file.

    None: the tensor is not needed. Several: the tensor is their concatenation.
    """
    if callable(rename):
        ours = rename(name)
        return (() if ours is None else (ours,)), SAME
    for theirs, ours, *layout in rename:
        match = _pattern(theirs).fullmatch(name)
        if match:
            return tuple(_filled(one, theirs, match) for one in _patterns(ours)), _layout(layout)
    return (name,), SAME


def in_file(tensors: Mapping[str, np.ndarray[Any, Any]], rename: Rename) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """(name, array) of each tensor in a file, for tensors by name in the model: `renamed`, backwards."""
    if callable(rename):
        raise ArgumentError("names cannot be given back by a function", instead="rename=[(pattern, pattern), ...]")
    written = set()
    for name in tensors:
        theirs, ours, layout = _back(name, rename)
        if theirs not in written:
            written.add(theirs)
            pieces = [tensors[one] for one in ours]
            yield theirs, layout.to_torch(np.concatenate(pieces) if len(pieces) > 1 else pieces[0])


def _back(name: str, rename: Any) -> tuple[str, tuple[str, ...], Layout]:
    """The name in the file for a name in the model, all names in the model that belong to it, and its layout."""
    for theirs, ours, *layout in rename:
        for pattern in _patterns(ours):
            match = _pattern(pattern).fullmatch(name)
            if match:
                siblings = tuple(_filled(one, pattern, match) for one in _patterns(ours))
                return _filled(theirs, pattern, match), siblings, _layout(layout)
    return name, (name,), SAME


def _patterns(ours: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if ours is None else (ours,) if isinstance(ours, str) else tuple(ours)


def _layout(item: Sequence[Any]) -> Layout:
    """The layout that the third item of a rule states: "transposed", or functions (from the file, to the file)."""
    if not item:
        return SAME
    if item[0] == "transposed":
        return TRANSPOSED
    if isinstance(item[0], tuple) and len(item[0]) == 2 and all(map(callable, item[0])):
        from_file, to_file = item[0]
        return Layout(to_file, from_file)
    raise ArgumentError(
        f"rename: the third item of a rule is {item[0]!r}",
        instead='"transposed", or a pair of functions: from the layout of the file, and back',
    )


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
