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
    for public in ["_arrays.batches", "_batches.Batches", "_examples.collate", "_last.Padded", "_tfds.from_tfds"]:
        assert f"phlox_data.{public}" in found


def test_all_names_are_there_and_documented():
    assert phlox_data.__all__ == sorted(phlox_data.__all__)
    for name in phlox_data.__all__:
        assert getattr(phlox_data, name).__doc__


def test_the_readme_runs():
    names = data_readme.run("data.batches((images, labels), batch_size=128, seed=0)")
    assert names["x"].shape == (len(names["phlox"].local_devices()), 128 // len(names["phlox"].local_devices()), 64)
