"""Adds the functions of a StableHLO module, renamed to unique names, to another module. Exported functions need it."""

from __future__ import annotations

import re
from typing import Any

from .analysis import from_portable
from .lapack import load_for
from .text import Function

_DEFINED = re.compile(r'^  func\.func (?:(?:public|private) )?@("[^"]*"|[\w.$-]+)', re.MULTILINE)
#: A symbol, or a string: strings are matched so that no text inside of them is taken for a symbol. Targets of custom
#: calls look like symbols but are not renamed.
_SYMBOL = re.compile(r'(?<!custom_call )@("[^"]*"|[\w.$-]+)|"(?:[^"\\]|\\.)*"')
_TARGET = re.compile(r'custom_call @("[^"]*"|[\w.$-]+)|call_target_name = "([^"]*)"')


def embed(f: Function, key: Any, artifact: bytes, name: str) -> str:
    """Adds the functions of the portable module `artifact`, once for each `key`; returns the symbol of its ``main``."""
    module = f.module
    symbol = module.known.get(key)
    if symbol is None:
        text = from_portable(artifact)
        load_for(targets(text))
        # Names are unique in the outer module, which may hold several exported functions with a ``main`` each.
        names = {old: module.fresh_name(f"{name}_{old}".replace('"', "")) for old in _DEFINED.findall(text)}

        def renamed(match: re.Match[str]) -> str:
            return f"@{names[match[1]]}" if match[1] in names else match[0]

        # Without the first and the last line, which open and close the module.
        inside = _SYMBOL.sub(renamed, text).rstrip().split("\n")[1:-1]
        module.functions.append("\n".join(inside).replace("  func.func public @", "  func.func private @"))
        symbol = module.known[key] = names["main"]
    return symbol


def targets(text: str) -> set[str]:
    """The targets of the custom calls in a module."""
    return {(short or long).strip('"') for short, long in _TARGET.findall(text)}
