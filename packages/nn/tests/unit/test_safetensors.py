"""Files of weights: written and read, alone and in several parts, as Hugging Face has them."""

import json
import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
from phlox.errors import ArgumentError, TreeError

KEY = phlox.random.key(0)
MODEL = nn.Sequential(
    nn.Conv(3, 4, (3, 3)), nn.BatchNorm(4), nn.flatten, nn.Stack(nn.Residual(nn.Linear(16, 16)), 3), nn.Linear(16, 2)
)


def same(a, b):
    assert phlox.tree.structure(a) == phlox.tree.structure(b)
    for x, y in zip(phlox.tree.leaves(a), phlox.tree.leaves(b), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_is_written_is_read(tmp_path, dtype):
    params, state = MODEL.init(KEY, dtype=dtype), MODEL.init_state()
    _, state = MODEL.apply(params, jnp.ones((2, 2, 2, 3)), state=state, train=True)
    file = tmp_path / "model.safetensors"
    nn.save_safetensors(MODEL, params, file, state=state)
    names = load_file(file)
    assert names["0.weight"].shape == (4, 3, 3, 3) and names["3.2.layer.weight"].dtype == np.dtype(dtype)
    assert names["1.num_batches_tracked"].dtype == np.int64
    for given in (file, str(file), tmp_path):
        read, statistics = nn.load_safetensors(MODEL, given)
        same(read, params), same(statistics, state)
    assert nn.compare_weights(MODEL, file).fits


def test_statistics_may_be_left_out_where_there_are_none(tmp_path):
    model = nn.MLP((2, 3, 4))
    nn.save_safetensors(model, model.init(KEY), tmp_path / "a.safetensors")
    same(nn.load_safetensors(model, tmp_path / "a.safetensors")[0], model.init(KEY))


def test_files_in_parts(tmp_path):
    model = nn.MLP((2, 3, 4))
    params = model.init(KEY)
    nn.save_safetensors(model, params, tmp_path / "whole.safetensors")
    whole = load_file(tmp_path / "whole.safetensors")
    (tmp_path / "whole.safetensors").unlink()
    index = {}
    for number, (name, value) in enumerate(whole.items()):
        part = f"model-{number % 2}.safetensors"
        index[name] = part
        save_file(
            {k: v for k, v in whole.items() if k == name or index.get(k) == part} | {name: value}, tmp_path / part
        )
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    same(nn.load_safetensors(model, tmp_path)[0], params)
    same(nn.load_safetensors(model, tmp_path / "model.safetensors.index.json")[0], params)


def test_what_does_not_fit(tmp_path):
    save_file({"weight": np.ones((2, 2), ml_dtypes.bfloat16)}, tmp_path / "a.safetensors")
    with pytest.raises(
        TreeError, match=r"(?s)missing:   bias \(3,\).*weight has \(2, 2\), but the model needs \(3, 2\)"
    ):
        nn.load_safetensors(nn.Linear(2, 3), tmp_path / "a.safetensors")
    with pytest.raises(ArgumentError, match="there is no file"):
        nn.load_safetensors(nn.Linear(2, 3), tmp_path)
    with pytest.raises(ArgumentError, match="same number of stars"):
        nn.compare_weights(nn.Linear(2, 3), tmp_path / "a.safetensors", rename=[("*", "x")])


def test_neither_torch_nor_safetensors_are_imported_before_they_are_needed():
    program = "import sys, phlox_nn; print([x for x in ('torch', 'safetensors', 'rich') if x in sys.modules])"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env)
    assert done.stdout.strip() == "[]", done.stderr
