"""Greedy and beam search give the tokens of transformers."""

import functools
import tempfile

import numpy as np
import pytest
import torch

import hugging_face as hf
import phlox_models

# Prompts of different lengths, padded at the left as transformers needs it.
LENGTHS = np.array([9, 5, 7])
PROMPTS = np.random.default_rng(2).integers(3, hf.VOCABULARY, (3, 9))
PROMPTS_MASK = np.arange(9) >= 9 - LENGTHS[:, None]
PROMPTS[~PROMPTS_MASK] = 0
ENDS = [2, 7, 9, 11]


@functools.cache
def pair(name):
    module = hf.module(name, scale=0.5)
    with tempfile.TemporaryDirectory() as folder:
        module.save_pretrained(folder)
        return module, *phlox_models.load(folder)


def both(name, theirs, **options):
    module, model, params = pair(name)
    tokens, mask = torch.from_numpy(PROMPTS), torch.from_numpy(PROMPTS_MASK.astype(np.int64))
    with torch.no_grad():
        expected = module.generate(tokens, attention_mask=mask, max_new_tokens=18, do_sample=False, **theirs)
    tokens = phlox_models.generate(model, params, PROMPTS, mask=PROMPTS_MASK, max_new_tokens=18, **options)
    return np.asarray(tokens), expected.numpy()


@pytest.mark.parametrize("name", ["gpt2", "gptj", "llama3", "mistral", "qwen3", "gemma", "t5-gated"])
def test_greedy_tokens_equal_those_of_transformers(name):
    np.testing.assert_array_equal(*both(name, {}))
    np.testing.assert_array_equal(*both(name, {"eos_token_id": ENDS}, eos=ENDS))


@pytest.mark.parametrize("name", ["gpt2", "mistral", "t5-gated"])
@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"num_beams": 3}, {"beams": 3}),
        (
            {"num_beams": 3, "eos_token_id": ENDS, "length_penalty": 0.3},
            {"beams": 3, "eos": ENDS, "length_penalty": 0.3},
        ),
        (
            {"num_beams": 2, "eos_token_id": ENDS, "early_stopping": True},
            {"beams": 2, "eos": ENDS, "early_stopping": True},
        ),
    ],
)
def test_beams_equal_those_of_transformers(name, theirs, ours):
    np.testing.assert_array_equal(*both(name, theirs, **ours))


@pytest.mark.parametrize("beams", [1, 2])
def test_the_repetition_penalty_equals_that_of_transformers(beams):
    theirs = {"repetition_penalty": 1.3, "num_beams": beams}
    np.testing.assert_array_equal(*both("gpt2", theirs, repetition_penalty=1.3, beams=beams))
