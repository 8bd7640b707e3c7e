"""Forms: further lowering rules of primitives for CPUs, where the code that XLA makes of an operation is slow or wrong.

The rule `lower` of a primitive is portable. Programs that run on CPUs only have the first `Form` that applies. The
table of forms is `phlox._ops.cpu`; it is loaded when the first such program is lowered.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .._ir.primitive import Primitive
from .platforms import cpu_only
from .text import Function


class Form(NamedTuple):
    """A lowering rule for CPUs.

    Attributes:
      applies: ``applies(f, *operands, **params)``, whether the form can be written for these operands, and is faster.
      write: the lowering rule, as `Primitive.lower`.
      gain: what was measured, or what is wrong without the form.
    """

    applies: Callable[..., bool]
    write: Callable[..., Any]
    gain: str


Forms = Mapping[Primitive, Sequence[Form]]

_NO_FORMS: Forms = {}
_loaders: list[Callable[[], Forms]] = []


def provide_forms(load: Callable[[], Forms]) -> None:
    """Sets the function that returns the table. It is called once, when it is needed."""
    _loaders.append(functools.cache(load))


def forms_of(f: Function) -> Forms:
    """The forms that the program may have: none if it may also run elsewhere than on CPUs."""
    forms: Forms | None = f.module.known.get(forms_of)
    if forms is None:
        forms = f.module.known[forms_of] = _loaders[0]() if _loaders and cpu_only(f) else _NO_FORMS
    return forms
