"""The output size of XLA's approximate top-k."""

from __future__ import annotations

from .._base.native import native


def top_k_size(length: int, rank: int, k: int, recall: float, aggregate: bool, whole_length: int) -> int:
    """The number of candidates that the search along an axis of `length` returns: `k` if they are aggregated."""
    return int(native.approx_top_k_reduction_output_size(length, rank, k, recall, aggregate, whole_length)[0])
