"""Docstrings of functions that share text, such as `fft` and `ifft`: it is written once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

#: the sections of a docstring, in their order
_TITLES = ("Args:", "Returns:", "Raises:")


def docs_from(*models: Callable[..., Any]) -> Callable[[F], F]:
    """Completes the docstring of the function that it decorates by the docstrings of other functions.

    It adds what the docstring lacks: the entries of the function's parameters in `Args:`, the section `Returns:` unless
    the function returns None, and entries of `Raises:`. The first model that has an entry counts. It stands below
    `jit`, which copies docstrings.

    >>> def double(x, times):
    ...     \"\"\"Doubles `x`.
    ...
    ...     Args:
    ...       x: a number.
    ...       times: the number of doublings.
    ...     \"\"\"
    >>> @docs_from(double)
    ... def halve(x):
    ...     \"\"\"Halves `x`.\"\"\"
    >>> halve.__doc__
    'Halves `x`.\\n\\nArgs:\\n  x: a number.'
    """

    def complete(function: F) -> F:
        # From the code object: `inspect.signature` is too slow for the hundreds of functions that are decorated at
        # import.
        code: CodeType = function.__code__
        names, count = list(code.co_varnames), code.co_argcount + code.co_kwonlyargcount
        if code.co_flags & inspect.CO_VARARGS:  # `*args` stands behind the keywords here
            names.insert(code.co_argcount, names.pop(count))
            count += 1
        parameters = names[: count + bool(code.co_flags & inspect.CO_VARKEYWORDS)]
        function.__doc__ = _completed(function, [_sections(model) for model in models], parameters)
        return function

    return complete


def _sections(function: Any) -> dict[str, str]:
    """The parts of a docstring by title. What precedes the sections has the title "", what follows them "end"."""
    doc = function.__doc__ or ""
    # `cleandoc` takes 50 us, which `import phlox` would wait for; most docstrings are those of functions of modules.
    doc = doc.replace("\n    ", "\n").strip() if doc.endswith("\n    ") else inspect.cleandoc(doc)
    sections: dict[str, str] = {}
    for paragraph in doc.split("\n\n"):
        title, _, text = paragraph.partition("\n")
        if title not in _TITLES:
            title, text = "end" if sections.keys() - {""} or paragraph.startswith(">>>") else "", paragraph
        sections[title] = f"{sections[title]}\n\n{text}" if title in sections else text
    return sections


def _entries(section: str) -> dict[tuple[str, ...], str]:
    """The entries of a section by the names that they explain."""
    entries: list[str] = []
    for line in section.split("\n"):
        if line.startswith("   "):  # goes on with an entry
            entries[-1] += f"\n{line}"
        elif line:
            entries.append(line[2:])
    return {tuple(name.strip("* ") for name in entry.partition(":")[0].split(",")): entry for entry in entries}


def _completed(function: Any, models: list[dict[str, str]], parameters: list[str]) -> str:
    sections = _sections(function)
    arguments, errors = _entries(sections.get("Args:", "")), _entries(sections.get("Raises:", ""))
    of_models: dict[tuple[str, ...], str] = {}
    for model in models:
        missing = set(parameters).difference(*arguments)
        arguments |= {
            # Only entries whose parameters are all missing: an entry for two parameters explains both.
            names: text
            for names, text in _entries(model.get("Args:", "")).items()
            if missing.issuperset(names)
        }
        if function.__annotations__.get("return") != "None":
            sections.setdefault("Returns:", model.get("Returns:", ""))
        of_models |= {
            names: text for names, text in _entries(model.get("Raises:", "")).items() if names not in of_models
        }
    in_order = sorted(arguments, key=lambda names: parameters.index(names[0]) if names[0] in parameters else 99)
    sections["Args:"] = "\n  ".join(arguments[names] for names in in_order)
    sections["Raises:"] = "\n  ".join((of_models | errors).values())
    texts = [f"{title}\n  {sections[title].lstrip()}" for title in _TITLES if sections.get(title)]
    return "\n\n".join(filter(None, [sections.get(""), *texts, sections.get("end")]))
