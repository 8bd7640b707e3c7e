"""Blocks of Transformers, positions, PReLU and Upsample against PyTorch and transformers."""

import numpy as np
import pytest
import torch

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
from nn_beside_torch import compare, drawn

T = torch.nn


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_block(norm_first, activation):
    x = drawn(np.random.default_rng(0), 2, 5, 8)
    module = T.TransformerEncoderLayer(8, 2, 12, 0.0, activation, batch_first=True, norm_first=norm_first)
    layer = nn.TransformerEncoderBlock(8, 2, 12, getattr(nn, activation), norm_first=norm_first)
    if activation == "gelu":
        layer = nn.TransformerEncoderBlock(8, 2, 12, lambda x: phlox.nn.gelu(x, False), norm_first=norm_first)
    compare(layer, module, x, train=True)


def test_causal_encoder_block_and_its_decoding():
    x = drawn(np.random.default_rng(0), 2, 5, 8)
    module = T.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True, norm_first=True)
    layer = nn.TransformerEncoderBlock(8, 2, 12, nn.relu, causal=True, cache_length=5)
    mask = T.Transformer.generate_square_subsequent_mask(5)
    state = layer.init_state(batch=2)
    compare(layer, module, x, theirs=lambda x: module(x, src_mask=mask, is_causal=True), state=state, train=True)
    params, _ = nn.load_torch(layer, module)
    whole, _ = layer.apply(params, x, state=state)
    for n in range(5):
        y, state = layer.apply(params, x[:, n : n + 1], state=state, method="decode")
        np.testing.assert_allclose(y, whole[:, n : n + 1], atol=1e-5)


@pytest.mark.parametrize("norm_first", [True, False])
def test_decoder_block(norm_first):
    rng = np.random.default_rng(0)
    x, memory = drawn(rng, 2, 5, 8), drawn(rng, 2, 3, 8)
    module = T.TransformerDecoderLayer(8, 2, 12, 0.0, batch_first=True, norm_first=norm_first)
    layer = nn.TransformerDecoderBlock(8, 2, 12, nn.relu, norm_first=norm_first)
    mask = T.Transformer.generate_square_subsequent_mask(5)
    compare(
        layer,
        module,
        x,
        theirs=lambda x: module(x, torch.from_numpy(memory), tgt_mask=mask, tgt_is_causal=True),
        ours=lambda model, x: model(x, memory),
        train=True,
    )


@pytest.mark.parametrize("features", [1, 4])
def test_prelu(features):
    compare(nn.PReLU(features), T.PReLU(features), drawn(np.random.default_rng(0), 3, 5, 4), space=True)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("method", ["nearest", "linear"])
def test_upsample(count, method):
    scale = (2, 3, 2)[:count]
    mode = method if method == "nearest" else ["linear", "bilinear", "trilinear"][count - 1]
    options = {} if method == "nearest" else {"align_corners": False}
    x = drawn(np.random.default_rng(0), 2, *(3, 4, 2)[:count], 5)
    compare(nn.Upsample(scale, method), T.Upsample(scale_factor=scale, mode=mode, **options), x, space=True)
    np.testing.assert_allclose(
        nn.Upsample(2).apply({}, x), nn.Upsample((2,) * count).apply({}, x), err_msg="a number for all axes"
    )


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("buckets", "distance"), [(32, 128), (8, 20), (12, 64)])
def test_relative_positions_of_t5(bidirectional, buckets, distance):
    from transformers.models.t5.modeling_t5 import T5Attention

    d = torch.arange(150)[None, :] - torch.arange(150)[:, None]
    expected = T5Attention._relative_position_bucket(d, bidirectional, buckets, distance)
    layer = nn.RelativePositionBias(3, buckets, distance, bidirectional)
    params = {"weight": jnp.arange(3.0 * buckets).reshape(buckets, 3)}
    bias = layer.apply(params, 150)
    np.testing.assert_array_equal(bias, np.moveaxis(np.asarray(params["weight"])[expected.numpy()], -1, 0))
    np.testing.assert_array_equal(layer.apply(params, 2, 150, offset=7), bias[:, 7:9])


@pytest.mark.parametrize("heads", [1, 4, 6, 16])
def test_alibi_is_that_of_bloom(heads):
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    expected = build_alibi_tensor(torch.ones(1, 7), heads, torch.float32).numpy()[:, 0]
    # Bloom adds a number that is equal for all keys of a query to the penalty, which the softmax ignores.
    bias = nn.ALiBi(heads).apply({}, 7)
    np.testing.assert_allclose(bias[:, -1] - bias[:, -1, :1], expected - expected[:, :1], rtol=1e-6)


def test_experts_of_mixtral():
    from transformers import MixtralConfig
    from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

    config = MixtralConfig(hidden_size=8, intermediate_size=12, num_local_experts=4, num_experts_per_tok=2)
    torch.manual_seed(0)
    module = MixtralSparseMoeBlock(config)
    for value in module.parameters():
        value.data = torch.randn_like(value) * 0.4
    weights = {name: value.detach().numpy() for name, value in module.named_parameters()}
    layer = nn.MoE(nn.GLU(8, 12), 4, 8)
    if "experts.gate_up_proj" in weights:
        gate, value = np.split(weights["experts.gate_up_proj"], 2, axis=1)
        out = weights["experts.down_proj"]
    else:
        gate, out, value = (np.stack([weights[f"experts.{n}.w{m}.weight"] for n in range(4)]) for m in (1, 2, 3))
    params = {
        "router": {"weight": weights["gate.weight"].T},
        "expert": {n: {"weight": w.swapaxes(1, 2)} for n, w in (("gate", gate), ("value", value), ("out", out))},
    }
    x = drawn(np.random.default_rng(1), 2, 9, 8)
    expected = module(torch.from_numpy(x))
    expected = expected[0] if isinstance(expected, tuple) else expected
    np.testing.assert_allclose(layer.apply(params, x), expected.detach().numpy(), atol=1e-5)
