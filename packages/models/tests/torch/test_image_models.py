"""Models of images and sound load what transformers writes, compute the same, train the same, and write it back."""

import numpy as np
import pytest
import torch
import transformers
from safetensors.numpy import load_file

import phlox
import phlox.numpy as jnp
import phlox_models

RNG = np.random.default_rng(0)
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
SMALL = RNG.normal(size=(3, 8, 8, 3)).astype(np.float32)
LARGE = RNG.normal(size=(3, 32, 32, 3)).astype(np.float32)
FEATURES = RNG.normal(size=(2, 20, 8)).astype(np.float32)
TOKENS = RNG.integers(3, 50, (2, 5))
SPEECH = dict.fromkeys(("encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads"), 2)
SPEECH |= {"vocab_size": 50, "num_mel_bins": 8, "d_model": 16, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24}
SPEECH |= {"max_source_positions": 10, "max_target_positions": 12, "decoder_start_token_id": 3}
SPEECH |= {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
READING = {"num_latents": 4, "d_latents": 16, "d_model": 8, "num_blocks": 2, "num_self_attends_per_block": 2}
READING |= {"num_self_attention_heads": 2, "num_cross_attention_heads": 2, "vocab_size": 50, "image_size": 8}
READING |= {"max_position_embeddings": 5, "cross_attention_widening_factor": 2, "num_labels": 5}


def channels_first(x):
    return torch.from_numpy(np.ascontiguousarray(np.moveaxis(x, -1, 1)))


def images(x, **options):
    return lambda module: module(pixel_values=channels_first(x), **options)


def sound(module):
    tokens = torch.from_numpy(TOKENS)
    mask = torch.from_numpy(MASK)
    return module(input_features=channels_first(FEATURES), decoder_input_ids=tokens, decoder_attention_mask=mask)


def inputs_of(x, **options):
    return lambda module: module(inputs=x if isinstance(x, torch.Tensor) else torch.from_numpy(x), **options)


T = transformers
VIT = T.ViTConfig(image_size=8, patch_size=4, num_labels=5, **SIZES)
DEIT = T.DeiTConfig(image_size=8, patch_size=4, num_labels=5, **SIZES)
CONV = {"hidden_sizes": [8, 16, 24], "depths": [2, 1, 1], "num_stages": 3, "num_labels": 5}
BASIC = T.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[2, 1], layer_type="basic", num_labels=5)
BOTTLENECK = T.ResNetConfig(embedding_size=8, hidden_sizes=[16, 32], depths=[1, 2], num_labels=5)
EARLY = T.ResNetConfig(
    embedding_size=8,
    hidden_sizes=[16, 32],
    depths=[1, 2],
    downsample_in_bottleneck=True,
    downsample_in_first_stage=True,
)
CONVNEXT, CONVNEXT2 = T.ConvNextConfig(**CONV), T.ConvNextV2Config(**CONV)
READER, SIZED = T.PerceiverConfig(**READING), T.PerceiverConfig(**READING, qk_channels=8, v_channels=16)
VECTORS = RNG.normal(size=(2, 7, 8)).astype(np.float32)
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
WHISPER = T.WhisperConfig(**SPEECH)
#: name -> (module of transformers, its call, the name of its result, inputs of the model of phlox)
CASES = {
    "vit": (T.ViTForImageClassification, VIT, images(SMALL), "logits", (SMALL,)),
    "vit without biases": (
        T.ViTForImageClassification,
        T.ViTConfig(image_size=[8, 8], patch_size=[2, 4], qkv_bias=False, hidden_act="relu", **SIZES),
        images(SMALL),
        "logits",
        (SMALL,),
    ),
    "vit encoder": (T.ViTModel, VIT, images(SMALL), "last_hidden_state", (SMALL,)),
    "deit": (T.DeiTForImageClassification, DEIT, images(SMALL), "logits", (SMALL,)),
    "deit with teacher": (T.DeiTForImageClassificationWithTeacher, DEIT, images(SMALL), "logits", (SMALL,)),
    "deit encoder": (T.DeiTModel, DEIT, images(SMALL), "last_hidden_state", (SMALL,)),
    "resnet basic": (T.ResNetForImageClassification, BASIC, images(LARGE), "logits", (LARGE,)),
    "resnet bottleneck": (T.ResNetForImageClassification, BOTTLENECK, images(LARGE), "logits", (LARGE,)),
    "resnet early strides": (T.ResNetModel, EARLY, images(LARGE), "last_hidden_state", (LARGE,)),
    "convnext": (T.ConvNextForImageClassification, CONVNEXT, images(LARGE), "logits", (LARGE,)),
    "convnext encoder": (T.ConvNextModel, CONVNEXT, images(LARGE), "last_hidden_state", (LARGE,)),
    "convnextv2": (T.ConvNextV2ForImageClassification, CONVNEXT2, images(LARGE), "logits", (LARGE,)),
    "perceiver": (T.PerceiverModel, READER, inputs_of(VECTORS), "last_hidden_state", (VECTORS,)),
    "perceiver for tokens": (
        T.PerceiverForMaskedLM,
        READER,
        inputs_of(TOKENS, attention_mask=torch.from_numpy(MASK)),
        "logits",
        (TOKENS, MASK),
    ),
    "perceiver for texts": (T.PerceiverForSequenceClassification, SIZED, inputs_of(TOKENS), "logits", (TOKENS,)),
    "perceiver learned": (
        T.PerceiverForImageClassificationLearned,
        READER,
        inputs_of(channels_first(SMALL)),
        "logits",
        (SMALL,),
    ),
    "perceiver fourier": (
        T.PerceiverForImageClassificationFourier,
        SIZED,
        inputs_of(channels_first(SMALL)),
        "logits",
        (SMALL,),
    ),
    "perceiver convolution": (
        T.PerceiverForImageClassificationConvProcessing,
        READER,
        inputs_of(channels_first(LARGE)),
        "logits",
        (LARGE,),
    ),
    "whisper": (T.WhisperForConditionalGeneration, WHISPER, sound, "logits", (FEATURES, TOKENS, MASK)),
    "whisper model": (T.WhisperModel, WHISPER, sound, "last_hidden_state", (FEATURES, TOKENS, MASK)),
}


def random_module(kind, config):
    """A module of transformers with random weights and batch statistics, which first values would not test."""
    torch.manual_seed(0)
    module = kind(config).eval()
    for value in module.parameters():
        value.data = torch.randn_like(value) * 0.2
    for name, value in module.named_buffers():
        if name.endswith(("running_mean", "running_var")):
            value.data = torch.rand_like(value) + 0.5
    return module


def channels_last(x):
    return np.moveaxis(x, 1, -1) if x.ndim == 4 else x


@pytest.mark.parametrize("name", CASES)
def test_outputs_and_gradients_are_those_of_transformers(tmp_path, name):
    kind, config, call, result, inputs = CASES[name]
    module = random_module(kind, config)
    module.save_pretrained(tmp_path)
    model, params = phlox_models.load(tmp_path)
    theirs = getattr(call(module), result)
    ours = phlox.jit(model.apply)(params, *inputs)
    np.testing.assert_allclose(ours, channels_last(theirs.detach().numpy()), atol=1e-5, rtol=1e-5)

    def loss(params):
        return jnp.tanh(model.apply(params, *inputs)).sum()

    torch.tanh(theirs).sum().backward()
    # Saving both gives the gradients the names and layouts of the file.
    phlox_models.save(tmp_path / "ours", model, phlox.jit(phlox.grad(loss))(params))
    for value in module.parameters():
        value.data = torch.zeros_like(value) if value.grad is None else value.grad
    module.save_pretrained(tmp_path / "theirs")
    gradients, expected = (load_file(tmp_path / folder / "model.safetensors") for folder in ("ours", "theirs"))
    for name, x in expected.items():
        if name.split(".")[-1] in ("running_mean", "running_var", "num_batches_tracked"):
            assert not np.any(gradients[name]), name
        else:
            np.testing.assert_allclose(gradients[name], x, atol=1e-5 * (1 + abs(x).max()), rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", CASES)
def test_transformers_read_what_is_saved(tmp_path, name):
    kind, config, call, result, _ = CASES[name]
    module = random_module(kind, config)
    module.save_pretrained(tmp_path / "theirs")
    model, params = phlox_models.load(tmp_path / "theirs")
    phlox_models.save(tmp_path / "ours", model, params)
    again, report = kind.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    with torch.no_grad():
        torch.testing.assert_close(getattr(call(again.eval()), result), getattr(call(module), result))


@pytest.mark.parametrize("name", ["vit", "deit", "resnet basic", "convnext"])
def test_hidden_states_are_those_of_transformers(tmp_path, name):
    kind, config, _, _, (x,) = CASES[name]
    module = random_module(kind, config)
    module.save_pretrained(tmp_path)
    model, params = phlox_models.load(tmp_path)
    with torch.no_grad():
        theirs = module(pixel_values=channels_first(x), output_hidden_states=True).hidden_states
    ours = phlox.jit(lambda params, x: model.apply(params, x, method="hidden_states"))(params, x)
    assert len(theirs) >= len(ours) - 1  # ConvNeXt of transformers lacks that of the stem
    for a, b in zip(ours[::-1], theirs[::-1], strict=False):
        np.testing.assert_allclose(a, channels_last(b.numpy()), atol=1e-5, rtol=1e-5)
