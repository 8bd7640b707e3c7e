"""Examples in docstrings as blocks of code, while the reference is made (an extension of griffe, see mkdocs.yml).

The docstrings are plain text with doctests between paragraphs. Markdown would take ``>>>`` for a quotation.
"""

import inspect
import textwrap
from typing import Any

import griffe

#: What `inspect` gives for a class attribute that has no docstring of its own: that of its value's class.
BORROWED = {
    inspect.getdoc(kind) for kind in (bool, int, float, complex, str, bytes, tuple, list, dict, set, type(None))
}


class FencedDoctests(griffe.Extension):
    """Puts fences round the doctests of all docstrings, before they are read as Markdown; drops borrowed ones."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Changes the docstring of one object."""
        if obj.docstring and obj.is_attribute and inspect.cleandoc(obj.docstring.value) in BORROWED:
            obj.docstring = None
        elif obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """The text with each doctest, up to the next empty line, as a block of its own."""
    lines: list[str] = []
    block: list[str] = []

    def close() -> None:
        if block:
            indent = block[0][: len(block[0]) - len(block[0].lstrip())]
            code = textwrap.dedent("\n".join(block)).rstrip()
            lines.extend(
                textwrap.indent(f"\n```pycon\n{code}\n```\n", indent, lambda line: bool(line.strip())).split("\n")
            )
            block.clear()

    inside = False  # between ``>>>`` and the empty line after the result
    for line in text.splitlines():
        inside = line.lstrip().startswith(">>>") or (inside and bool(line.strip()))
        if inside:
            block.append(line)
        else:
            close()
            # "such as::" begins a block of code in reStructuredText; in Markdown the indentation suffices.
            lines.append(line[:-1] if line.endswith("::") else line)
    close()
    return "\n".join(lines)
