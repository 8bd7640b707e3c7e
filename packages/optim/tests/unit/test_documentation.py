"""Examples run: those of docstrings here, those of optax's docstrings on phlox, and the README's."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import phlox_optim

README = Path(__file__).parents[2] / "README.md"
MODULES = ["phlox_optim", *(m.name for m in pkgutil.walk_packages(phlox_optim.__path__, "phlox_optim."))]
#: Python cannot read the examples that these have in optax: lines without "...".
UNREADABLE = {"inject_hyperparams", "partition"}
OPTAX_EXAMPLES = [
    name
    for name in phlox_optim.__all__
    if name not in UNREADABLE and hasattr(getattr(phlox_optim, name), "__wrapped__")
    if ">>>" in getattr(phlox_optim, name).__doc__
]


def run(test, **options):
    runner = doctest.DocTestRunner(verbose=False, **options)
    runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
    return len(test.examples)


def test_examples_of_docstrings():
    count = 0
    for name in MODULES:
        module = importlib.import_module(name)
        for test in doctest.DocTestFinder().find(module):
            if not hasattr(getattr(module, test.name.rpartition(".")[2], None), "__wrapped__"):  # that is optax's own
                count += run(test)
    assert count >= 4


@pytest.mark.parametrize("name", OPTAX_EXAMPLES)
def test_examples_of_optax_on_phlox(name):
    text = getattr(phlox_optim, name).__doc__
    text = re.sub(r"import optax\b", "import phlox_optim as optax", text)
    text = re.sub(r"import jax\n", "import phlox as jax\n", re.sub(r"import jax\.", "import phlox.", text))
    assert "import jax" not in text
    names = dict.fromkeys(["optax"], phlox_optim)  # some examples leave their imports out
    test = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    run(test, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)


def test_snippets_of_the_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # one of them saves files
    snippets = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(snippets) >= 2
    names = {}
    for snippet in snippets:
        exec(compile(snippet, str(README), "exec"), names)


def test_the_page_of_optax_lists_every_name():
    """docs/optax.md has every name of `dir(phlox_optim)` that is optax's, and no other."""
    page = (README.parents[2] / "docs" / "optax.md").read_text()
    listed = page[page.index("## Names") : page.index("### Modules")]
    modules = set(re.findall(r"^`(\w+)`:$", page, re.MULTILINE))
    ours = {*phlox_optim._TRAINING, "checkpoint", "errors", "logging", "metrics"}
    assert set(re.findall(r"`(\w+)`", listed)) | modules == set(dir(phlox_optim)) - ours
