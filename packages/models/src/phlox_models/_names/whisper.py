"""The names of Whisper's weights."""

from __future__ import annotations

from typing import Any

from . import parts

_ATTENTION = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "out"}
_NORMS = {"self_attn_layer_norm": "norm1", "encoder_attn_layer_norm": "cross_norm", "final_layer_norm": "norm2"}


def _side(side: str) -> list[tuple[str, str]]:
    """The rules of the encoder or of the decoder."""
    theirs, ours = f"model.{side}.layers.*", f"{side}.blocks.*"
    return [
        *parts(f"{theirs}.self_attn", f"{ours}.attention", _ATTENTION),
        *parts(f"{theirs}.encoder_attn", f"{ours}.cross_attention", _ATTENTION),
        *parts(theirs, ours, _NORMS),
        *parts(theirs, f"{ours}.mlp.layers", {"fc1": "0", "fc2": "1"}),
        *parts(f"model.{side}", side, {"embed_positions": "positions", "embed_tokens": "tokens", "layer_norm": "norm"}),
    ]


RULES: list[tuple[Any, ...]] = [
    ("proj_out.weight", None),
    *_side("encoder"),
    *_side("decoder"),
    ("model.encoder.conv*", "encoder.conv*"),
]
