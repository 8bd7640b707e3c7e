"""A model of every layer and the inputs it takes, for the tests that hold for all of them."""

import dataclasses
from typing import Any

import phlox
import phlox.numpy as jnp
import phlox_nn as nn


@dataclasses.dataclass(frozen=True)
class Example:
    """A layer with inputs that fit.

    Attributes:
      layer: the layer.
      shape: of its first argument; None where that is integers.
      rest, keywords: further arguments.
      packed: how many arguments make the first one, as a tuple; 0 where it is an array.
      method: what is called.
      train: whether it is called as in training.
    """

    layer: Any
    shape: tuple[int, ...]
    rest: tuple[Any, ...] = ()
    keywords: dict[str, Any] = dataclasses.field(default_factory=dict)
    method: str = "__call__"
    train: bool = False
    integers: bool = False
    packed: int = 0

    def inputs(self, dtype: Any = jnp.float32) -> Any:
        """The first argument: normal numbers, or integers below 4."""
        key = phlox.random.key(1)
        if self.integers:
            return phlox.random.randint(key, self.shape, 0, 4)
        return phlox.random.normal(key, self.shape, dtype)

    def apply(self, params: Any, *args: Any, **keywords: Any) -> Any:
        """What the layer computes, without its state; `args` are `inputs()` and `rest`, or others in their place."""
        if self.packed:
            args = (args[: self.packed], *args[self.packed :])
        keywords = {"method": self.method, "train": self.train, "key": phlox.random.key(3)} | self.keywords | keywords
        return self.layer.apply(params, *args, **keywords)[0]

    def state(self) -> Any:
        """First values of the variables."""
        return self.layer.init_state(batch=self.shape[0])


def _context(*shape: int) -> Any:
    return jnp.asarray(phlox.random.normal(phlox.random.key(2), shape))


SPACE = (2, 5, 6, 4)
SEQUENCE = (2, 5, 4)
WORDS = (2, 5, 8)
LENGTHS = jnp.array([2, 5])

EXAMPLES = {
    "Linear": Example(nn.Linear(4, 6), (3, 4)),
    "Linear, no bias": Example(nn.Linear(4, 6, use_bias=False), (4,)),
    "MLP": Example(nn.MLP((4, 6, 3), activation=nn.tanh, dropout=0.2), (3, 4), train=True),
    "GLU": Example(nn.GLU(4, 6), (3, 4)),
    "Embedding": Example(nn.Embedding(4, 3), (2, 5), integers=True),
    "Embedding, attend": Example(nn.Embedding(4, 3), (2, 3), method="attend"),
    "Conv 1 axis": Example(nn.Conv(4, 6, 3, strides=2, padding=2, dilation=2, groups=2), SEQUENCE),
    "Conv 2 axes": Example(nn.Conv(4, 6, (3, 2), strides=(1, 2)), SPACE),
    "Conv 3 axes": Example(nn.Conv(2, 2, (2, 2, 2), padding="VALID"), (1, 3, 4, 3, 2)),
    "ConvTranspose 1 axis": Example(nn.ConvTranspose(4, 2, 3, strides=2, padding=1), SEQUENCE),
    "ConvTranspose 2 axes": Example(nn.ConvTranspose(4, 4, (3, 3), strides=2, groups=2), (2, 3, 4, 4)),
    "MaxPool": Example(nn.max_pool((2, 2), padding="SAME"), SPACE),
    "MaxPool, overlapping": Example(nn.max_pool((3, 3), 1), SPACE),
    "AvgPool": Example(nn.avg_pool((2, 2), padding="SAME"), SPACE),
    "AvgPool, padding counted": Example(nn.avg_pool(3, 2, 1, count_padding=True), SEQUENCE),
    "BatchNorm": Example(nn.BatchNorm(4), (6, 4)),
    "BatchNorm, training": Example(nn.BatchNorm(4), SEQUENCE, train=True),
    "LayerNorm": Example(nn.LayerNorm(4), (3, 4)),
    "RMSNorm": Example(nn.RMSNorm(4, use_bias=True), (3, 4)),
    "GroupNorm": Example(nn.GroupNorm(4, groups=2), SEQUENCE),
    "InstanceNorm": Example(nn.InstanceNorm(4), SPACE),
    "Dropout": Example(nn.Dropout(0.5), (3, 4), train=True),
    "MultiHeadAttention": Example(nn.MultiHeadAttention(8, 2), WORDS),
    "MultiHeadAttention, grouped": Example(
        nn.MultiHeadAttention(8, 4, kv_heads=2, causal=True, rotary_base=100.0, use_bias=False), WORDS
    ),
    "MultiHeadAttention, training": Example(
        nn.MultiHeadAttention(8, 4, kv_heads=2, causal=True, dropout=0.3), WORDS, train=True
    ),
    "MultiHeadAttention, context": Example(
        nn.MultiHeadAttention(8, 2, context_features=3), WORDS, (_context(2, 3, 3),), {"mask": jnp.eye(5, 3) == 0}
    ),
    "MultiHeadAttention, decode": Example(
        nn.MultiHeadAttention(8, 2, rotary_base=100.0, cache_length=7), (1, 3, 8), method="decode"
    ),
    "RNN": Example(nn.RNN(4, 3), SEQUENCE),
    "LSTM": Example(nn.LSTM(4, 3, bidirectional=True), SEQUENCE, keywords={"lengths": LENGTHS}),
    "GRU": Example(nn.GRU(4, 3, reverse=True), SEQUENCE, keywords={"lengths": LENGTHS}),
    "Sequential": Example(nn.Sequential(nn.Linear(4, 6), nn.gelu, nn.Linear(6, 2)), (3, 4)),
    "Parallel": Example(nn.Parallel(nn.Linear(4, 6), nn.tanh), (3, 4)),
    "Residual": Example(nn.Residual(nn.Linear(4, 4)), (3, 4)),
    "Stack": Example(nn.Stack(nn.Residual(nn.MLP((4, 6, 4))), 3), (3, 4)),
    "Stack, checkpoint": Example(nn.Stack(nn.MLP((4, 6, 4)), 3, checkpoint=True, unroll=2), (3, 4)),
    "WeightNorm": Example(nn.WeightNorm(nn.Linear(4, 6)), (3, 4)),
    "WeightNorm of Conv": Example(nn.WeightNorm(nn.Conv(4, 2, 3)), SEQUENCE),
    "SpectralNorm": Example(nn.SpectralNorm(nn.Linear(4, 6)), (3, 4)),
    "SpectralNorm, training": Example(nn.SpectralNorm(nn.Linear(4, 6), steps=200), (3, 4), train=True),
    "LoRA": Example(nn.LoRA(nn.Sequential(nn.Linear(4, 6), nn.relu, nn.Linear(6, 2)), 2, alpha=4.0), (3, 4)),
    "Identity": Example(nn.Identity(), (3, 4)),
    "PReLU": Example(nn.PReLU(4), (3, 4)),
    "Upsample": Example(nn.Upsample(2), SPACE),
    "Upsample, linear": Example(nn.Upsample((2, 3), "linear"), SPACE),
    "DropPath": Example(nn.DropPath(0.5), (3, 4), train=True),
    "Remat": Example(nn.Remat(nn.MLP((4, 6, 3), dropout=0.2)), (3, 4), train=True),
    "TransformerEncoderBlock with Attention": Example(nn.TransformerEncoderBlock(8, 2, 6, causal=True), WORDS),
    "TransformerDecoderBlock with Attention": Example(
        nn.TransformerDecoderBlock(8, 2, 6, context_features=3), WORDS, (_context(2, 3, 3),)
    ),
    "MultiHeadAttention, positions": Example(nn.MultiHeadAttention(8, 2, position_bias=nn.ALiBi(2)), WORDS),
    "MoE, softmax in 32 bits as Attention": Example(nn.MoE(nn.MLP((8, 6, 8)), 3, 8), WORDS),
    "RNNCell": Example(nn.RNNCell(4, 3), (2, 3), (_context(2, 4),)),
    "GRUCell": Example(nn.GRUCell(4, 3), (2, 3), (_context(2, 4),)),
    "LSTMCell": Example(nn.LSTMCell(4, 3), (2, 3), (_context(2, 3), _context(2, 4)), packed=2),
}


def classes() -> set[str]:
    """The layers that phlox_nn offers."""
    layers = {n for n, x in vars(nn).items() if isinstance(x, type) and issubclass(x, nn.Layer)}
    # The inputs of biases are numbers of positions; weights of 8 bits have no gradients (test_quantized.py).
    return layers - {"Layer", "ALiBi", "RelativePositionBias", "Quantized"}
