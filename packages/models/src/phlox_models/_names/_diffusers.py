"""The names of blocks that diffusers' models share."""

from __future__ import annotations

BLOCK = {
    "norm1": "norm1",
    "conv1": "conv1",
    "time_emb_proj": "time",
    "norm2": "norm2",
    "conv2": "conv2",
    "conv_shortcut": "shortcut",
}
# The second names are those of older files.
ATTENTION = {
    "to_q": "query",
    "to_k": "key",
    "to_v": "value",
    "to_out.0": "out",
    "query": "query",
    "key": "key",
    "value": "value",
    "proj_attn": "out",
}
