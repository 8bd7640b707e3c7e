"""Weights that PyTorch made give PyTorch's outputs, and go back to it, for every layer that both have."""

import numpy as np
import pytest
import torch

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
from phlox.errors import TreeError

T = torch.nn
KEY = phlox.random.key(0)


class EncoderLayer(nn.Layer):
    """torch.nn.TransformerEncoderLayer: fields are called as there, and the rest follows."""

    self_attn: nn.MultiHeadAttention
    linear1: nn.Linear
    linear2: nn.Linear
    norm1: nn.LayerNorm
    norm2: nn.LayerNorm
    norm_first: bool = False

    def __call__(self, x):
        def feed(x):
            return self.linear2(nn.relu(self.linear1(x)))

        if self.norm_first:
            x = x + self.self_attn(self.norm1(x))
            return x + feed(self.norm2(x))
        x = self.norm1(x + self.self_attn(x))
        return self.norm2(x + feed(x))


def encoder(norm_first):
    layer = EncoderLayer(
        nn.MultiHeadAttention(8, 2), nn.Linear(8, 16), nn.Linear(16, 8), nn.LayerNorm(8), nn.LayerNorm(8), norm_first
    )
    module = T.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=norm_first)
    return layer, module, (2, 5, 8)


def rms(size):
    return nn.RMSNorm(size, epsilon=1e-6), T.RMSNorm(size, eps=1e-6), (4, size)


# name: (layer, module, shape of the inputs in phlox). Inputs and outputs of "space" have channels last here, first there.
SPACE = {
    "conv1": (nn.Conv(4, 6, (3,), padding=1), T.Conv1d(4, 6, 3, padding=1), (2, 9, 4)),
    "conv1 dilated": (
        nn.Conv(4, 6, 3, strides=2, padding=2, dilation=2, groups=2),
        T.Conv1d(4, 6, 3, 2, 2, 2, 2),
        (2, 9, 4),
    ),
    "conv2": (nn.Conv(4, 6, (3, 2), padding=(1, 0)), T.Conv2d(4, 6, (3, 2), padding=(1, 0)), (2, 7, 8, 4)),
    "conv2 strides": (
        nn.Conv(4, 8, (3, 3), strides=(2, 1), padding=1, groups=4, use_bias=False),
        T.Conv2d(4, 8, 3, (2, 1), 1, groups=4, bias=False),
        (2, 7, 8, 4),
    ),
    "conv2 valid": (nn.Conv(4, 8, (3, 3), padding="VALID"), T.Conv2d(4, 8, 3), (2, 7, 8, 4)),
    "conv3": (nn.Conv(2, 4, (3, 2, 3), padding=1), T.Conv3d(2, 4, (3, 2, 3), padding=1), (2, 5, 6, 4, 2)),
    "transposed1": (
        nn.ConvTranspose(4, 6, 3, strides=2, padding=1),
        T.ConvTranspose1d(4, 6, 3, stride=2, padding=1),
        (2, 5, 4),
    ),
    "transposed2": (
        nn.ConvTranspose(4, 6, (3, 4), strides=(2, 3), padding=1, groups=2),
        T.ConvTranspose2d(4, 6, (3, 4), stride=(2, 3), padding=1, groups=2),
        (2, 5, 4, 4),
    ),
    "transposed2 output padding": (
        nn.ConvTranspose(4, 6, (3, 3), strides=2, padding=[(1, 0), (1, 0)], dilation=2),
        T.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, dilation=2),
        (2, 5, 4, 4),
    ),
    "transposed3": (
        nn.ConvTranspose(4, 4, (2, 2, 2), strides=2, padding=0, groups=4),
        T.ConvTranspose3d(4, 4, 2, stride=2, groups=4),
        (1, 3, 2, 3, 4),
    ),
    "batch norm": (nn.BatchNorm(4), T.BatchNorm2d(4), (3, 5, 2, 4)),
    "batch norm plain": (
        nn.BatchNorm(4, use_scale=False, use_bias=False),
        T.BatchNorm1d(4, affine=False),
        (3, 5, 4),
    ),
    "group norm": (nn.GroupNorm(8, groups=4), T.GroupNorm(4, 8), (3, 5, 2, 8)),
    "instance norm": (nn.InstanceNorm(4), T.InstanceNorm2d(4, affine=True), (3, 5, 6, 4)),
}
PLAIN = {
    "linear": (nn.Linear(4, 6), T.Linear(4, 6), (3, 4)),
    "linear without bias": (nn.Linear(4, 6, use_bias=False), T.Linear(4, 6, bias=False), (3, 4)),
    "layer norm": (nn.LayerNorm(8), T.LayerNorm(8), (3, 5, 8)),
    "rms norm": rms(8),
    "embedding": (nn.Embedding(10, 4), T.Embedding(10, 4), None),
    "rnn": (nn.RNN(4, 6), T.RNN(4, 6, batch_first=True), (3, 5, 4)),
    "lstm": (nn.LSTM(4, 6), T.LSTM(4, 6, batch_first=True), (3, 5, 4)),
    "gru": (nn.GRU(4, 6), T.GRU(4, 6, batch_first=True), (3, 5, 4)),
    "rnn both ways": (nn.RNN(4, 6, bidirectional=True), T.RNN(4, 6, batch_first=True, bidirectional=True), (3, 5, 4)),
    "lstm both ways": (
        nn.LSTM(4, 6, bidirectional=True, use_bias=False),
        T.LSTM(4, 6, batch_first=True, bidirectional=True, bias=False),
        (3, 5, 4),
    ),
    "gru both ways": (nn.GRU(4, 6, bidirectional=True), T.GRU(4, 6, batch_first=True, bidirectional=True), (3, 5, 4)),
    "attention": (nn.MultiHeadAttention(8, 2), T.MultiheadAttention(8, 2, batch_first=True), (3, 5, 8)),
    "attention without bias": (
        nn.MultiHeadAttention(8, 4, use_bias=False),
        T.MultiheadAttention(8, 4, batch_first=True, bias=False),
        (3, 5, 8),
    ),
    "encoder": encoder(False),
    "encoder norm first": encoder(True),
    "sequential": (
        nn.Sequential(nn.Linear(4, 6), nn.relu, nn.Linear(6, 2)),
        T.Sequential(T.Linear(4, 6), T.ReLU(), T.Linear(6, 2)),
        (3, 4),
    ),
    "stack": (nn.Stack(nn.Linear(4, 4), 3), T.Sequential(*[T.Linear(4, 4) for _ in range(3)]), (3, 4)),
}


def shaken(module):
    """The module with values that are none of its first ones."""
    torch.manual_seed(0)
    for name, value in module.state_dict().items():
        if value.is_floating_point():
            value.copy_(torch.rand_like(value) + 0.5 if "var" in name else torch.randn_like(value) * 0.5)
    return module.eval()


def outputs(name, layer, module, shape, params, state):
    """What phlox and PyTorch compute from the same inputs."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 10, (3, 5)) if shape is None else rng.normal(size=shape).astype(np.float32)
    space = name in SPACE
    given = torch.from_numpy(np.moveaxis(x, -1, 1) if space else x)
    with torch.no_grad():
        theirs = module(given, given, given) if "attention" in name else module(given)
    theirs = (theirs[0] if isinstance(theirs, tuple) else theirs).numpy()
    ours = layer.apply(params, jnp.asarray(x), state=state)[0]
    return np.asarray(ours), np.moveaxis(theirs, 1, -1) if space else theirs


@pytest.mark.parametrize("name", [*SPACE, *PLAIN])
def test_outputs_are_those_of_torch_in_both_directions(name):
    layer, module, shape = (SPACE | PLAIN)[name]
    params, state = nn.load_torch(layer, shaken(module))
    np.testing.assert_allclose(*outputs(name, layer, module, shape, params, state), atol=1e-5, rtol=1e-5)

    # Back: other values into the module.
    params = phlox.tree.map(lambda x: x * 0.5 + 0.1, params)
    written = nn.to_torch(layer, params, state)
    module.load_state_dict(written)  # strict: all names and shapes are torch's
    np.testing.assert_allclose(*outputs(name, layer, module, shape, params, state), atol=1e-5, rtol=1e-5)
    again, _ = nn.load_torch(layer, written)
    assert phlox.tree.structure(again) == phlox.tree.structure(layer.init(KEY))
    for a, b in zip(phlox.tree.leaves(again), phlox.tree.leaves(params), strict=True):
        np.testing.assert_array_equal(a, b)


def test_attention_to_a_context_of_other_features():
    layer = nn.MultiHeadAttention(8, 2, context_features=6)
    module = shaken(T.MultiheadAttention(8, 2, kdim=6, vdim=6, batch_first=True))
    params, _ = nn.load_torch(layer, module)
    x, context = np.random.default_rng(0).normal(size=(2, 3, 8)), np.random.default_rng(1).normal(size=(2, 5, 6))
    x, context = x.astype(np.float32), context.astype(np.float32)
    with torch.no_grad():
        theirs = module(*map(torch.from_numpy, (x, context, context)))[0].numpy()
    np.testing.assert_allclose(layer.apply(params, x, context), theirs, atol=1e-5)
    module.load_state_dict(nn.to_torch(layer, params))


def test_linear_maps_of_their_own_serve_attention():
    layer = nn.MultiHeadAttention(8, 2)
    whole = {k: v.numpy() for k, v in shaken(T.MultiheadAttention(8, 2)).state_dict().items()}
    parts = {k: v for k, v in whole.items() if not k.startswith("in_proj")}
    for kind in ("weight", "bias"):
        for name, piece in zip(("query", "key", "value"), np.split(whole[f"in_proj_{kind}"], 3), strict=True):
            parts[f"{name}.{kind}"] = piece
    a, b = nn.load_torch(layer, whole)[0], nn.load_torch(layer, parts)[0]
    assert phlox.tree.all(phlox.tree.map(lambda x, y: bool((x == y).all()), a, b))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_dtypes_are_kept_or_changed(dtype):
    module = T.Linear(4, 6).to(dtype)
    layer = nn.Linear(4, 6)
    params, _ = nn.load_torch(layer, module)
    assert str(params["weight"].dtype) == str(dtype).removeprefix("torch.")
    back = nn.to_torch(layer, params)
    assert back["weight"].dtype == dtype and torch.equal(back["weight"], module.weight)
    assert nn.load_torch(layer, module, dtype="float32")[0]["bias"].dtype == jnp.float32


def test_one_error_tells_all_before_anything_is_loaded():
    model = nn.Sequential(nn.Linear(4, 6), nn.relu, nn.Linear(6, 2))
    module = T.Sequential(T.Linear(4, 5), T.ReLU(), T.Linear(6, 2, bias=False))
    module.register_buffer("steps", torch.zeros(3))
    report = nn.compare_weights(model, module)
    assert report.missing == (("2.bias", (2,)),) and report.unused == (("steps", (3,)),) and not report.fits
    assert report.misshapen == (("0.weight", (5, 4), (6, 4)), ("0.bias", (5,), (6,)))
    with pytest.raises(TreeError, match=r"(?s)missing:   2\.bias \(2,\).*0\.weight has \(5, 4\), but.*steps") as e:
        nn.load_torch(model, module)
    assert e.value.report == report and e.value.where.file == __file__


def test_names_are_changed_by_rules_and_back():
    model = nn.Stack(nn.Linear(4, 4), 2)
    weights = {f"h.{n}.{k}": v for n in range(2) for k, v in shaken(T.Linear(4, 4)).state_dict().items()}
    weights["h.0.mask"] = torch.zeros(1)
    rename = [("*.mask", None), ("h.*.weight", "*.weight", "transposed"), ("h.*", "*")]
    params, _ = nn.load_torch(model, weights, rename=rename)
    np.testing.assert_array_equal(params["block"]["weight"][1], weights["h.1.weight"].numpy())
    back = nn.to_torch(model, params, rename=rename)
    assert back.keys() == weights.keys() - {"h.0.mask"}
    assert all(torch.equal(back[k], weights[k]) for k in back)
    short = {k.removeprefix("h."): v for k, v in weights.items() if "mask" not in k}
    same, _ = nn.load_torch(model, weights, rename=lambda name: None if "mask" in name else name.removeprefix("h."))
    assert bool((same["block"]["bias"] == nn.load_torch(model, short)[0]["block"]["bias"]).all())
