"""The `repr` of layers: the Python expression that makes them, on several lines if it is long.

Works with any dataclass, and imports no layer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

WIDTH = 100


def call(name: str, arguments: Sequence[str]) -> str:
    """``name(arguments)``, with a line for each argument if it does not fit on one line."""
    short = f"{name}({', '.join(arguments)})"
    if len(short) <= WIDTH and "\n" not in short:
        return short
    lines = ",\n".join(arguments).replace("\n", "\n    ")
    return f"{name}(\n    {lines},\n)"


def value(x: Any) -> str:
    """A value as code: functions and types by their names, sequences with their elements."""
    if isinstance(x, tuple | list) and type(x) in (tuple, list):
        inside = [value(item) for item in x]
        if all("\n" not in item for item in inside) and len(", ".join(inside)) < WIDTH:
            comma = "," if len(inside) == 1 and isinstance(x, tuple) else ""
            text = ", ".join(inside) + comma
            return f"({text})" if isinstance(x, tuple) else f"[{text}]"
        lines = ",\n".join(inside).replace("\n", "\n    ")
        return f"(\n    {lines},\n)" if isinstance(x, tuple) else f"[\n    {lines},\n]"
    if callable(x) and not dataclasses.is_dataclass(x):
        name: str = getattr(x, "__name__", repr(x))
        return name
    return repr(x)


def non_default_fields(layer: Any) -> Iterator[tuple[str, Any]]:
    """(name, value) of the fields of a dataclass that differ from their defaults."""
    for field in dataclasses.fields(layer):
        x = getattr(layer, field.name)
        if field.default is dataclasses.MISSING or (x is not field.default and x != field.default):
            yield field.name, x


def of_fields(layer: Any) -> str:
    """The call that makes a dataclass: fields without default by position, others by name if they differ from it."""
    fields = {field.name: field for field in dataclasses.fields(layer)}
    arguments = []
    for name, x in non_default_fields(layer):
        by_place = fields[name].default is dataclasses.MISSING and not fields[name].kw_only
        arguments.append(value(x) if by_place else f"{name}={value(x)}")
    return call(type(layer).__name__, arguments)
