"""The rule `pad` of `scan`: a scan over a padded axis is a loop that stops after the true length."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._ir.dimensions import is_symbolic
from ..._ir.jaxpr import JaxprEqn
from ..._trace.trace import typeof
from ..._transform.padding import Padding
from ..elementwise.arithmetic import add, sub
from ..elementwise.logic import lt
from ..structure.shape import reshape
from .rows import rows_at, with_rows, zero_array
from .turns import repeat, split_operands

_ONE = np.int32(1)


def scan_pad(padding: Padding, eqn: JaxprEqn, *args: Any) -> list[Any]:
    from .scan import bind_scan  # imports this module

    params = dict(eqn.params)
    jaxpr, num_consts, num_carry = (params.pop(name) for name in ("jaxpr", "num_consts", "num_carry"))
    consts, carry, xs = split_operands(args, num_consts, num_carry)
    if not is_symbolic(params["length"]):
        last, rows = bind_scan(padding.program(jaxpr), consts, carry, xs, params)
        return [*last, *rows]
    length = padding.length(params["length"])
    ys = [
        zero_array(padding.aval(a).with_axis(0, padding.capacity(params["length"])))
        for a in jaxpr.out_avals[num_carry:]
    ]

    def turn(i: Any, *values: Any) -> list[Any]:
        # A reversed scan begins at the true end, not at the end of the padding.
        at = sub(sub(length, _ONE), i) if params["reverse"] else i
        rows = [reshape(rows_at(x, at, 1), new_sizes=typeof(x).shape[1:], dimensions=None) for x in xs]
        outs = padding.run(jaxpr, [*consts, *values[:num_carry], *rows])
        written = [with_rows(y, [row], at) for y, row in zip(values[num_carry:], outs[num_carry:], strict=True)]
        return [add(i, _ONE), *outs[:num_carry], *written]

    return repeat(lambda i, *_: lt(i, length), turn, [np.int32(0), *carry, *ys])[1:]
