"""The details in which the members of the Llama family differ, and how their configurations state them."""

from __future__ import annotations

from typing import NamedTuple

from ._config import Config


class Details(NamedTuple):
    """What members of the family differ in: entries of the configuration (None: the value is fixed), and defaults."""

    qkv_bias: bool = False
    out_bias: bool = False
    bias_entry: str | None = "attention_bias"
    query_norm: bool = False
    head_size: int | None = None
    is_tied: bool = False
    activation: str = "hidden_act"
    #: whether norms multiply by ``1 + weight``, and embeddings by the square root of their length
    is_offset: bool = False


DETAILS = {
    "llama": Details(),
    "mistral": Details(bias_entry=None),
    "qwen2": Details(qkv_bias=True, bias_entry=None),
    "qwen3": Details(query_norm=True, head_size=128),
    "gemma": Details(head_size=256, is_tied=True, activation="hidden_activation", is_offset=True),
    "phi3": Details(bias_entry=None),
}


def head_size(c: Config) -> int:
    """The number of features of a head."""
    default = DETAILS[c.model_type].head_size or c.integer("hidden_size") // c.integer("num_attention_heads")
    return c.integer("head_dim", default)


def window(c: Config, block: int) -> int | None:
    """The sliding window of a block, or None."""
    kinds, length = c.get("layer_types"), c.get("sliding_window")
    if length is None:
        return None
    if isinstance(kinds, list) and len(kinds) > block:
        return c.integer("sliding_window") if kinds[block] == "sliding_attention" else None
    if c.model_type.startswith("qwen"):
        is_sliding = c.flag("use_sliding_window", False) and block >= c.get("max_window_layers", 28)
        return c.integer("sliding_window") if is_sliding else None
    return c.integer("sliding_window") if c.model_type in ("mistral", "phi3") else None
