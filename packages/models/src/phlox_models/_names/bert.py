"""The names of BERT's weights."""

from __future__ import annotations

_NORMS = {
    "bert.embeddings.LayerNorm": "norm",
    "bert.encoder.layer.*.attention.output.LayerNorm": "blocks.*.norm1",
    "bert.encoder.layer.*.output.LayerNorm": "blocks.*.norm2",
    "cls.predictions.transform.LayerNorm": "predictions.norm",
}
# Older files call the parameters of norms gamma and beta.
_TERMS = {"weight": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}
RULES = [
    ("bert.embeddings.word_embeddings.*", "tokens.*"),
    ("bert.embeddings.position_embeddings.*", "positions.*"),
    ("bert.embeddings.token_type_embeddings.*", "types.*"),
    ("bert.embeddings.position_ids", None),  # in older files
    *((f"{theirs}.{term}", f"{ours}.{name}") for term, name in _TERMS.items() for theirs, ours in _NORMS.items()),
    ("bert.encoder.layer.*.attention.output.dense.*", "blocks.*.attention.out.*"),
    ("bert.encoder.layer.*.attention.self.*", "blocks.*.attention.*"),
    ("bert.encoder.layer.*.intermediate.dense.*", "blocks.*.mlp.layers.0.*"),
    ("bert.encoder.layer.*.output.dense.*", "blocks.*.mlp.layers.1.*"),
    ("bert.pooler.dense.*", "pooler.*"),
    ("cls.predictions.transform.dense.*", "predictions.transform.*"),
    ("cls.predictions.bias", "predictions.bias"),
    ("cls.predictions.decoder.*", None),  # the same as the table of tokens, and the bias
    ("cls.seq_relationship.*", None),
    ("classifier.*", "classifier.*"),
    ("qa_outputs.*", "qa_outputs.*"),
]
