"""What the compiler says about its approximate search for the largest elements."""

from __future__ import annotations

from .._base.native import native


def top_k_size(length: int, rank: int, k: int, recall: float, aggregate: bool, whole_length: int) -> int:
    """How many candidates the search along an axis of `length` returns; `k`, unless it leaves them unsorted."""
    return int(native.approx_top_k_reduction_output_size(length, rank, k, recall, aggregate, whole_length)[0])
