"""Ten programs that train networks: each learns as well on phlox as its twin in flax.nnx, and is not longer."""

import importlib
import io
import re
import tokenize
from pathlib import Path

import numpy as np
import pytest
import torch

import network_programs

FOLDER = Path(network_programs.__file__).parent
DOCS = Path(__file__).resolve().parents[4] / "docs" / "networks.md"
NAMES = ("mlp", "cnn", "resnet", "vit", "mixer", "gpt", "tagger", "vae", "lora", "data_parallel")


def lines(name):
    """How many lines of a program have code: no blank ones, no comments, not the docstring of the file."""
    text = (FOLDER / f"{name}.py").read_text()
    found = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.string.strip() and token.type not in (tokenize.COMMENT, tokenize.ENDMARKER):
            found.update(range(token.start[0], token.end[0] + 1))
    return len(found) - text.splitlines()[0].startswith('"""')


def trained(name, *args):
    """What ``main`` of a program returns: its losses, and what else there is."""
    result = importlib.import_module(f"network_programs.{name}").main(60, *args)
    losses, rest = result if isinstance(result, tuple) else (result, None)
    assert len(losses) == 60 and np.isfinite(losses).all()
    return np.array(losses), rest


@pytest.mark.parametrize("name", NAMES)
def test_a_program_learns_as_its_twin_does(name):
    args = ()
    if name == "lora":
        torch.manual_seed(0)
        args = (torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)),)
    (ours, rest), (theirs, other) = trained(name, *args), trained(f"{name}_flax", *args)
    # First values are drawn otherwise, so losses differ by chance, a fifth of what is learnt at most.
    begin, end = theirs[:3].mean(), theirs[-10:].mean()
    assert ours[-10:].mean() < end + 0.2 * (begin - end)
    if name == "cnn":
        assert rest > 0.9  # of digits
    if name == "gpt":
        assert len(rest) == len(other) == 41 and "the lazy dog" in rest
    if name == "tagger":
        assert rest > 0.85
    if name == "vae":
        assert rest.shape == other.shape and float(rest.min()) >= 0 and float(rest.max()) <= 1
    if name == "lora":
        for key, value in args[0].state_dict().items():
            assert rest[key].shape == value.shape
            assert torch.equal(rest[key], value) == key.endswith("bias")  # weights have changed, the rest has not
    if name == "data_parallel":
        assert all(len(x.sharding.device_set) == 8 for x in rest["0"].values())


@pytest.mark.parametrize("name", NAMES)
def test_no_program_is_longer_than_its_twin(name):
    assert lines(name) <= lines(f"{name}_flax")


def test_the_page_tells_these_numbers():
    rows = re.findall(r"^\| \[?(\w+)\]?[^|]* \| (\d+) \| (\d+) \|$", DOCS.read_text(), re.MULTILINE)
    assert rows == [(name, str(lines(name)), str(lines(f"{name}_flax"))) for name in NAMES]
