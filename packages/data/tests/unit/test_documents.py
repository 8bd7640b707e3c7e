"""What is written about the package holds: docstrings, names, the README's first program."""

import doctest
import importlib
import pkgutil

import pytest

import data_readme
import phlox_data

MODULES = ["phlox_data", *(f"phlox_data.{found.name}" for found in pkgutil.iter_modules(phlox_data.__path__))]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module)
    assert result.failed == 0


def test_examples_are_there():
    finder = doctest.DocTestFinder()
    found = {test.name for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples}
    some = ["_arrays.batches", "_batches.Batches.state", "_examples.collate", "_last.Padded", "_tfds.from_tfds"]
    for public in [*some, "_loop.Report", "_pipeline.mix", "_pipeline.Pipeline.map", "_iterable.from_iterable"]:
        assert f"phlox_data.{public}" in found


def test_all_names_are_there_and_documented():
    assert phlox_data.__all__ == sorted(phlox_data.__all__)
    for name in phlox_data.__all__:
        assert getattr(phlox_data, name).__doc__


FIRST = "data.batches((images, labels), batch_size=128, seed=0)"


def test_the_readme_runs():
    names = data_readme.run(FIRST, "train.report()")
    assert names["state"] == {"epoch": 2, "batch": 0}
    assert names["train"].report().examples == 1000
    assert names["x"].shape == (104, 64)


@pytest.mark.parametrize("source", ["from_grain", "from_huggingface", "data.pipeline"])
def test_sources_of_the_readme_run(source):
    names = data_readme.run(FIRST, source)
    assert len(data_readme.snippets(source)) == 1
    assert names["batch"] is not None


def test_placement_of_the_readme_runs():
    names = data_readme.run("import phlox\n", "NamedSharding(mesh")
    count = len(names["phlox"].local_devices())
    assert names["x"].shape == (count, 128 // count, 64)
    assert names["mean"](names["images"]).shape == (64,)
