"""The names of CLIP's weights."""

from __future__ import annotations

from typing import Any

from . import parts


def _blocks(theirs: str, ours: str) -> list[tuple[str, str]]:
    attention = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "out"}
    return [
        *parts(theirs, ours, {"layer_norm1": "norm1", "layer_norm2": "norm2"}),
        *parts(f"{theirs}.mlp", f"{ours}.mlp.layers", {"fc1": "0", "fc2": "1"}),
        *parts(f"{theirs}.self_attn", f"{ours}.attention", attention),
    ]


RULES: list[tuple[Any, ...]] = [
    ("*.position_ids", None),
    ("text_model.embeddings.token_embedding.*", "text.tokens.*"),
    ("text_model.embeddings.position_embedding.*", "text.positions.*"),
    ("text_model.final_layer_norm.*", "text.norm.*"),
    ("vision_model.embeddings.class_embedding", "image.cls_token"),
    ("vision_model.embeddings.patch_embedding.*", "image.patches.*"),
    ("vision_model.embeddings.position_embedding.weight", "image.positions"),
    ("vision_model.pre_layrnorm.*", "image.first_norm.*"),
    ("vision_model.post_layernorm.*", "image.last_norm.*"),
    ("visual_projection.*", "image_projection.*"),
    *_blocks("text_model.encoder.layers.*", "text.blocks.*"),
    *_blocks("vision_model.encoder.layers.*", "image.blocks.*"),
]


def of_encoder(part: str) -> list[tuple[Any, ...]]:
    """The rules for the file of an encoder by itself, "text" or "image": of CLIPTextModel or CLIPVisionModel."""
    rules = [(theirs, ours) for theirs, ours in RULES if ours and ours.startswith(f"{part}.")]
    return [("*.position_ids", None), *((theirs, ours.removeprefix(f"{part}.")) for theirs, ours in rules)]
