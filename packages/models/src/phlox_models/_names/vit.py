"""The names of ViT's weights."""

from __future__ import annotations


def rules(model_type: str) -> list[tuple[str, str]]:
    """The rules of a model type, which all names begin with."""
    layer = f"{model_type}.encoder.layer.*"
    return [
        (f"{model_type}.embeddings.patch_embeddings.projection.*", "patches.*"),
        (f"{model_type}.embeddings.position_embeddings", "positions"),
        (f"{model_type}.embeddings.*_token", "*_token"),
        (f"{layer}.layernorm_before.*", "blocks.*.norm1.*"),
        (f"{layer}.layernorm_after.*", "blocks.*.norm2.*"),
        (f"{layer}.attention.output.dense.*", "blocks.*.attention.out.*"),
        (f"{layer}.attention.attention.*", "blocks.*.attention.*"),
        (f"{layer}.intermediate.dense.*", "blocks.*.mlp.layers.0.*"),
        (f"{layer}.output.dense.*", "blocks.*.mlp.layers.1.*"),
        (f"{model_type}.layernorm.*", "norm.*"),
        (f"{model_type}.pooler.dense.*", "pooler.*"),
    ]
