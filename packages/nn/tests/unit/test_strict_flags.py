"""Flags that make promotion an error concern what users write, and not what layers do inside."""

import pytest

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
from phlox.errors import PhloxError

KEY = phlox.random.key(0)
MODELS = {
    "linear": (nn.Linear(8, 8), (4, 8)),
    "conv": (nn.Sequential(nn.Conv(8, 8, (3, 3)), nn.avg_pool((2, 2))), (2, 4, 4, 8)),
    "transposed": (nn.ConvTranspose(8, 4, (2, 2), strides=2), (2, 4, 4, 8)),
    "batch norm": (nn.BatchNorm(8), (2, 4, 8)),
    "norms": (nn.Sequential(nn.LayerNorm(8), nn.RMSNorm(8), nn.InstanceNorm(8), nn.GroupNorm(8, groups=2)), (2, 5, 8)),
    "attention": (nn.MultiHeadAttention(8, 2, causal=True, rotary_base=1e4, dropout=0.1), (2, 5, 8)),
    "recurrent": (nn.Sequential(nn.LSTM(8, 8), nn.GRU(8, 8), nn.RNN(8, 8, bidirectional=True)), (2, 5, 8)),
    "stack": (nn.Stack(nn.Residual(nn.MLP((8, 16, 8), dropout=0.1)), 3), (4, 8)),
    "adapters": (nn.Sequential(nn.LoRA(nn.Linear(8, 8), 2), nn.WeightNorm(nn.Linear(8, 8)), nn.GLU(8, 16)), (4, 8)),
    "spectral": (nn.SpectralNorm(nn.Linear(8, 8)), (4, 8)),
}


@pytest.mark.parametrize("flag", [("numpy_rank_promotion", "raise"), ("numpy_dtype_promotion", "strict")])
@pytest.mark.parametrize("dtype", [None, "bfloat16"])
@pytest.mark.parametrize("name", MODELS)
def test_layers_do_not_obey_the_flags(name, dtype, flag):
    model, shape = MODELS[name]
    params, state, x = model.init(KEY), model.init_state(), phlox.random.normal(KEY, shape)
    expected, _ = model.apply(params, x, state=state, key=KEY, train=True, dtype=dtype)
    name, value = flag
    with getattr(phlox, name)(value):
        y, _ = model.apply(params, x, state=state, key=KEY, train=True, dtype=dtype)
        loss = phlox.grad(lambda p: model.apply(p, x, state=state, dtype=dtype)[0].astype("float32").sum())
        assert phlox.tree.structure(loss(params)) == phlox.tree.structure(params)
    assert bool((y == expected).all())


class Own(nn.Layer):
    inner: nn.Linear

    def __call__(self, x):
        return self.inner(x) + jnp.ones(8)


def test_layers_of_users_do():
    model = nn.Sequential(nn.Linear(8, 8), nn.Residual(Own(nn.Linear(8, 8))))
    params, x = model.init(KEY), jnp.ones((4, 8))
    assert model.apply(params, x).shape == (4, 8)
    with phlox.numpy_rank_promotion("raise"), pytest.raises((PhloxError, ValueError), match=r"\(4, 8\) \(8,\)"):
        model.apply(params, x)


def test_methods_beside_the_call():
    layer = nn.MultiHeadAttention(8, 2, causal=True, cache_length=4)
    table = nn.Embedding(5, 8)
    with phlox.numpy_rank_promotion("raise"):
        params, state = layer.init(KEY), layer.init_state()
        y, _ = layer.apply(params, jnp.ones((1, 2, 8)), state=state, method="decode")
        assert y.shape == (1, 2, 8)
        assert table.apply(table.init(KEY), y, method="attend").shape == (1, 2, 5)
