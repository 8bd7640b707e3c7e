"""ViT, BERT and GPT-2 in phlox_nn, each with the rules by which a checkpoint of Hugging Face is read."""

import phlox.numpy as jnp
import phlox_nn as nn


class Encoder(nn.Layer):
    """A block that normalizes before each part, as ViT and GPT-2 have it."""

    norm1: nn.LayerNorm
    attention: nn.MultiHeadAttention
    norm2: nn.LayerNorm
    mlp: nn.Sequential

    def __call__(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


def block(size, heads, hidden, epsilon, activation, causal=False):
    norm = nn.LayerNorm(size, epsilon=epsilon)
    mlp = nn.Sequential(nn.Linear(size, hidden), activation, nn.Linear(hidden, size))
    return Encoder(norm, nn.MultiHeadAttention(size, heads, causal=causal), norm, mlp)


def exact_gelu(x):
    return nn.gelu(x, approximate=False)


class GPT2(nn.Layer):
    """Tokens (n, length) to scores of the next ones (n, length, vocabulary), which share the table of tokens."""

    wte: nn.Embedding
    wpe: nn.Embedding
    blocks: nn.Stack
    ln_f: nn.LayerNorm

    @classmethod
    def of(cls, c):
        one = block(c.n_embd, c.n_head, 4 * c.n_embd, c.layer_norm_epsilon, nn.gelu, causal=True)
        tables = nn.Embedding(c.vocab_size, c.n_embd), nn.Embedding(c.n_positions, c.n_embd)
        return cls(*tables, nn.Stack(one, c.n_layer), nn.LayerNorm(c.n_embd, epsilon=c.layer_norm_epsilon))

    def __call__(self, tokens):
        x = self.wte(tokens) + self.wpe(jnp.arange(tokens.shape[-1]))
        return self.wte.attend(self.ln_f(self.blocks(x)))


# Matrices of GPT-2 lie as here, (in, out), which is the transposed of what PyTorch's own layers have.
GPT2_NAMES = [
    ("transformer.h.*.ln_1.*", "blocks.*.norm1.*"),
    ("transformer.h.*.ln_2.*", "blocks.*.norm2.*"),
    ("transformer.h.*.attn.c_attn.*", "blocks.*.attention.in_proj_*", "transposed"),
    ("transformer.h.*.attn.c_proj.*", "blocks.*.attention.out_proj.*", "transposed"),
    ("transformer.h.*.mlp.c_fc.*", "blocks.*.mlp.0.*", "transposed"),
    ("transformer.h.*.mlp.c_proj.*", "blocks.*.mlp.2.*", "transposed"),
    ("transformer.*", "*"),
]


class BertBlock(nn.Layer):
    """A block that normalizes after each part."""

    attention: nn.MultiHeadAttention
    norm1: nn.LayerNorm
    mlp: nn.Sequential
    norm2: nn.LayerNorm

    def __call__(self, x, mask):
        x = self.norm1(x + self.attention(x, mask=mask))
        return self.norm2(x + self.mlp(x))


class BERT(nn.Layer):
    """Tokens, their kinds and which of them count, each (n, length), to scores of classes (n, labels)."""

    words: nn.Embedding
    positions: nn.Embedding
    kinds: nn.Embedding
    norm: nn.LayerNorm
    blocks: nn.Stack
    pooler: nn.Linear
    classifier: nn.Linear

    @classmethod
    def of(cls, c):
        size, norm = c.hidden_size, nn.LayerNorm(c.hidden_size, epsilon=c.layer_norm_eps)
        mlp = nn.Sequential(nn.Linear(size, c.intermediate_size), exact_gelu, nn.Linear(c.intermediate_size, size))
        one = BertBlock(nn.MultiHeadAttention(size, c.num_attention_heads), norm, mlp, norm)
        tables = [nn.Embedding(n, size) for n in (c.vocab_size, c.max_position_embeddings, c.type_vocab_size)]
        heads = nn.Linear(size, size), nn.Linear(size, c.num_labels)
        return cls(*tables, norm, nn.Stack(one, c.num_hidden_layers), *heads)

    def __call__(self, tokens, kinds, counts):
        x = self.words(tokens) + self.positions(jnp.arange(tokens.shape[-1])) + self.kinds(kinds)
        x = self.blocks(self.norm(x), counts[:, None, :])
        return self.classifier(jnp.tanh(self.pooler(x[:, 0])))


BERT_NAMES = [
    ("bert.embeddings.word_embeddings.*", "words.*"),
    ("bert.embeddings.position_embeddings.*", "positions.*"),
    ("bert.embeddings.token_type_embeddings.*", "kinds.*"),
    ("bert.embeddings.LayerNorm.*", "norm.*"),
    ("bert.encoder.layer.*.attention.self.*", "blocks.*.attention.*"),
    ("bert.encoder.layer.*.attention.output.dense.*", "blocks.*.attention.out_proj.*"),
    ("bert.encoder.layer.*.attention.output.LayerNorm.*", "blocks.*.norm1.*"),
    ("bert.encoder.layer.*.intermediate.dense.*", "blocks.*.mlp.0.*"),
    ("bert.encoder.layer.*.output.dense.*", "blocks.*.mlp.2.*"),
    ("bert.encoder.layer.*.output.LayerNorm.*", "blocks.*.norm2.*"),
    ("bert.pooler.dense.*", "pooler.*"),
]


class ViT(nn.Layer):
    """Images (n, height, width, channels) to scores of classes (n, labels)."""

    patches: nn.Conv
    blocks: nn.Stack
    norm: nn.LayerNorm
    classifier: nn.Linear
    places: int

    @classmethod
    def of(cls, c):
        size, patch = c.hidden_size, (c.patch_size, c.patch_size)
        one = block(size, c.num_attention_heads, c.intermediate_size, c.layer_norm_eps, exact_gelu)
        cut = nn.Conv(c.num_channels, size, patch, strides=patch, padding="VALID")
        norm = nn.LayerNorm(size, epsilon=c.layer_norm_eps)
        places = (c.image_size // c.patch_size) ** 2 + 1
        return cls(cut, nn.Stack(one, c.num_hidden_layers), norm, nn.Linear(size, c.num_labels), places)

    def parameters(self):
        size, small = self.norm.features, nn.initializers.normal(0.02)
        return {"cls_token": (small, (1, 1, size)), "position_embeddings": (small, (1, self.places, size))}

    def __call__(self, images):
        x = self.patches(images)
        x = x.reshape((len(x), -1, x.shape[-1]))
        first = jnp.broadcast_to(self.cls_token, (len(x), 1, x.shape[-1]))
        x = jnp.concatenate([first, x], axis=1) + self.position_embeddings
        return self.classifier(self.norm(self.blocks(x))[:, 0])


VIT_NAMES = [
    ("vit.embeddings.patch_embeddings.projection.*", "patches.*"),
    ("vit.embeddings.*", "*"),
    ("vit.encoder.layer.*.layernorm_before.*", "blocks.*.norm1.*"),
    ("vit.encoder.layer.*.layernorm_after.*", "blocks.*.norm2.*"),
    ("vit.encoder.layer.*.attention.attention.*", "blocks.*.attention.*"),
    ("vit.encoder.layer.*.attention.output.dense.*", "blocks.*.attention.out_proj.*"),
    ("vit.encoder.layer.*.intermediate.dense.*", "blocks.*.mlp.0.*"),
    ("vit.encoder.layer.*.output.dense.*", "blocks.*.mlp.2.*"),
    ("vit.layernorm.*", "norm.*"),
]
