"""Whole models in phlox_nn read checkpoints of Hugging Face and give its scores. All are small and of random weights."""

import numpy as np
import pytest
import torch
import transformers

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
from nn_hugging_face import BERT, BERT_NAMES, GPT2, GPT2_NAMES, VIT_NAMES, ViT

RNG = np.random.default_rng(0)
TOKENS = RNG.integers(0, 50, (2, 7))
KINDS = RNG.integers(0, 2, (2, 7))
COUNTS = np.arange(7) < np.array([[7], [4]])
IMAGES = RNG.normal(size=(2, 8, 8, 3)).astype(np.float32)
SIZES = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 24, "num_labels": 5}


def gpt2():
    config = transformers.GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=3, n_head=2)
    given = {"input_ids": torch.from_numpy(TOKENS)}
    return transformers.GPT2LMHeadModel(config), given, GPT2.of(config), GPT2_NAMES, (TOKENS,)


def bert():
    config = transformers.BertConfig(vocab_size=50, max_position_embeddings=16, **SIZES)
    given = {"input_ids": TOKENS, "token_type_ids": KINDS, "attention_mask": COUNTS.astype(np.int64)}
    given = {name: torch.from_numpy(x) for name, x in given.items()}
    module = transformers.BertForSequenceClassification(config)
    return module, given, BERT.of(config), BERT_NAMES, (TOKENS, KINDS, COUNTS)


def vit():
    config = transformers.ViTConfig(image_size=8, patch_size=4, **SIZES)
    given = {"pixel_values": torch.from_numpy(IMAGES.transpose(0, 3, 1, 2))}
    return transformers.ViTForImageClassification(config), given, ViT.of(config), VIT_NAMES, (IMAGES,)


@pytest.mark.parametrize("make", [gpt2, bert, vit], ids=lambda make: make.__name__)
def test_checkpoints_of_hugging_face_give_its_scores(tmp_path, make):
    torch.manual_seed(0)
    module, given, model, names, inputs = make()
    for value in module.parameters():  # first values are small, and biases zero
        value.data = torch.randn_like(value) * 0.3
    with torch.no_grad():
        theirs = module.eval()(**given).logits.numpy()
    module.save_pretrained(tmp_path / "whole")
    module.save_pretrained(tmp_path / "parts", max_shard_size="10KB")
    assert len(list((tmp_path / "parts").glob("*.safetensors"))) > 1
    for folder in ("whole", "parts"):
        assert nn.compare_weights(model, tmp_path / folder, rename=names).fits
        params, state = nn.load_safetensors(model, tmp_path / folder, rename=names)
        ours = phlox.jit(model.apply)(params, *map(jnp.asarray, inputs))
        np.testing.assert_allclose(ours, theirs, atol=1e-4, rtol=1e-4)
        assert state == {}
