"""Why results of `corners` differ from the truth: each difference has one of these decisions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Decision:
    """A reason, the letter by which the page refers to it, and the differences to which it applies."""

    letter: str
    reason: str
    applies: Callable[[Any], bool]


def _is_nan(x: Any) -> bool:
    return bool(np.isnan(x))


def _named(*names: str) -> Callable[[Any], bool]:
    return lambda d: d.name in names


DECISIONS: list[Decision] = []


def decide(letter: str, reason: str, applies: Callable[[Any], bool]) -> None:
    DECISIONS.append(Decision(letter, " ".join(reason.split()), applies))


def decision(difference: Any) -> Decision | None:
    """The first decision that applies."""
    return next((d for d in DECISIONS if d.applies(difference)), None)
