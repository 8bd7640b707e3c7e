"""The names of T5's weights."""

from __future__ import annotations

from typing import Any

from . import parts

_ATTENTION = {"q": "query", "k": "key", "v": "value", "o": "out"}
# Older files have one matrix before the activation, newer ones also that of a gate.
_MLP = {"wi": "inner", "wi_0": "gate", "wi_1": "value", "wo": "out"}


def _blocks(side: str, last: int) -> list[tuple[str, str]]:
    """The rules for the blocks of the encoder or decoder, whose MLP has the number `last` in the file."""
    theirs, ours = f"{side}.block.*.layer", f"{side}.blocks.*"
    return [
        (f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight", f"{side}.bias.weight"),
        *parts(f"{theirs}.0.SelfAttention", f"{ours}.attention", _ATTENTION),
        (f"{theirs}.0.layer_norm.weight", f"{ours}.norm1.weight"),
        *parts(f"{theirs}.{last}.DenseReluDense", f"{ours}.mlp", _MLP),
        (f"{theirs}.{last}.layer_norm.weight", f"{ours}.norm2.weight"),
        (f"{side}.final_layer_norm.weight", f"{side}.norm.weight"),
    ]


RULES: list[tuple[Any, ...]] = [
    ("shared.*", "tokens.*"),
    ("encoder.embed_tokens.*", None),  # the same table
    ("decoder.embed_tokens.*", None),
    ("decoder.block.*.layer.1.EncDecAttention.relative_attention_bias.weight", None),  # in older files, unused
    *_blocks("encoder", 1),
    *parts("decoder.block.*.layer.1.EncDecAttention", "decoder.blocks.*.cross", _ATTENTION),
    ("decoder.block.*.layer.1.layer_norm.weight", "decoder.blocks.*.norm_cross.weight"),
    *_blocks("decoder", 2),
    ("lm_head.*", "unembed.*"),
]
