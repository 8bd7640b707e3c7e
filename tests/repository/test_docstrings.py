"""Docstrings of public functions say what each parameter is and what is returned, in the form that mkdocstrings reads.

The form is Google's: sections `Args:`, `Returns:` (unless the signature says ``-> None``) and `Raises:`, then an
example. To see what a module lacks: `python tests/repository/test_docstrings.py phlox.numpy`. That the examples run is
the subject of packages/core/tests/unit/test_documentation.py.
"""

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # when it runs as a program
from public_modules import public_modules

#: The layers of stax do not have the form yet, nor what has the names of JAX's inside.
WITHOUT = ("phlox_compat.example_libraries.stax", "phlox_compat.jax_internals")
MODULES = [name for package in ("core", "compat") for name in public_modules(package) if name not in WITHOUT]

SECTION = re.compile(r"^(Args|Returns|Raises|Yields|Attributes):[ \t]*$", re.MULTILINE)
#: One entry of a section: `name:`, or `one, two:`, or `*args:`.
ENTRY = re.compile(r"^  (\S[^:\n]*):", re.MULTILINE)


def sections(doc: str) -> dict[str, str]:
    """The text of each section of a docstring, by its title; that before the first by the empty title."""
    parts = SECTION.split(inspect.cleandoc(doc))
    found = {"": parts[0]}
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        # A section ends where the text is no longer indented.
        found[title] = re.split(r"^(?=\S)", text.strip("\n"), maxsplit=1, flags=re.MULTILINE)[0]
    return found


def entries(text: str) -> list[str]:
    """The names that a section explains."""
    return [name.strip().strip("`*") for entry in ENTRY.findall(text) for name in entry.split(",")]


def lacks(function) -> list[str]:
    """What the docstring of `function` does not say."""
    doc = function.__doc__ or ""
    found = sections(doc)
    try:
        signature = inspect.signature(function)
        parameters = [name for name in signature.parameters if name != "self"]
        returns_something = signature.return_annotation not in (None, "None")
    except (TypeError, ValueError):
        parameters, returns_something = [], True
    explained = entries(found.get("Args", ""))
    wrong = [f"`{name}`" for name in parameters if name not in explained]
    wrong += [f"no parameter `{name}`" for name in explained if parameters and name not in parameters]
    if returns_something and "Returns" not in found and "Yields" not in found:
        wrong.append("Returns")
    if ">>>" not in doc:
        wrong.append("an example")
    return wrong


def functions(module: str):
    """(name, function) of the public functions that phlox defines in a module; classes and primitives are not."""
    home = importlib.import_module(module)
    for name in getattr(home, "__all__", None) or [n for n in vars(home) if n[0] != "_"]:
        value = getattr(home, name)
        ours = (getattr(value, "__module__", None) or "").startswith("phlox")
        if ours and callable(value) and not isinstance(value, type) and not name.endswith("_p"):
            yield name, value


@pytest.mark.parametrize("module", MODULES)
def test_functions_explain_their_parameters_and_results(module):
    wrong = [f"{name}: {', '.join(missing)}" for name, value in functions(module) if (missing := lacks(value))]
    assert not wrong, f"{len(wrong)} docstrings of {module} lack something:\n" + "\n".join(wrong)


def test_a_docstring_is_read_section_by_section():
    def example(x, y, *rest, key=None):
        """Adds.

        Args:
          x, y: numbers,
            on two lines: with a colon.
          *rest: more.

        Returns:
          The sum.

        >>> example(1, 2)
        """

    def prints(x) -> None:
        """Prints.

        Args:
          x: a number.

        >>> prints(1)
        """

    def forgets(x) -> int:
        """Adds.

        Args:
          x: a number.

        >>> forgets(1)
        """

    assert lacks(example) == ["`key`"]
    assert lacks(prints) == []
    assert lacks(forgets) == ["Returns"]
    assert entries(sections(example.__doc__)["Args"]) == ["x", "y", "rest"]


if __name__ == "__main__":
    for module in sys.argv[1:]:
        for name, value in functions(module):
            if missing := lacks(value):
                print(
                    f"{module}.{name} ({value.__code__.co_filename if hasattr(value, '__code__') else '?'}): {missing}"
                )
