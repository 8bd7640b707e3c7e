"""The examples of docstrings and of the README run."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import phlox_models

README = Path(__file__).parents[2] / "README.md"
MODULES = ["phlox_models", *(m.name for m in pkgutil.walk_packages(phlox_models.__path__, "phlox_models."))]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    if name.endswith("._tokens"):
        pytest.importorskip("tokenizers", reason="its example makes a tokenizer of that library")
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_public_functions_have_examples():
    tests = [t for name in MODULES for t in doctest.DocTestFinder().find(importlib.import_module(name)) if t.examples]
    names = {test.name.rpartition(".")[2] for test in tests}
    assert {"load", "build", "register", "generate", "init_cache", "tokenizer", "model_types", "Config"} <= names


def test_snippets_of_the_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    snippets = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert snippets
    names = {}
    for snippet in snippets:
        exec(compile(snippet, str(README), "exec"), names)
