"""The names of GPT-J's weights."""

from __future__ import annotations

from . import parts

_ATTENTION = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "out"}
RULES = [
    ("transformer.wte.*", "tokens.*"),
    ("transformer.h.*.ln_1.*", "blocks.*.norm.*"),
    *parts("transformer.h.*.attn", "blocks.*.attention", _ATTENTION),
    ("transformer.h.*.attn.bias", None),  # masks and positions, in older files
    ("transformer.h.*.attn.masked_bias", None),
    ("transformer.h.*.attn.embed_positions", None),
    *parts("transformer.h.*.mlp", "blocks.*.mlp.layers", {"fc_in": "0", "fc_out": "1"}),
    ("transformer.ln_f.*", "norm.*"),
    ("lm_head.*", "unembed.*"),
]
