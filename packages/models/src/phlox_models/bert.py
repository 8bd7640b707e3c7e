"""BERT: an encoder whose tokens attend to those before and after them. Source: Devlin et al., 2018."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import phlox.numpy as jnp
import phlox_nn as nn

from ._architecture import register
from ._attention import Attention, Span, span
from ._config import Config
from ._names.bert import RULES

HEADS = ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")


class Block(nn.Layer):
    """A block of BERT: attention and an MLP, each added to its inputs, and the sum normalized."""

    config: Config

    def parts(self) -> Mapping[str, Any]:
        c = self.config
        size = c.integer("hidden_size")
        norm = nn.LayerNorm(size, epsilon=c.number("layer_norm_eps", 1e-12))
        dropout = c.number("attention_probs_dropout_prob", 0.1)
        return {
            "attention": Attention(size, c.integer("num_attention_heads"), causal=False, dropout=dropout),
            "norm1": norm,
            "mlp": nn.MLP((size, c.integer("intermediate_size"), size), c.activation("hidden_act", "gelu")),
            "norm2": norm,
            "dropping": nn.Dropout(c.number("hidden_dropout_prob", 0.1)),
        }

    def __call__(self, x: Any, span: Span) -> Any:
        x = self.norm1(x + self.dropping(self.attention(x, span)[0]))
        return self.norm2(x + self.dropping(self.mlp(x)))


class MaskedHead(nn.Layer):
    """The head of masked language models: logits of tokens, from a table that is shared with the inputs."""

    config: Config

    def parameters(self) -> Mapping[str, Any]:
        return {"bias": (nn.initializers.zeros, (self.config.integer("vocab_size"),))}

    def parts(self) -> Mapping[str, Any]:
        size = self.config.integer("hidden_size")
        norm = nn.LayerNorm(size, epsilon=self.config.number("layer_norm_eps", 1e-12))
        return {"transform": nn.Linear(size, size), "norm": norm}

    def __call__(self, x: Any, table: Any) -> Any:
        return table.attend(self.norm(self.config.activation("hidden_act", "gelu")(self.transform(x)))) + self.bias


class Bert(nn.Layer):
    """BERT with the head that its configuration names."""

    config: Config

    def parts(self) -> Mapping[str, Any]:
        c = self.config
        size, small = c.integer("hidden_size"), nn.initializers.normal(0.02)
        return {
            "tokens": nn.Embedding(c.integer("vocab_size"), size, small),
            "positions": nn.Embedding(c.integer("max_position_embeddings", 512), size, small),
            "types": nn.Embedding(c.integer("type_vocab_size", 2), size, small),
            "norm": nn.LayerNorm(size, epsilon=c.number("layer_norm_eps", 1e-12)),
            "blocks": [Block(c) for _ in range(c.integer("num_hidden_layers"))],
            "dropping": nn.Dropout(c.number("hidden_dropout_prob", 0.1)),
            **self._head_parts(size),
        }

    def _head_parts(self, size: int) -> dict[str, nn.Layer]:
        head = self.config.head(*HEADS)
        if head == "ForMaskedLM":
            return {"predictions": MaskedHead(self.config)}
        if head == "ForQuestionAnswering":
            return {"qa_outputs": nn.Linear(size, 2)}
        pooler: dict[str, nn.Layer] = {"pooler": nn.Linear(size, size)} if head != "ForTokenClassification" else {}
        return pooler if head == "Model" else {**pooler, "classifier": nn.Linear(size, self.config.labels)}

    def hidden(self, tokens: Any, mask: Any = None, types: Any = None) -> Any:
        """The last hidden states (batch, length, features). Arguments as for the call."""
        here, _ = span(tokens, mask, None, None)
        types = jnp.zeros_like(tokens) if types is None else types
        x = self.tokens(tokens) + self.types(types) + self.positions(here.positions)
        x = self.dropping(self.norm(x))
        for block in self.blocks:
            x = block(x, here)
        return x

    def pooled(self, tokens: Any, mask: Any = None, types: Any = None) -> Any:
        """The features of whole texts (batch, features), from the hidden state of the first token."""
        return jnp.tanh(self.pooler(self.hidden(tokens, mask, types)[:, 0]))

    def __call__(self, tokens: Any, mask: Any = None, types: Any = None) -> Any:
        """The last hidden states, or what the head makes of them: logits of tokens, of classes, of (start, end).

        Args:
          tokens: integers (batch, length).
          mask: bools (batch, length), false for padding.
          types: integers (batch, length), the sentence that each token belongs to; by default 0.
        """
        head = self.config.head(*HEADS)
        if head == "ForSequenceClassification":
            return self.classifier(self.dropping(self.pooled(tokens, mask, types)))
        x = self.hidden(tokens, mask, types)
        if head == "ForMaskedLM":
            return self.predictions(x, self.tokens)
        if head == "ForTokenClassification":
            return self.classifier(self.dropping(x))
        return self.qa_outputs(x) if head == "ForQuestionAnswering" else x


register("bert", Bert, RULES, prefix="bert.")
