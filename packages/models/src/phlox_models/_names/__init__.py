"""The names of weights in the files of each architecture, as rules for `phlox_models.register`: a module for each."""

from __future__ import annotations

from collections.abc import Mapping


def parts(theirs: str, ours: str, names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Rules for the parts of a layer.

    >>> parts("layers.*.attn", "blocks.*.attention", {"q_proj": "query"})
    [('layers.*.attn.q_proj.*', 'blocks.*.attention.query.*')]
    """
    return [(f"{theirs}.{name}.*", f"{ours}.{part}.*") for name, part in names.items()]
