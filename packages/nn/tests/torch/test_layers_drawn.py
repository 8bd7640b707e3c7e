"""Layers with drawn options against PyTorch: outputs and gradients of parameters and inputs. PHLOX_TEST_CASES draws more."""

import dataclasses
import os

import numpy as np
import pytest
import torch

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
from nn_beside_torch import compare, drawn

T = torch.nn
CASES = max(1, round(6 * float(os.environ.get("PHLOX_TEST_CASES", "1"))))
DRAWS = pytest.mark.parametrize("seed", range(CASES))


def window(rng, count, below):
    return tuple(int(n) for n in rng.integers(1, below + 1, count))


@DRAWS
@pytest.mark.parametrize("count", [1, 2, 3])
def test_convolutions(seed, count):
    rng = np.random.default_rng([seed, count])
    groups = int(rng.choice([1, 1, 2, 4]))
    options = {"groups": groups, "dilation": window(rng, count, 2)}
    kernel, strides, bias = window(rng, count, 3), window(rng, count, 3), bool(rng.integers(2))
    padding = tuple(int(n) for n in rng.integers(0, 3, count))
    layer = nn.Conv(4, 8, kernel, strides=strides, padding=padding, use_bias=bias, **options)
    module = getattr(T, f"Conv{count}d")(4, 8, kernel, stride=strides, padding=padding, bias=bias, **options)
    compare(layer, module, drawn(rng, 2, *rng.integers(5, 8, count), 4), space=True)


@DRAWS
@pytest.mark.parametrize("count", [1, 2, 3])
def test_transposed_convolutions(seed, count):
    rng = np.random.default_rng([seed, count])
    options = {"groups": int(rng.choice([1, 1, 2])), "dilation": window(rng, count, 2)}
    kernel, strides, bias = window(rng, count, 3), window(rng, count, 3), bool(rng.integers(2))
    padding = [int(rng.integers(0, d * (k - 1) + 1)) for k, d in zip(kernel, options["dilation"], strict=True)]
    extra = [int(rng.integers(0, max(s, d))) for s, d in zip(strides, options["dilation"], strict=True)]
    pairs = [(p, p - e) for p, e in zip(padding, extra, strict=True)]
    layer = nn.ConvTranspose(4, 6, kernel, strides=strides, padding=pairs, use_bias=bias, **options)
    module = getattr(T, f"ConvTranspose{count}d")(
        4, 6, kernel, stride=strides, padding=padding, output_padding=extra, bias=bias, **options
    )
    compare(layer, module, drawn(rng, 2, *rng.integers(3, 6, count), 4), space=True)


@DRAWS
@pytest.mark.parametrize("count", [1, 2, 3])
def test_pooling(seed, count):
    rng = np.random.default_rng([seed, count])
    size, strides = window(rng, count, 3), window(rng, count, 3)
    padding = tuple(int(rng.integers(0, n // 2 + 1)) for n in size)
    x, counted = drawn(rng, 2, *rng.integers(5, 8, count), 3), bool(rng.integers(2))
    compare(nn.max_pool(size, strides, padding), getattr(T, f"MaxPool{count}d")(size, strides, padding), x, space=True)
    module = getattr(T, f"AvgPool{count}d")(size, strides, padding, count_include_pad=counted)
    compare(nn.avg_pool(size, strides, padding, count_padding=counted), module, x, space=True)


@DRAWS
def test_normalizations(seed):
    rng = np.random.default_rng(seed)
    eps, affine = float(rng.choice([1e-6, 1e-5, 1e-2])), bool(rng.integers(2))
    scaled = {"use_scale": affine, "use_bias": affine}
    x = drawn(rng, 3, 5, 4, 8) * 3 + 1
    compare(nn.LayerNorm(8, eps, **scaled), T.LayerNorm(8, eps, elementwise_affine=affine), x, tolerance=1e-4)
    compare(nn.RMSNorm(8, eps, use_scale=affine), T.RMSNorm(8, eps, elementwise_affine=affine), x, tolerance=1e-4)
    module = T.InstanceNorm2d(8, eps, affine=affine)
    compare(nn.InstanceNorm(8, eps, **scaled), module, x, space=True, tolerance=1e-4)
    groups = int(rng.choice([1, 2, 4, 8]))
    module = T.GroupNorm(groups, 8, eps, affine=affine)
    compare(nn.GroupNorm(8, eps, **scaled, groups=groups), module, x, space=True, tolerance=1e-4)


@DRAWS
def test_batch_normalization_in_training(seed):
    rng = np.random.default_rng(seed)
    eps, momentum, affine = float(rng.choice([1e-5, 1e-2])), float(rng.uniform(0.5, 1)), bool(rng.integers(2))
    layer = nn.BatchNorm(8, eps, use_scale=affine, use_bias=affine, momentum=momentum)
    module = T.BatchNorm2d(8, eps, momentum=1 - momentum, affine=affine)
    x = drawn(rng, 3, 5, 4, 8) * 3 + 1
    compare(layer, module, x, space=True, train=True, tolerance=1e-4)
    params, found = nn.load_torch(layer, module)[0], {}
    for unbiased in (False, True):
        same = dataclasses.replace(layer, unbiased=unbiased)
        y, found[unbiased] = same.apply(params, x, state=same.init_state(), train=True)
        np.testing.assert_allclose(found[unbiased]["mean"], module.running_mean, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(y, layer.apply(params, x, state=layer.init_state(), train=True)[0])
    np.testing.assert_allclose(found[True]["var"], module.running_var, rtol=1e-4)
    # flax and Keras move theirs towards the variance of the batch, (n - 1) / n of PyTorch's.
    n = x.size // 8
    moved = (module.running_var.numpy() - momentum) * (n - 1) / n + momentum
    np.testing.assert_allclose(found[False]["var"], moved, rtol=1e-4)


@DRAWS
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent_layers_with_lengths(kind, seed):
    rng = np.random.default_rng(seed)
    ways, bias = bool(rng.integers(2)), bool(rng.integers(2))
    n, length, width = int(rng.integers(1, 5)), int(rng.integers(1, 7)), int(rng.integers(1, 6))
    layer = getattr(nn, kind)(3, width, bidirectional=ways, use_bias=bias)
    module = getattr(T, kind)(3, width, batch_first=True, bidirectional=ways, bias=bias)
    lengths = rng.integers(1, length + 1, n)
    lengths[0] = length
    starts = [drawn(rng, 1 + ways, n, width) for _ in range(1 + (kind == "LSTM"))]

    def carry(arrays):
        """As phlox has it, of arrays with the directions first."""
        each = [arrays[0][i] if len(arrays) == 1 else tuple(a[i] for a in arrays) for i in range(1 + ways)]
        return tuple(each) if ways else each[0]

    def theirs(x):
        packed = T.utils.rnn.pack_padded_sequence(x, torch.from_numpy(lengths), True, enforce_sorted=False)
        given = [torch.from_numpy(a) for a in starts]
        y, last = module(packed, given[0] if len(given) == 1 else tuple(given))
        last = last if isinstance(last, tuple) else (last,)
        y, _ = T.utils.rnn.pad_packed_sequence(y, batch_first=True)
        return torch.cat([y.reshape(-1), *(a.reshape(-1) for a in last)])

    def ours(model, x):
        y, last = model(x, carry([jnp.asarray(a) for a in starts]), lengths=jnp.asarray(lengths), return_carry=True)
        each = list(last) if ways else [last]
        arrays = [jnp.stack(a) for a in (zip(*each, strict=True) if kind == "LSTM" else [each])]
        return jnp.concatenate([y.reshape(-1), *(a.reshape(-1) for a in arrays)])

    compare(layer, module, drawn(rng, n, length, 3), theirs=theirs, ours=ours)


@DRAWS
def test_attention_with_masks(seed):
    rng = np.random.default_rng(seed)
    heads = int(rng.choice([1, 2, 4]))
    n, length, other = (int(k) for k in rng.integers(1, 6, 3))
    alone, causal, bias = bool(rng.integers(2)), bool(rng.integers(2)), bool(rng.integers(2))
    other = length if alone or causal else other
    layer = nn.MultiHeadAttention(8, heads, causal=causal, use_bias=bias)
    module = T.MultiheadAttention(8, heads, batch_first=True, bias=bias)
    context = drawn(rng, n, other, 8)
    kind = rng.choice(["none", "places", "examples"])
    allowed = rng.random((length, other)) < 0.6
    there = rng.random((n, 1, 1, other)) < 0.6
    allowed[:, 0] = there[..., 0] = True
    mask = {"none": None, "places": allowed, "examples": there}[kind]
    whole = np.broadcast_to(True if mask is None else mask, (n, 1, length, other))
    whole = whole & np.tri(length, other, dtype=bool) if causal else whole
    forbidden = torch.from_numpy(~np.broadcast_to(whole, (n, heads, length, other)).reshape(-1, length, other).copy())

    def theirs(x):
        source = x if alone else torch.from_numpy(context)
        return module(x, source, source, attn_mask=forbidden, need_weights=False)[0]

    def ours(model, x):
        return model(x, None if alone else jnp.asarray(context), mask=mask)

    compare(layer, module, drawn(rng, n, length, 8), theirs=theirs, ours=ours)


def heads_of(params, name, x, count):
    y = torch.from_numpy(x) @ torch.from_numpy(np.asarray(params[name]["weight"]))
    return (y + torch.from_numpy(np.asarray(params[name]["bias"]))).unflatten(-1, (count, -1))


def turned(x, base):
    """Rotary positions by complex numbers: features i and i + n/2 are the parts of one."""
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[1])[:, None] * base ** (-torch.arange(half) / half)
    z = torch.complex(x[..., :half].contiguous(), x[..., half:].contiguous()) * torch.exp(1j * angles)[:, None]
    return torch.cat([z.real, z.imag], -1)


@DRAWS
def test_grouped_heads_with_rotary_positions(seed):
    rng = np.random.default_rng(seed)
    groups, each = int(rng.choice([1, 2])), int(rng.choice([1, 2]))
    base = None if rng.integers(2) else float(rng.choice([100.0, 10000.0]))
    layer = nn.MultiHeadAttention(16, groups * each, kv_heads=groups, causal=True, rotary_base=base)
    params = layer.init(phlox.random.key(seed))
    x = drawn(rng, 2, int(rng.integers(1, 7)), 16)
    q, k, v = (
        heads_of(params, name, x, groups * (each if name == "query" else 1)) for name in ("query", "key", "value")
    )
    if base is not None:
        q, k = turned(q, base), turned(k, base)
    y = T.functional.scaled_dot_product_attention(
        *(a.transpose(1, 2) for a in (q, k, v)), is_causal=True, enable_gqa=True
    )
    y = y.transpose(1, 2).flatten(-2).numpy() @ np.asarray(params["out"]["weight"]) + np.asarray(params["out"]["bias"])
    np.testing.assert_allclose(layer.apply(params, x), y, rtol=1e-4, atol=1e-5)


@DRAWS
def test_cached_decoding_is_causal_attention(seed):
    rng = np.random.default_rng(seed)
    base = None if rng.integers(2) else 100.0
    block = nn.Residual(nn.MultiHeadAttention(8, 4, kv_heads=2, causal=True, rotary_base=base, cache_length=12))
    model = nn.Sequential(nn.Linear(3, 8), nn.Stack(block, 2), nn.Linear(8, 5))
    params, n = model.init(phlox.random.key(seed)), int(rng.integers(1, 4))
    x = jnp.asarray(drawn(rng, n, 12, 3))
    expected, _ = model.apply(params, x, state=model.init_state(batch=n))
    state, found, place = model.init_state(batch=n), [], 0
    while place < 12:
        count = int(rng.integers(1, 6))
        y, state = model.apply(params, x[:, place : place + count], state=state, method="decode")
        found.append(y)
        place += count
    np.testing.assert_allclose(jnp.concatenate(found, axis=1), expected, rtol=1e-4, atol=1e-5)


@DRAWS
def test_embeddings(seed):
    rng = np.random.default_rng(seed)
    layer, module = nn.Embedding(7, 4), T.Embedding(7, 4)
    places = rng.integers(0, 7, (3, 5))
    scale = drawn(rng, 3, 5, 4)
    compare(
        layer,
        module,
        scale,
        theirs=lambda x: module(torch.from_numpy(places)) * x,
        ours=lambda model, x: model(jnp.asarray(places)) * x,
    )
