"""The names of the weights of the Llama family."""

from __future__ import annotations

from typing import Any

from . import parts

_ATTENTION = {
    "q_proj": "query",
    "k_proj": "key",
    "v_proj": "value",
    "o_proj": "out",
    "q_norm": "query_norm",
    "k_norm": "key_norm",
}
RULES: list[tuple[Any, ...]] = [
    ("model.embed_tokens.*", "tokens.*"),
    ("model.layers.*.input_layernorm.*", "blocks.*.norm1.*"),
    *parts("model.layers.*.self_attn", "blocks.*.attention", _ATTENTION),
    ("model.layers.*.self_attn.rotary_emb.inv_freq", None),  # in older files
    ("model.layers.*.post_attention_layernorm.*", "blocks.*.norm2.*"),
    *parts("model.layers.*.mlp", "blocks.*.mlp", {"gate_proj": "gate", "up_proj": "value", "down_proj": "out"}),
    ("model.norm.*", "norm.*"),
    ("lm_head.*", "unembed.*"),
]
# Phi-3 has one matrix for queries, keys and values, and one for the two halves of the MLP.
PHI3_RULES = [
    (
        "model.layers.*.self_attn.qkv_proj.*",
        ["blocks.*.attention.query.*", "blocks.*.attention.key.*", "blocks.*.attention.value.*"],
    ),
    ("model.layers.*.mlp.gate_up_proj.*", ["blocks.*.mlp.gate.*", "blocks.*.mlp.value.*"]),
    *RULES,
]
