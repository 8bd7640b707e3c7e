"""The primitive of `phlox.tag`: the identity, with a name that derivatives keep."""

from __future__ import annotations

from typing import Any

from ..._ir.key_uses import passes
from ..._ir.primitive import Primitive
from ..._transform import padding
from ..._xla.host_values import as_array


def _tag_jvp(primals: Any, tangents: Any, name: str, kind: str) -> tuple[Any, Any]:
    return tag_p.bind(*primals, name=name, kind=kind), tag_p.bind(*tangents, name=name, kind="tangent")


tag_p = Primitive(
    "tag",
    types=lambda x, name, kind: x,
    memory_in_types=True,
    lower=lambda f, x, name, kind: x,
    jvp=_tag_jvp,
    transpose=lambda cotangent, x, name, kind: [tag_p.bind(cotangent, name=name, kind="cotangent")],
    batch=lambda axis, args, dims, **params: (tag_p.bind(*args, **params), dims[0]),
    extend=lambda params, trailing, *avals: params,
    eager=lambda x, name, kind: as_array(x),
    keys=passes,
    pad=padding.pad_elementwise,
    nan_checked=False,
    light=True,
    series="linear",
)
