"""The U-Net and the autoencoder load what diffusers writes, compute the same, learn the same, and write it back."""

import json

import numpy as np
import pytest
import torch

import phlox
import phlox_models
from phlox.errors import ArgumentError

diffusers = pytest.importorskip("diffusers", reason="its models are what these are compared with")

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(2, 8, 8, 3)).astype(np.float32)
TIMES, LABELS = np.array([3, 70]), np.array([1, 3])
UNET = {"sample_size": 8, "block_out_channels": (8, 16), "layers_per_block": 1, "norm_num_groups": 4}
ATTENTION = {
    "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
    "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
    "attention_head_dim": 8,
}
#: the details of the first models, which were ported from TensorFlow, and labels
FIRST = {
    "down_block_types": ("AttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "UpBlock2D"),
    "attention_head_dim": None,
    "freq_shift": 1,
    "flip_sin_to_cos": False,
    "downsample_padding": 0,
    "norm_eps": 1e-6,
    "num_class_embeds": 4,
    "layers_per_block": 2,
    "add_attention": False,
    "out_channels": 6,
}
AUTOENCODER = {
    "block_out_channels": (8, 16),
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
    "norm_num_groups": 4,
}
BARE = {
    "layers_per_block": 2,
    "use_quant_conv": False,
    "use_post_quant_conv": False,
    "mid_block_add_attention": False,
    "latent_channels": 3,
}
MODELS = {
    "unet": ("UNet2DModel", {**UNET, **ATTENTION}, {"timestep": TIMES}),
    "unet with labels": ("UNet2DModel", {**UNET, **FIRST}, {"timestep": TIMES, "class_labels": LABELS}),
    "autoencoder": ("AutoencoderKL", AUTOENCODER, {}),
    "bare autoencoder": ("AutoencoderKL", {**AUTOENCODER, **BARE}, {}),
}


def module(name):
    kind, options, inputs = MODELS[name]
    torch.manual_seed(0)
    network = getattr(diffusers, kind)(**options).eval()
    # Without this some biases are 0 and some scales 1, and a wrong mapping of their names would stay unseen.
    for value in network.parameters():
        value.data += torch.randn_like(value) * 0.1
    return network, inputs


def channels_first(x):
    return torch.from_numpy(np.ascontiguousarray(np.moveaxis(x, -1, 1)))


def channels_last(x):
    return np.moveaxis(x.detach().numpy(), 1, -1)


def outputs(model, params, inputs):
    out = model.apply(params, IMAGES, *inputs.values())
    return getattr(out, "images", out)


@pytest.mark.parametrize("name", MODELS)
def test_outputs_and_gradients_equal_those_of_diffusers(tmp_path, name):
    network, inputs = module(name)
    network.save_pretrained(tmp_path)
    model, params = phlox_models.load(tmp_path)

    images = channels_first(IMAGES).requires_grad_()
    expected = network(images, **{key: torch.from_numpy(value) for key, value in inputs.items()}).sample
    np.testing.assert_allclose(outputs(model, params, inputs), channels_last(expected), rtol=1e-4, atol=2e-5)

    (expected**2).mean().backward()
    gradients = phlox.grad(lambda params: (outputs(model, params, inputs) ** 2).mean())(params)
    first = gradients["encoder"]["first"] if "encoder" in gradients else gradients["first"]
    theirs = (network.encoder if hasattr(network, "encoder") else network).conv_in
    np.testing.assert_allclose(first["bias"], theirs.bias.grad.numpy(), rtol=1e-3, atol=1e-5)


def test_latents_equal_those_of_diffusers(tmp_path):
    network, _ = module("autoencoder")
    network.save_pretrained(tmp_path)
    model, params = phlox_models.load(tmp_path)
    expected = network.encode(channels_first(IMAGES)).latent_dist
    mean, log_variance = model.apply(params, IMAGES, method="encode")
    np.testing.assert_allclose(mean, channels_last(expected.mean), rtol=1e-4, atol=2e-5)
    np.testing.assert_allclose(log_variance, channels_last(expected.logvar), rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("name", MODELS)
def test_diffusers_reads_what_is_saved(tmp_path, name):
    network, _ = module(name)
    network.save_pretrained(tmp_path / "theirs")
    phlox_models.save(tmp_path / "ours", *phlox_models.load(tmp_path / "theirs"))
    again = type(network).from_pretrained(tmp_path / "ours", low_cpu_mem_usage=False)
    assert again.state_dict().keys() == network.state_dict().keys()
    for key, value in network.state_dict().items():
        np.testing.assert_array_equal(again.state_dict()[key], value, err_msg=key)


@pytest.mark.parametrize(
    ("name", "entries", "words"),
    [
        ("unet", {"resnet_time_scale_shift": "scale_shift"}, "'resnet_time_scale_shift' is 'scale_shift'"),
        ("unet", {"down_block_types": ["DownBlock2D", "SkipDownBlock2D"]}, "'SkipDownBlock2D'"),
        ("unet", {"norm_num_groups": "4"}, "a model of type 'UNet2DModel' needs a positive integer"),
        ("autoencoder", {"act_fn": "relu"}, "'act_fn' is 'relu'"),
    ],
)
def test_what_is_not_understood_is_refused(tmp_path, name, entries, words):
    module(name)[0].save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **entries}))
    with pytest.raises(ArgumentError, match=words):
        phlox_models.load(tmp_path)
