"""The names of Perceiver IO's weights."""

from __future__ import annotations

from . import parts


def _layer(theirs: str, ours: str) -> list[tuple[str, str]]:
    inner = {"layernorm1": "norm1", "layernorm2": "context_norm", "query": "query", "key": "key", "value": "value"}
    return [
        *parts(f"{theirs}.attention.self", ours, inner),
        (f"{theirs}.attention.output.dense.*", f"{ours}.out.*"),
        (f"{theirs}.layernorm.*", f"{ours}.norm2.*"),
        *parts(f"{theirs}.mlp", f"{ours}.mlp.layers", {"dense1": "0", "dense2": "1"}),
    ]


def _decoder(theirs: str, ours: str) -> list[tuple[str, str]]:
    return [
        (f"{theirs}.output_position_encodings.position_embeddings", f"{ours}.queries"),
        (f"{theirs}.final_layer.*", f"{ours}.linear.*"),
    ]


RULES = [
    ("perceiver.embeddings.latents", "latents"),
    ("perceiver.input_preprocessor.embeddings.*", "tokens.*"),
    ("perceiver.input_preprocessor.position_embeddings.weight", "token_positions.weight"),
    ("perceiver.input_preprocessor.position_embeddings.position_embeddings", "positions"),
    ("perceiver.input_preprocessor.positions_projection.*", "projection.*"),
    ("perceiver.input_preprocessor.convnet_1x1.*", "pixels.*"),
    ("perceiver.input_preprocessor.convnet.conv.*", "conv.*"),
    ("perceiver.input_preprocessor.convnet.batchnorm.*", "norm.*"),
    ("embedding_decoder.bias", "bias"),
    *_layer("perceiver.encoder.cross_attention", "reading"),
    *_layer("perceiver.encoder.self_attends.*", "blocks.*"),
    *_layer("perceiver.decoder.decoder.decoding_cross_attention", "classifier.attention"),
    *_layer("perceiver.decoder.decoding_cross_attention", "text_decoder.attention"),
    *_decoder("perceiver.decoder.decoder", "classifier"),
    *_decoder("perceiver.decoder", "text_decoder"),
]
