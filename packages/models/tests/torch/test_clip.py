"""CLIP loads what transformers writes, and gives its embeddings, logits and gradients."""

import numpy as np
import pytest
import torch
import transformers
from safetensors.numpy import load_file

import phlox
import phlox.numpy as jnp
import phlox_models
from phlox.errors import ArgumentError, ShapeError

RNG = np.random.default_rng(0)
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
IMAGES = RNG.normal(size=(3, 8, 8, 3)).astype(np.float32)
TOKENS = RNG.integers(3, 49, (2, 7))
TOKENS[0, 4] = TOKENS[1, 6] = 49  # the end of the texts, after which the first one is padded
MASK = np.arange(7) < np.array([[5], [7]])


def modules(folder, end):
    text = {"vocab_size": 50, "max_position_embeddings": 9, "eos_token_id": end, "bos_token_id": 1, **SIZES}
    vision = {"image_size": 8, "patch_size": 4, **SIZES, "hidden_size": 24}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=12)
    torch.manual_seed(0)
    module = transformers.CLIPModel(config).eval()
    for value in module.parameters():
        value.data = torch.randn_like(value) * 0.2
    module.save_pretrained(folder)
    return module, *phlox_models.load(folder)


def their_output(module, mask):
    images = torch.from_numpy(np.ascontiguousarray(IMAGES.transpose(0, 3, 1, 2)))
    mask = None if mask is None else torch.from_numpy(mask.astype(np.int64))
    return module(input_ids=torch.from_numpy(TOKENS), pixel_values=images, attention_mask=mask)


@pytest.mark.parametrize("end", [49, 2])  # 2 is the number in CLIP's first configurations, which is wrong
@pytest.mark.parametrize("mask", [None, MASK], ids=["whole", "padded"])
def test_embeddings_and_logits_are_those_of_transformers(tmp_path, end, mask):
    module, model, params = modules(tmp_path, end)
    with torch.no_grad():
        theirs = their_output(module, mask)
    ours = phlox.jit(model.apply)(params, TOKENS, IMAGES, mask)
    pairs = [
        (ours.logits_per_image, theirs.logits_per_image),
        (ours.logits_per_text, theirs.logits_per_text),
        (ours.text_embeddings, theirs.text_embeds),
        (ours.image_embeddings, theirs.image_embeds),
        (model.apply(params, TOKENS, mask, method="text_embeddings"), theirs.text_embeds),
        (model.apply(params, IMAGES, method="image_embeddings"), theirs.image_embeds),
    ]
    for a, b in pairs:
        np.testing.assert_allclose(a, b, atol=1e-5, rtol=1e-5)


def test_gradients_are_those_of_transformers(tmp_path):
    module, model, params = modules(tmp_path, 49)

    def loss(params):
        return jnp.square(model.apply(params, TOKENS, IMAGES).logits_per_image).sum()

    their_output(module, None).logits_per_image.square().sum().backward()
    for value in module.parameters():
        value.data = torch.zeros_like(value) if value.grad is None else value.grad
    module.save_pretrained(tmp_path / "theirs")
    phlox_models.save(tmp_path / "ours", model, phlox.jit(phlox.grad(loss))(params))
    ours, theirs = (load_file(tmp_path / folder / "model.safetensors") for folder in ("ours", "theirs"))
    assert ours.keys() == theirs.keys()
    for name, x in theirs.items():
        np.testing.assert_allclose(ours[name], x, atol=1e-5 * (1 + abs(x).max()), rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("kind", ["Text", "Vision"])
def test_encoders_by_themselves_load(tmp_path, kind):
    sizes = {"Text": {"vocab_size": 50, "eos_token_id": 49}, "Vision": {"image_size": 8, "patch_size": 4}}[kind]
    torch.manual_seed(0)
    config = getattr(transformers, f"CLIP{kind}Config")(**SIZES, **sizes)
    module = getattr(transformers, f"CLIP{kind}Model")(config).eval()
    module.save_pretrained(tmp_path)
    model, params = phlox_models.load(tmp_path)
    ours = TOKENS if kind == "Text" else IMAGES
    with torch.no_grad():
        theirs = module(
            torch.from_numpy(TOKENS if kind == "Text" else np.ascontiguousarray(np.moveaxis(IMAGES, -1, 1)))
        )
    np.testing.assert_allclose(model.apply(params, ours), theirs.last_hidden_state, atol=1e-5, rtol=1e-5)
    pooled = model.apply(params, ours, method="pooled")
    np.testing.assert_allclose(pooled, theirs.pooler_output, atol=1e-5, rtol=1e-5)


def test_wrong_inputs_are_told(tmp_path):
    _, model, params = modules(tmp_path, 49)
    with pytest.raises(ArgumentError, match=r"tokens \(texts, length\) and images"):
        model.apply(params, IMAGES, TOKENS)
    with pytest.raises(ShapeError, match="images with 4 patches, but these images have 9"):
        model.apply(params, np.zeros((1, 12, 12, 3), np.float32), method="image_embeddings")
    with pytest.raises(ShapeError, match="the last axis of the inputs must have length 3"):
        model.apply(params, np.zeros((1, 3, 8, 8), np.float32), method="image_embeddings")
