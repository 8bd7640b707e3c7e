"""The names of ConvNeXt's weights."""

from __future__ import annotations

from . import parts

_BLOCK = {
    "dwconv": "depthwise",
    "layernorm": "norm",
    "pwconv1": "up",
    "pwconv2": "down",
    "grn": "response",
}


def rules(model_type: str) -> list[tuple[str, str]]:
    """The rules of a model type, which all names begin with."""
    block = f"{model_type}.encoder.stages.*.layers.*"
    return [
        (f"{model_type}.embeddings.patch_embeddings.*", "patches.*"),
        (f"{model_type}.embeddings.layernorm.*", "first_norm.*"),
        (f"{model_type}.encoder.stages.*.downsampling_layer.*", "stages.*.halving.*"),
        *parts(block, "stages.*.blocks.*", _BLOCK),
        (f"{block}.layer_scale_parameter", "stages.*.blocks.*.scale"),
        (f"{model_type}.layernorm.*", "norm.*"),
    ]
