"""A whole StableHLO module as part of another one: its functions, under names that are free there."""

from __future__ import annotations

import re
from typing import Any

from .analysis import from_portable
from .lapack import load_for
from .text import Function

_DEFINED = re.compile(r'^  func\.func (?:(?:public|private) )?@("[^"]*"|[\w.$-]+)', re.MULTILINE)
#: A symbol, or a string, which is matched so that nothing inside of it is taken for a symbol. The targets of foreign
#: functions look like symbols and keep their names.
_SYMBOL = re.compile(r'(?<!custom_call )@("[^"]*"|[\w.$-]+)|"(?:[^"\\]|\\.)*"')
_TARGET = re.compile(r'custom_call @("[^"]*"|[\w.$-]+)|call_target_name = "([^"]*)"')


def embed(f: Function, key: Any, artifact: bytes, name: str) -> str:
    """Adds the functions of a module in portable form, once for `key`; returns the symbol of its ``main``."""
    module = f.module
    symbol = module.known.get(key)
    if symbol is None:
        text = from_portable(artifact)
        load_for(targets(text))
        names = {old: module.fresh_name(f"{name}_{old}".replace('"', "")) for old in _DEFINED.findall(text)}

        def renamed(match: re.Match[str]) -> str:
            return f"@{names[match[1]]}" if match[1] in names else match[0]

        inside = _SYMBOL.sub(renamed, text).rstrip().split("\n")[1:-1]
        module.functions.append("\n".join(inside).replace("  func.func public @", "  func.func private @"))
        symbol = module.known[key] = names["main"]
    return symbol


def targets(text: str) -> set[str]:
    """The names of the foreign functions that a module calls."""
    return {(short or long).strip('"') for short, long in _TARGET.findall(text)}
