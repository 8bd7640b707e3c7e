"""Files that torch.save wrote are read without running code in them; indexes of them stay inside of their folder."""

import json
import pickle

import numpy as np
import pytest
import torch

import phlox
import phlox_nn as nn
from phlox.errors import ArgumentError

LAYER = nn.Linear(2, 3)
WEIGHTS = {"weight": torch.arange(6.0).reshape(3, 2), "bias": torch.arange(3.0).to(torch.bfloat16)}
EXPECTED = {"weight": np.arange(6.0).reshape(3, 2).T, "bias": np.arange(3.0)}


class Command:
    """An object whose unpickling writes a file."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return open, (self.file, "w")


@pytest.mark.parametrize("is_zip", [True, False])
@pytest.mark.parametrize("ending", ["bin", "pt", "pth", "ckpt"])
def test_files_of_torch_are_read(tmp_path, ending, is_zip):
    file = tmp_path / f"weights.{ending}"
    torch.save({"state_dict": WEIGHTS} if ending == "ckpt" else WEIGHTS, file, _use_new_zipfile_serialization=is_zip)
    params, state = nn.load_torch(LAYER, file, dtype="float32")
    phlox.tree.map(np.testing.assert_array_equal, params, EXPECTED)
    assert state == {}


def test_a_folder_with_an_index_is_read(tmp_path):
    for name, value in WEIGHTS.items():
        torch.save({name: value}, tmp_path / f"{name}.bin")
    index = {"weight_map": {name: f"{name}.bin" for name in WEIGHTS}}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    params, _ = nn.load_safetensors(LAYER, tmp_path, dtype="float32")
    phlox.tree.map(np.testing.assert_array_equal, params, EXPECTED)


@pytest.mark.parametrize("part", ["/weights.bin", "../weights.bin", "..\\weights.bin", "weights.safetensors", "a.py"])
def test_an_index_reads_nothing_outside_of_its_folder(tmp_path, part):
    folder = tmp_path / "folder"
    folder.mkdir()
    torch.save(WEIGHTS, tmp_path / "weights.bin")
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": dict.fromkeys(WEIGHTS, part)}))
    with pytest.raises(ArgumentError, match=r"which is (not below its folder|no \.bin file)"):
        nn.load_safetensors(LAYER, folder)


def test_code_in_a_file_does_not_run(tmp_path):
    file, trace = tmp_path / "weights.bin", tmp_path / "trace"
    for content in ({"weight": Command(str(trace))}, Command(str(trace))):
        file.write_bytes(pickle.dumps(content))
        with pytest.raises(ArgumentError, match="weights_only=True"):
            nn.load_torch(LAYER, file)
        torch.save(content, file)
        with pytest.raises(ArgumentError, match="weights_only=True"):
            nn.load_torch(LAYER, file)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"PK\3\4" + bytes(60), "does not read it"), ([1.0], "has a list"), ({"weight": 1.0}, "'weight' is no tensor")],
)
def test_other_files_are_refused(tmp_path, content, words):
    file = tmp_path / "weights.bin"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        torch.save(content, file)
    with pytest.raises(ArgumentError, match=words):
        nn.load_torch(LAYER, file)
