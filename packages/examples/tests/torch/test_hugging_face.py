"""The folder that ./train chat writes is read by Hugging Face's libraries, and gpt_j.py is the GPT-J of transformers."""

import numpy as np
import pytest
import tokenizers
import torch
import transformers

import phlox
import phlox_models
from example_runs import run
from phlox_examples import chat, gpt_j


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("chat")
    run("chat", "--quick", "--out", out)
    return out / "chat-quick-model"


def test_transformers_reads_the_model(folder):
    module = transformers.AutoModelForCausalLM.from_pretrained(folder)
    model, params = phlox_models.load(folder)
    tokens = np.array([chat.Tokenizer.read(folder).encode("<user> my name is Ada . <bot> hello Ada ! <end>")])
    with torch.no_grad():
        expected = module(torch.from_numpy(tokens)).logits.numpy()
        written = module.generate(torch.from_numpy(tokens), max_new_tokens=6, do_sample=False).numpy()
    np.testing.assert_allclose(model.apply(params, tokens), expected, atol=1e-5)
    ours = np.asarray(phlox_models.generate(model, params, tokens, max_new_tokens=6))
    np.testing.assert_array_equal(ours[:, : written.shape[1]], written)


def test_tokenizers_reads_the_vocabulary(folder):
    text = "<user> what is the capital of Nepal ? <bot> the capital of Nepal is Kathmandu . <end>"
    theirs, ours = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")), chat.Tokenizer.read(folder)
    numbers = theirs.encode(text).ids
    assert ours.encode(text) == numbers
    assert (
        theirs.decode(numbers)
        == ours.decode(numbers)
        == "what is the capital of Nepal ? the capital of Nepal is Kathmandu ."
    )


def test_gpt_j_is_that_of_transformers():
    torch.manual_seed(0)
    config = transformers.GPTJConfig(
        vocab_size=12, n_positions=32, n_embd=32, n_layer=2, n_head=2, rotary_dim=8, activation_function="gelu_new"
    )
    module = transformers.GPTJForCausalLM(config).eval()
    weights = {name: tensor.detach().numpy() for name, tensor in module.state_dict().items()}

    def linear(name, bias=True):
        return {"weight": weights[f"{name}.weight"].T} | ({"bias": weights[f"{name}.bias"]} if bias else {})

    def norm(name):
        return {"weight": weights[f"{name}.weight"], "bias": weights[f"{name}.bias"]}

    model = gpt_j.network(12, 32, 2, heads=2, rotary=8)
    names = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "out": "out_proj"}
    params = {
        "tokens": {"weight": weights["transformer.wte.weight"]},
        "norm": norm("transformer.ln_f"),
        "head": linear("lm_head"),
        "blocks": {
            str(n): {
                "norm": norm(f"transformer.h.{n}.ln_1"),
                "attention": {
                    ours: linear(f"transformer.h.{n}.attn.{theirs}", False) for ours, theirs in names.items()
                },
                "mlp": {
                    "layers": {str(i): linear(f"transformer.h.{n}.mlp.fc_{end}") for i, end in enumerate(("in", "out"))}
                },
            }
            for n in range(2)
        },
    }
    empty = model.init(phlox.random.key(0))
    assert phlox.tree.structure(empty) == phlox.tree.structure(params)
    tokens = np.random.default_rng(0).integers(0, 12, (3, 10))
    with torch.no_grad():
        expected = module(torch.from_numpy(tokens)).logits.numpy()
    np.testing.assert_allclose(model.apply(params, tokens.astype("int32")), expected, atol=1e-5)
