#!/usr/bin/env python3
"""Writes packages/core/src/phlox/_trace/operators.pyi: what type checkers and editors know of operators and methods.

`phlox.numpy` installs them on the class of arrays at run time, which nobody sees who only reads the source. The stub
says the same as the objects themselves: names and parameters come from those, with their annotations.

python scripts/array-stub.py        with phlox on the path; tests/repository/test_array_stub.py compares
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import phlox  # noqa: F401  (which installs them)
from phlox._trace.trace import ArrayLike
from phlox.numpy._indexing.at import At, AtIndex

STUB = Path(__file__).parents[1] / "packages" / "core" / "src" / "phlox" / "_trace" / "operators.pyi"
LENGTH = 120

#: where the names in annotations come from
HOMES = {
    "Any": "typing",
    "Array": "..typing",
    "ArrayLike": "..typing",
    "Axis": "..numpy._statistics.reductions",
    "Callable": "collections.abc",
    "DTypeLike": "..typing",
    "Device": ".._xla.devices",
    "GatherScatterMode": ".._ops.structure.gather",
    "Index": "..numpy._indexing.plan",
    "Iterator": "collections.abc",
    "NoReturn": "typing",
    "OutSharding": ".._api.devices.out_sharding",
    "PrecisionLike": ".._ops.linalg.dot",
    "Sequence": "collections.abc",
    "Shape": "..typing",
    "Sharding": ".._xla.sharding",
}
HEAD = '''"""Operators and methods of arrays, for those who read types. Written by scripts/array-stub.py."""
'''
#: what functions that are made for many operators do not know
RETURNED = dict.fromkeys(("__divmod__", "__rdivmod__"), "tuple[Array, Array]")
#: `object` says of these that they take and return something else, or cannot be said to be missing
IGNORED = {"__eq__": "override", "__ne__": "override", "__hash__": "assignment"}


def members(cls: type) -> dict[str, Any]:
    """What the class has of its own that the stub states."""
    stated = ("__getitem__",)
    return {
        name: value
        for name, value in vars(cls).items()
        if (not name.startswith("_") or cls is ArrayLike or name in stated) and (callable(value) or kept(name, value))
    }


def kept(name: str, value: Any) -> bool:
    return isinstance(value, property) or name == "__hash__"


def installed() -> dict[str, Any]:
    """What `phlox.numpy` puts on the class; the rest stands in its source."""
    own = ("__init__", "__len__", "__slots__")
    return {
        name: value
        for name, value in sorted(members(ArrayLike).items())
        if name not in own
        and not getattr(function := getattr(value, "fget", value), "__module__", "").endswith("_trace.trace")
        and not refuses(function)
    }


def refuses(function: Any) -> bool:
    """Whether the function always raises, such as ``x[0] = 1``: checkers then report its use, as the stub lacks it.

    Stated with NoReturn, it would end the user's function for mypy, which does not check what follows.
    """
    return getattr(function, "__annotations__", {}).get("return") == "NoReturn"


def first_line(value: Any) -> str:
    text = inspect.getdoc(value) or ""
    function = getattr(value, "__wrapped__", None)
    if text.startswith("See `") and function is not None and function.__doc__:
        text = inspect.cleandoc(function.__doc__)
    return " ".join(text.partition("\n\n")[0].split())


def annotation(given: Any) -> str:
    return given if isinstance(given, str) else "Any" if given is inspect.Parameter.empty else given.__name__


def statement(name: str, function: Any) -> list[str]:
    """``def name(...) -> ...:`` in the form that ruff gives it."""
    signature = inspect.signature(getattr(function, "fget", function))
    parts, starred = [], False
    parameters = list(signature.parameters.values())
    if isinstance(function, property):
        parameters = parameters[:1]
    for i, parameter in enumerate(parameters):
        kind = parameter.kind
        if kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred = starred or kind in (parameter.VAR_POSITIONAL, parameter.KEYWORD_ONLY)
        text = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(kind, "") + parameter.name
        if i:
            text += f": {annotation(parameter.annotation)}"
            if parameter.default is not parameter.empty:
                text += f" = {literal(parameter.default)}"
        else:
            text = "self"
        parts.append(text)
        after = parameters[i + 1].kind if i + 1 < len(parameters) else None
        if kind is parameter.POSITIONAL_ONLY and after is not parameter.POSITIONAL_ONLY:
            parts.append("/")
    head, tail = f"    def {name}(", f") -> {RETURNED.get(name) or annotation(signature.return_annotation)}:"
    one = head + ", ".join(parts) + tail
    if len(one) <= LENGTH:
        return [one]
    middle = " " * 8 + ", ".join(parts)
    if len(middle) <= LENGTH:
        return [head, middle, f"    {tail}"]
    return [head, *[f"        {part}," for part in parts], f"    {tail}"]


def literal(default: Any) -> str:
    return '"' + default + '"' if isinstance(default, str) else repr(default)


def stated(name: str, value: Any) -> list[str]:
    if value is None:
        return [f"    {name}: None  # type: ignore[{IGNORED[name]}]"]
    lines = ["    @property"] if isinstance(value, property) else []
    lines += statement(name, value)
    if name in IGNORED:
        lines[0] += f"  # type: ignore[{IGNORED[name]}]"
    doc = first_line(value)
    if not doc:
        lines[-1] += " ..." if name not in IGNORED else ""
        return lines if name not in IGNORED else [*lines, "        ..."]
    quoted = f'        """{doc}"""'
    if len(quoted) > LENGTH:
        quoted = f'        """{doc.partition(". ")[0].rstrip(".")}."""'
    return [*lines, quoted if len(quoted) <= LENGTH else "        ..."]


def block(name: str, doc: str, found: dict[str, Any]) -> list[str]:
    lines = [f"class {name}:", f'    """{doc}"""', ""]
    for member, value in found.items():
        lines += [*stated(member, value), ""] if not inspect.isclass(value) else []
    return lines


def text() -> str:
    """The stub."""
    lines = [
        *block("Operators", "What arrays and tracers have that `phlox.numpy` installs.", installed()),
        *block("At", first_line(At), dict(sorted(members(At).items()))),
        *block("AtIndex", first_line(AtIndex), dict(sorted(members(AtIndex).items()))),
    ]
    code = [re.sub(r'""".*"""|"[^"]*"', "", line) for line in lines if '"""' not in line]
    named = set(re.findall(r"[A-Z]\w+", "\n".join(code)))
    homes: dict[str, list[str]] = {}
    for name in sorted(named & HOMES.keys()):
        homes.setdefault(HOMES[name], []).append(name)
    if unknown := named - HOMES.keys() - {"None", "True", "False", "Operators", "At", "AtIndex"}:
        raise SystemExit(f"from where do these names of annotations come? {unknown}")
    order = sorted(homes, key=lambda home: (home.startswith("."), -(len(home) - len(home.lstrip("."))), home))
    imports = [f"from {home} import {', '.join(homes[home])}" for home in order]
    far = next(i for i, line in enumerate(imports) if line.startswith("from ."))
    imports.insert(far, "")
    return "\n".join([HEAD, *imports, "", *lines])


if __name__ == "__main__":
    print(text()) if "--print" in sys.argv else STUB.write_text(text())
