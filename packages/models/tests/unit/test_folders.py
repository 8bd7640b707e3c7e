"""Folders of weights: what is read, what is refused, and how much memory it takes."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
import phlox_models
import phlox_nn as nn
from phlox.errors import ArgumentError, TreeError
from phlox.sharding import NamedSharding, PartitionSpec as P

GPT2 = {"model_type": "gpt2", "vocab_size": 20, "n_positions": 16, "n_embd": 8, "n_layer": 1, "n_head": 2}


def saved(folder, **entries):
    model = phlox_models.build({**GPT2, **entries})
    params = model.init(phlox.random.key(0))
    phlox_models.save(folder, model, params)
    return model, params


def test_a_saved_folder_is_loaded(tmp_path):
    model, params = saved(tmp_path)
    again, loaded = phlox_models.load(tmp_path)
    assert again == model
    assert hash(again) == hash(model)
    phlox.tree.map(np.testing.assert_array_equal, loaded, params)
    assert sorted(os.listdir(tmp_path)) == ["config.json", "model.safetensors"]
    assert json.loads((tmp_path / "config.json").read_text()) == GPT2


def test_dtypes_and_shardings_are_those_asked_for(tmp_path):
    model, params = saved(tmp_path)
    device = phlox.devices()[0]
    mesh = phlox.make_mesh((1,), ("model",))
    rules = {"*.weight": P("model")}
    shardings = nn.shardings(phlox.eval_shape(model.init, phlox.random.key(0)), rules, mesh)
    for sharding in (None, device, NamedSharding(mesh, P()), shardings):
        _, loaded = phlox_models.load(tmp_path, dtype="bfloat16", sharding=sharding)
        table = loaded["tokens"]["weight"]
        assert table.dtype == jnp.bfloat16
        np.testing.assert_array_equal(table, params["tokens"]["weight"].astype(jnp.bfloat16))
    assert table.sharding.is_equivalent_to(shardings["tokens"]["weight"], 2)
    with pytest.raises(TreeError, match="no array 'others'"):
        phlox_models.load(tmp_path, sharding={"others": device})


def test_all_tensors_that_do_not_fit_are_in_one_error(tmp_path):
    saved(tmp_path)
    for entries, words in (
        ({"n_embd": 12}, ["misshapen: transformer.wte.weight has (20, 8), but the model needs (20, 12)"]),
        ({"n_layer": 2}, ["missing:   blocks.1.norm1.weight (8,)", "missing:   blocks.1.mlp.layers.1.bias (8,)"]),
        ({"n_inner": 5, "vocab_size": 30}, ["misshapen: transformer.h.0.mlp.c_fc.weight", "(30, 8)"]),
        ({"n_layer": 1, "tie_word_embeddings": False}, ["missing:   unembed.weight (20, 8)"]),
    ):
        (tmp_path / "config.json").write_text(json.dumps({**GPT2, **entries}))
        with pytest.raises(TreeError) as error:
            phlox_models.load(tmp_path)
        assert all(text in str(error.value) for text in words), str(error.value)
        assert not error.value.report.fits
    phlox_models.save(tmp_path, *saved(tmp_path / "other", n_layer=2))
    (tmp_path / "config.json").write_text(json.dumps(GPT2))
    with pytest.raises(TreeError, match=r"left over: blocks\.1\.|left over: transformer\.h\.1\."):
        phlox_models.load(tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("[1]", "no JSON object"),
        ("{}", "does not say which architecture"),
        ('{"model_type": "other"}', "no architecture for \"model_type\": 'other'"),
        ('{"model_type": 3}', "'model_type' is 3"),
        (json.dumps({**GPT2, "n_embd": None}), "'n_embd' is missing"),
        (json.dumps({**GPT2, "n_layer": "12"}), "'n_layer' is '12'"),
        (json.dumps({**GPT2, "n_head": 0}), "'n_head' is 0"),
        (json.dumps({**GPT2, "activation_function": "step"}), "'activation_function' is 'step'"),
        (json.dumps({**GPT2, "architectures": ["GPT2ForQuestionAnswering"]}), "no GPT2ForQuestionAnswering"),
        (json.dumps({**GPT2, "model_type": "llama"}), "'hidden_size' is missing"),
    ],
)
def test_wrong_configurations_are_refused(tmp_path, text, words):
    saved(tmp_path)
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ArgumentError, match=words) as error:
        phlox_models.load(tmp_path)
    assert "instead" in str(error.value) or text == "[1]"


def test_other_names_are_refused(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for name, words in (
        (tmp_path / "none", "there is no folder"),
        (tmp_path, "has no config.json"),
        ("../none", "there is no folder"),
        ("none\0", "there is no folder"),
    ):
        with pytest.raises(ArgumentError, match=words):
            phlox_models.load(name)
    (tmp_path / "config.json").write_text(json.dumps(GPT2))
    with pytest.raises(ArgumentError, match="is a file"):
        phlox_models.load(tmp_path / "config.json")
    with pytest.raises(ArgumentError, match="there is no file"):
        phlox_models.load(tmp_path)


@pytest.mark.parametrize("part", ["/etc/model.safetensors", "../model.safetensors", "C:\\model.safetensors"])
def test_an_index_stays_inside_of_the_folder(tmp_path, part):
    folder = tmp_path / "folder"
    saved(folder)
    os.rename(folder / "model.safetensors", tmp_path / "model.safetensors")
    index = {"weight_map": {"transformer.wte.weight": part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ArgumentError, match="not below its folder"):
        phlox_models.load(folder)


def test_only_models_are_saved(tmp_path):
    layer = nn.Linear(2, 3)
    with pytest.raises(ArgumentError, match="is no model of phlox_models"):
        phlox_models.save(tmp_path, layer, layer.init(phlox.random.key(0)))


def test_the_import_is_light():
    program = "import sys, phlox_models; print(sorted(m for m in sys.modules if 'phlox_models' in m or m == 'torch'))"
    output = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert "phlox_models._config" in output
    assert not any(name in output for name in ("llama", "bert", "gpt2", "torch", "tokenizers"))


MEMORY = """
import resource, sys
import phlox, phlox.numpy as jnp, phlox_models

def resident(name):
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) * 1024

(jnp.ones(3) + 1).block_until_ready()
phlox_models.load(sys.argv[1])  # what loading needs once, such as programs
open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew
before = resident("VmRSS")
model, params = phlox_models.load(sys.argv[2], dtype=sys.argv[3] or None)
print(resident("VmHWM") - before, sum(x.nbytes for x in phlox.tree.leaves(params)))
"""


@pytest.mark.parametrize("dtype", ["", "bfloat16"])
def test_loading_takes_little_more_memory_than_the_model(tmp_path, dtype):
    saved(tmp_path / "small")
    saved(tmp_path / "large", n_embd=512, n_layer=8, n_head=8, vocab_size=8000)  # 117 MB
    arguments = [str(tmp_path / "small"), str(tmp_path / "large"), dtype]
    output = subprocess.run([sys.executable, "-c", MEMORY, *arguments], check=True, capture_output=True, text=True)
    peak, size = map(int, output.stdout.split())
    assert size > 5e7
    assert peak <= 1.2 * size, peak / size
