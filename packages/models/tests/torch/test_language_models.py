"""Language models give the outputs and gradients of transformers for files that it wrote, and write such files."""

import json
import os

import numpy as np
import pytest
import safetensors.numpy
import torch
import transformers

import hugging_face as hf
import phlox
import phlox.numpy as jnp
import phlox_models

TOLERANCE = {"atol": 1e-5, "rtol": 1e-5}


def arguments(name):
    """Arguments of the model here, of that of transformers, and which outputs count."""
    if name in hf.ENCODER_DECODERS:
        theirs = {"input_ids": hf.TOKENS, "attention_mask": hf.MASK, "decoder_input_ids": hf.OUTPUTS}
        theirs["decoder_attention_mask"] = hf.OUTPUTS_MASK
        return (hf.TOKENS, hf.OUTPUTS, hf.MASK, hf.OUTPUTS_MASK), theirs, hf.OUTPUTS_MASK
    theirs = {"input_ids": hf.TOKENS, "attention_mask": hf.MASK}
    return ((hf.TOKENS, None, hf.MASK) if name == "t5-encoder" else (hf.TOKENS, hf.MASK)), theirs, hf.MASK


@pytest.mark.parametrize("name", [*hf.DECODERS, *hf.ENCODERS, *hf.ENCODER_DECODERS])
def test_outputs_and_gradients_equal_those_of_transformers(tmp_path, name):
    module = hf.module(name)
    module.save_pretrained(tmp_path)
    model, params = phlox_models.load(tmp_path)
    ours, theirs, counts = arguments(name)

    expected = hf.outputs(module, **theirs)
    counts = counts if expected.ndim == 3 else np.ones(expected.shape[:1], bool)
    weights = np.random.default_rng(1).normal(size=expected.shape).astype(np.float32) * counts.reshape(
        counts.shape + (1,) * (expected.ndim - counts.ndim)
    )
    (expected * torch.from_numpy(weights)).sum().backward()

    def value(params):
        y = model.apply(params, *ours)
        return jnp.sum(y * weights), y

    (_, y), gradients = phlox.jit(phlox.value_and_grad(value, has_aux=True))(params)
    np.testing.assert_allclose(np.asarray(y)[counts], expected.detach().numpy()[counts], **TOLERANCE)

    # The gradients are written with the names and layouts of the file, which are those of the module.
    phlox_models.save(tmp_path / "gradients", model, gradients)
    by_name = safetensors.numpy.load_file(tmp_path / "gradients" / "model.safetensors")
    expected_by_name = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
    assert set(by_name) == set(safetensors.numpy.load_file(tmp_path / "model.safetensors"))
    assert set(expected_by_name) <= set(by_name) | {"lm_head.weight", "cls.predictions.decoder.bias"}
    for key in set(by_name) & set(expected_by_name):
        gradient = expected_by_name[key].numpy()
        # Sums over all texts: errors are relative to the largest.
        np.testing.assert_allclose(by_name[key], gradient, rtol=1e-5, atol=1e-5 * max(1, np.abs(gradient).max()))


@pytest.mark.parametrize("name", ["gpt2", "gpt2-hidden", "phi3", "bert-masked", "bert", "t5-gated"])
def test_a_saved_folder_is_the_same_for_transformers(tmp_path, name):
    module = hf.module(name)
    module.save_pretrained(tmp_path / "theirs")
    phlox_models.save(tmp_path / "ours", *phlox_models.load(tmp_path / "theirs"))
    again, info = type(module).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(info.values())
    expected = module.state_dict()
    assert set(again.state_dict()) == set(expected)
    assert all(torch.equal(value, expected[key]) for key, value in again.state_dict().items())


@pytest.mark.parametrize("name", ["gpt2", "llama-tied", "bert-masked", "t5"])
def test_files_of_torch_and_of_several_parts_are_read(tmp_path, name):
    module = hf.module(name)
    module.save_pretrained(tmp_path / "whole")
    module.save_pretrained(tmp_path / "parts", max_shard_size="10KB")
    assert (tmp_path / "parts" / "model.safetensors.index.json").exists()
    _, expected = phlox_models.load(tmp_path / "whole")
    torch.save(module.state_dict(), tmp_path / "whole" / "pytorch_model.bin")  # with tied tensors twice
    os.remove(tmp_path / "whole" / "model.safetensors")
    for folder in ("whole", "parts"):
        _, params = phlox_models.load(tmp_path / folder)
        phlox.tree.map(np.testing.assert_array_equal, params, expected)


def test_files_without_the_prefix_of_the_model_are_read(tmp_path):
    # GPT-2's own file on the hub is so: its configuration names a language model, its tensors have no prefix.
    module = hf.module("gpt2")
    module.save_pretrained(tmp_path)
    _, expected = phlox_models.load(tmp_path)
    tensors = safetensors.numpy.load_file(tmp_path / "model.safetensors")
    bare = {name.removeprefix("transformer."): x for name, x in tensors.items()}
    bare["h.0.attn.bias"] = np.ones((1, 1, 64, 64), np.float32)
    safetensors.numpy.save_file(bare, tmp_path / "model.safetensors")
    phlox.tree.map(np.testing.assert_array_equal, phlox_models.load(tmp_path)[1], expected)


def test_a_head_of_its_own_is_not_lost_where_the_configuration_ties_it(tmp_path):
    module = hf.module("gpt2-untied")
    module.save_pretrained(tmp_path)
    model, params = phlox_models.load(tmp_path)
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "tie_word_embeddings": True}))
    other, others = phlox_models.load(tmp_path)
    expected = model.apply(params, hf.TOKENS)
    np.testing.assert_array_equal(other.apply(others, hf.TOKENS), expected)


def test_a_step_of_fine_tuning_gives_the_same_loss(tmp_path):
    module = hf.module("llama", scale=0.1)
    module.save_pretrained(tmp_path)
    model, params = phlox_models.load(tmp_path)
    tokens = torch.from_numpy(hf.TOKENS[:1])  # without padding, whose vector torch does not train
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    expected = []
    for _ in range(3):
        loss = module(input_ids=tokens, labels=tokens).loss
        expected.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    @phlox.jit
    def step(params):
        def loss(params):
            scores = phlox.nn.log_softmax(model.apply(params, hf.TOKENS[:1, :-1]))
            return -jnp.take_along_axis(scores, hf.TOKENS[:1, 1:, None], axis=-1).mean()

        value, gradients = phlox.value_and_grad(loss)(params)
        return value, phlox.tree.map(lambda p, g: p - 0.1 * g, params, gradients)

    losses = []
    for _ in range(3):
        loss, params = step(params)
        losses.append(float(loss))
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert losses[2] < losses[0]


def test_config_files_of_older_versions_are_read(tmp_path):
    module = hf.module("llama3")
    module.save_pretrained(tmp_path)
    model, params = phlox_models.load(tmp_path)
    file = tmp_path / "config.json"
    config = json.loads(file.read_text())
    scaling = config.pop("rope_parameters")
    theta = scaling.pop("rope_theta")
    file.write_text(json.dumps({**config, "rope_theta": theta, "rope_scaling": scaling}))
    older, same = phlox_models.load(tmp_path)
    np.testing.assert_array_equal(older.apply(same, hf.TOKENS), model.apply(params, hf.TOKENS))


def test_training_drops(tmp_path):
    hf.module("gpt2").save_pretrained(tmp_path)
    model, params = phlox_models.load(tmp_path)
    first, second = (model.apply(params, hf.TOKENS, key=phlox.random.key(seed), train=True) for seed in (0, 1))
    assert not np.array_equal(first, second)
    assert transformers.GPT2Config().resid_pdrop == 0.1
