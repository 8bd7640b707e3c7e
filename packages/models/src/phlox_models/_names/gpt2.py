"""The names of GPT-2's weights. Its matrices have the shape (in, out) in the file."""

from __future__ import annotations

RULES = [
    ("transformer.wte.*", "tokens.*"),
    ("transformer.wpe.*", "positions.*"),
    ("transformer.h.*.ln_1.*", "blocks.*.norm1.*"),
    (
        "transformer.h.*.attn.c_attn.*",
        ["blocks.*.attention.query.*", "blocks.*.attention.key.*", "blocks.*.attention.value.*"],
        "transposed",
    ),
    ("transformer.h.*.attn.c_proj.*", "blocks.*.attention.out.*", "transposed"),
    ("transformer.h.*.attn.bias", None),  # masks, in older files
    ("transformer.h.*.attn.masked_bias", None),
    ("transformer.h.*.ln_2.*", "blocks.*.norm2.*"),
    ("transformer.h.*.mlp.c_fc.*", "blocks.*.mlp.layers.0.*", "transposed"),
    ("transformer.h.*.mlp.c_proj.*", "blocks.*.mlp.layers.1.*", "transposed"),
    ("transformer.ln_f.*", "norm.*"),
    ("lm_head.*", "unembed.*"),
]
