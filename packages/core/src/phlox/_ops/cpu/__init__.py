"""The table of forms: what programs for CPUs have in place of the portable lowering rule of a primitive.

A row is a `Form` in one of the modules here: the condition, the rule that writes it, and what was measured. The first
row that applies counts, so that the kernels of phlox-kernels come first. The figures are from two cores of x86-64;
`./bench kernels` measures them again, and docs/notes/cpu-kernels.md has the table.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, NamedTuple

from ..._ir.primitive import Primitive
from ..._xla.forms import Form, provide_forms

if TYPE_CHECKING:  # `_load` imports them by name; packagers look for import statements
    from . import (  # noqa: F401
        byte_products,
        convolution,
        depthwise,
        extrema,
        functions,
        kernels,
        matrix_vector,
        packed_sort,
        positions,
        prefixes,
        short_axes,
        small_products,
        top_k,
    )


class _Forms(NamedTuple):
    """The modules that hold the CPU forms of a primitive, and the smallest operand they serve.

    Attributes:
      modules: names of the modules, in the order in which their forms are tried.
      least: the number of elements of an operand from which on there is a form. Smaller programs import none.
    """

    modules: tuple[str, ...]
    least: int


# `least` is the smallest bound of the forms of the primitive: a program below it does not import them. The conditions
# of the forms themselves are stricter.
_FUNCTIONS = _Forms(("functions",), 1024)
_RUNNING = _Forms(("kernels", "prefixes"), 256)
_POSITIONS = _Forms(("kernels", "positions"), 256)
_REDUCTIONS = _Forms(("kernels", "short_axes", "extrema"), 4096)
TABLE = {
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh"), _FUNCTIONS),
    **dict.fromkeys(("cbrt", "pow", "rem", "log1p"), _FUNCTIONS),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin"), _RUNNING),
    **dict.fromkeys(("argmax", "argmin"), _POSITIONS),
    **dict.fromkeys(("reduce_max", "reduce_min"), _REDUCTIONS),
    **dict.fromkeys(("max", "min"), _Forms(("extrema",), 4096)),
    "reduce_sum": _Forms(("kernels", "short_axes"), 4096),
    "cumlogsumexp": _Forms(("prefixes",), 1 << 17),
    "sort": _Forms(("kernels", "packed_sort"), 2),
    "top_k": _Forms(("kernels", "top_k"), 1),
    "first_places": _Forms(("kernels",), 256),
    "scatter-add": _Forms(("kernels",), 4096),
    "dot_general": _Forms(("small_products", "short_axes", "byte_products", "matrix_vector"), 12_000),
    "conv_general_dilated": _Forms(("depthwise", "convolution"), 1024),
}


@functools.cache
def _load(primitive: Primitive) -> tuple[Form, ...]:
    """The forms of a primitive; none for a user's primitive of the same name."""
    modules = [importlib.import_module(f"{__name__}.{name}") for name in TABLE[primitive.name].modules]
    return tuple(form for module in modules for form in module.FORMS.get(primitive, ()))


provide_forms({name: rows.least for name, rows in TABLE.items()}, _load)
