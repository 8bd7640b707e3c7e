"""The packages a second time, with jax in place of phlox: the same programs, run by the library that they are judged by.

`program("vit", on_jax=True)` is the module of ./train vit as it would be if phlox_nn, phlox_optim, phlox_data and
phlox_examples had been written for jax. Nothing is written twice for that: a module ``phlox_nn_on_jax.x`` has the text
of ``phlox_nn.x``, in which the imports of phlox are imports of jax. Only the classes of errors, and how errors are
reported, stay phlox's; and the optimizers are those of optax itself.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import re
import sys
import types

import jax
import numpy as np
import optax

from example_runs import results
from phlox_examples.options import parse

PACKAGES = ("phlox_nn", "phlox_models", "phlox_optim", "phlox_data", "phlox_examples")
ENDING = "_on_jax"


def translated(text):
    """The text of a module, for jax."""
    text = re.sub(rf"\b({'|'.join(PACKAGES)})\b", rf"\1{ENDING}", text)
    text = re.sub(r"\bphlox\b(?!\.(errors|extend)\b)", "jax", text)
    text = text.replace("phlox.errors.PhloxError", "Exception")
    # Buckets of lengths, an option of phlox's own jit, which no program uses.
    text = re.sub(r"(jax\.jit\b[^\n]*?), sizes=[^\n]*\)\n", r"\1)\n", text)
    return text.replace('config.update("', 'config.update("jax_')


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and loads the modules of the translated packages."""

    def find_spec(self, name, path=None, target=None):
        package, _, rest = name.partition(".")
        if package.removesuffix(ENDING) not in PACKAGES or not package.endswith(ENDING):
            return None
        original = importlib.util.find_spec(f"{package.removesuffix(ENDING)}.{rest}".rstrip("."))
        if original is None:
            return None
        spec = importlib.machinery.ModuleSpec(name, self, origin=original.origin)
        spec.has_location = True
        spec.submodule_search_locations = original.submodule_search_locations
        return spec

    def exec_module(self, module):
        with open(module.__spec__.origin, encoding="utf-8") as file:
            text = file.read()
        exec(compile(translated(text), module.__spec__.origin, "exec"), module.__dict__)
        if module.__name__ == f"phlox_optim{ENDING}._guard":
            # Optimizers still tell their learning rates, but they are those of optax, which are not refused here.
            module._optax, module._refuse_plain = (lambda: optax), (lambda name, argument: None)


sys.meta_path.insert(0, Finder())  # before the one that would find the original texts in the packages' folders


def program(name: str, on_jax: bool) -> types.ModuleType:
    """The module of a program."""
    return importlib.import_module(f"phlox_examples{ENDING if on_jax else ''}.{name.replace('-', '_')}")


def leaves(found, path=""):
    """(path, value) of all that a program found, in nested dicts, lists and tuples."""
    numbers = isinstance(found, list) and all(isinstance(element, int | float) for element in found)
    if isinstance(found, dict | list | tuple) and not numbers:
        pairs = found.items() if isinstance(found, dict) else enumerate(found)
        for name, value in pairs:
            yield from leaves(value, f"{path}.{name}")
    else:
        yield path, found


def check_training(name: str, folder, tolerance: float = 1e-4):
    """``./train NAME --quick`` must write the same numbers with both libraries, up to the rounding of 32 bits."""
    written = []
    for on_jax in (False, True):
        wide = jax.config.jax_enable_x64
        try:
            program(name, on_jax).run(parse([name, "--quick", "--out", str(folder)]))
        finally:
            jax.config.update("jax_enable_x64", wide)
        written.append(dict(leaves(results(folder, name, quick=True))))
    ours, theirs = written
    assert list(ours) == list(theirs)
    for path, expected in theirs.items():
        if isinstance(expected, float | list):
            np.testing.assert_allclose(ours[path], expected, rtol=tolerance, atol=1e-6, err_msg=path)
        else:
            assert ours[path] == expected, path
