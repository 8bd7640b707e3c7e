"""Blocks of Transformers: of an encoder or a decoder-only model, and of a decoder that attends to an encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from . import _activations, _checks
from ._attention import MultiHeadAttention
from ._dropout import Dropout, DropPath
from ._layer import Layer
from ._linear import MLP
from ._norm import LayerNorm
from ._torch_layout import Tensor, inside


class TransformerEncoderBlock(Layer):
    """Self-attention and a perceptron, each with a residual connection and a norm. Source: Vaswani et al., 2017.

    Maps (..., length, features) to the same shape. With ``causal=True`` it is the block of decoder-only models (GPT).

    Args:
      features: the length of the last axis, a multiple of `num_heads`.
      num_heads: the number of heads.
      hidden_features: the length inside of the perceptron, by default four times `features`.
      activation: the function in the perceptron.
      dropout: the fraction dropped in training, of attention's weights, in the perceptron, and of what both add.
      drop_path: the fraction of examples for which a branch is dropped in training, see `DropPath`.
      norm_first: whether norms stand before attention and perceptron (GPT-2, ViT), or after the sums (as in the paper,
        and PyTorch's default).
      causal: whether each position attends only to positions up to its own.
      epsilon: of the norms.
      use_bias: whether the linear layers have a bias.
      kv_heads, rotary_base, position_bias, cache_length: see `MultiHeadAttention`.

    Its parts are `attention`, `attention_norm`, `mlp` and `mlp_norm`.

    >>> import phlox
    >>> import phlox_nn as nn
    >>> model = nn.Stack(TransformerEncoderBlock(64, 8, dropout=0.1), 12)
    >>> params = model.init(phlox.random.key(0))
    >>> model.apply(params, phlox.numpy.ones((2, 5, 64))).shape
    (2, 5, 64)
    """

    features: int
    num_heads: int
    hidden_features: int | None = None
    activation: Callable[[Any], Any] = _activations.gelu
    dropout: float = 0.0
    drop_path: float = 0.0
    norm_first: bool = True
    causal: bool = False
    epsilon: float = 1e-5
    use_bias: bool = True
    kv_heads: int | None = None
    rotary_base: float | None = None
    position_bias: Layer | None = None
    cache_length: int | None = None

    #: the names of the norms in PyTorch
    _torch_norms: ClassVar[Mapping[str, str]] = {"attention_norm": "norm1", "mlp_norm": "norm2"}

    def __post_init__(self) -> None:
        _checks.part(self, dropout=self.dropout, drop_path=self.drop_path)
        self.parts()  # raises for features and heads that do not fit

    def parts(self) -> Mapping[str, Any]:
        hidden = 4 * self.features if self.hidden_features is None else self.hidden_features
        sizes = (self.features, hidden, self.features)
        return {
            "attention": MultiHeadAttention(
                self.features,
                self.num_heads,
                kv_heads=self.kv_heads,
                causal=self.causal,
                rotary_base=self.rotary_base,
                use_bias=self.use_bias,
                dropout=self.dropout,
                cache_length=self.cache_length,
                position_bias=self.position_bias,
            ),
            "mlp": MLP(sizes, self.activation, self.use_bias, self.dropout),
            **{name: LayerNorm(self.features, self.epsilon, use_bias=self.use_bias) for name in self._torch_norms},
            "dropping": Dropout(self.dropout),
            "path_dropping": DropPath(self.drop_path),
        }

    def torch_layout(self) -> Sequence[Tensor]:
        """The names of ``torch.nn.TransformerEncoderLayer`` or ``TransformerDecoderLayer``."""
        parts = self.parts()
        names = {"attention": "self_attn", "cross_attention": "multihead_attn", **self._torch_norms}
        tensors = [
            inside(tensor, (name,), torch_name)
            for name, torch_name in names.items()
            if name in parts
            for tensor in parts[name].torch_layout()
        ]
        linears = parts["mlp"].parts()["layers"]
        return tensors + [
            inside(tensor, ("mlp", "layers", str(n)), f"linear{n + 1}")
            for n, linear in enumerate(linears)
            for tensor in linear.torch_layout()
        ]

    def __call__(self, x: Any, *, mask: Any = None, bias: Any = None) -> Any:
        """Applies the block; `mask` and `bias` as for `MultiHeadAttention`."""
        x = self._branch(x, self.attention_norm, lambda y: self.attention(y, mask=mask, bias=bias))
        return self._branch(x, self.mlp_norm, self.mlp)

    def decode(self, x: Any) -> Any:
        """Like the call, for the next positions of a sequence: `MultiHeadAttention.decode`."""
        x = self._branch(x, self.attention_norm, self.attention.decode)
        return self._branch(x, self.mlp_norm, self.mlp)

    def _branch(self, x: Any, norm: Any, function: Any) -> Any:
        """`x` and what the function adds to it, with the norm before or after."""
        y = self.path_dropping(self.dropping(function(norm(x) if self.norm_first else x)))
        return x + y if self.norm_first else norm(x + y)


class TransformerDecoderBlock(TransformerEncoderBlock):
    """A causal block that also attends to the outputs of an encoder. Source: Vaswani et al., 2017.

    Maps (..., length, features) and the encoder's (..., other length, context_features) to (..., length, features).

    Args:
      features, num_heads, hidden_features, activation, dropout, drop_path, norm_first, epsilon, use_bias, kv_heads,
        rotary_base, position_bias, cache_length: as for `TransformerEncoderBlock`.
      causal: whether each position attends only to positions up to its own.
      context_features: the length of the encoder's last axis, by default `features`.

    Its parts are those of `TransformerEncoderBlock`, `cross_attention` and `cross_norm`.

    >>> import phlox
    >>> block = TransformerDecoderBlock(64, 8)
    >>> x, encoded = phlox.numpy.ones((2, 5, 64)), phlox.numpy.ones((2, 9, 64))
    >>> block.apply(block.init(phlox.random.key(0)), x, encoded).shape
    (2, 5, 64)
    """

    causal: bool = True
    context_features: int | None = None

    _torch_norms: ClassVar[Mapping[str, str]] = {"attention_norm": "norm1", "cross_norm": "norm2", "mlp_norm": "norm3"}

    def parts(self) -> Mapping[str, Any]:
        cross = MultiHeadAttention(
            self.features,
            self.num_heads,
            kv_heads=self.kv_heads,
            context_features=self.context_features,
            use_bias=self.use_bias,
            dropout=self.dropout,
        )
        return {**super().parts(), "cross_attention": cross}

    def __call__(  # type: ignore[override]
        self, x: Any, context: Any, *, mask: Any = None, bias: Any = None, context_mask: Any = None
    ) -> Any:
        """Applies the block; `mask` and `bias` are those of self-attention, `context_mask` that of the context."""
        x = self._branch(x, self.attention_norm, lambda y: self.attention(y, mask=mask, bias=bias))
        return self._rest(x, context, context_mask)

    def decode(self, x: Any, context: Any, *, context_mask: Any = None) -> Any:  # type: ignore[override]
        """Like the call, for the next positions of a sequence: `MultiHeadAttention.decode`."""
        return self._rest(self._branch(x, self.attention_norm, self.attention.decode), context, context_mask)

    def _rest(self, x: Any, context: Any, mask: Any) -> Any:
        x = self._branch(x, self.cross_norm, lambda y: self.cross_attention(y, context, mask=mask))
        return self._branch(x, self.mlp_norm, self.mlp)
