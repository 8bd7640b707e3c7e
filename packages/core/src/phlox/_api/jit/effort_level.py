"""`CompilerEffortLevel`, names for the effort levels of XLA."""

from __future__ import annotations

import enum
from typing import Any


class CompilerEffortLevel(enum.Enum):
    """How much time XLA's compiler spends: values of its options ``optimization_level``, ``memory_fitting_level``.

    Compilers for CPUs have one level. The option `compile_effort` of `jit` works on them.

    >>> CompilerEffortLevel("O1").value
    19
    """

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39

    @classmethod
    def _missing_(cls, value: Any) -> CompilerEffortLevel | None:
        return cls.__members__.get(value) if isinstance(value, str) else None
