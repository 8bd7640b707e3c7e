"""The form of gamma samples for CPUs: those that refuse their first proposal are gathered, and only they are repeated.

The portable rule repeats all samples until the last one is accepted: some four times, where two in a hundred are
refused the first time. Each sample has its own key, so it is the same number in both forms. The words of the keys are
separate arrays: XLA computes each key twice for an array of pairs, and element by element.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._base import config
from ..._ir import dtypes
from ..._trace.trace import typeof
from ..._xla.forms import Form
from ..._xla.text import Function, Value
from ..control.barrier import optimization_barrier
from ..control.rows import set_rows, spread, take_rows
from ..control.turns import repeat
from ..elementwise.arithmetic import min_
from ..elementwise.families import lowered_as
from ..elementwise.formula import Formula
from ..elementwise.logic import xor
from ..random import gamma, threefry
from ..random.generators import THREEFRY, Impl
from ..random.keys import random_wrap
from ..random.uniform import normal_of, unit_of
from ..reductions.reduce import reduce_or
from ..structure.places import first_places
from ..structure.shape import reshape

#: the least number of samples: the program takes 1.2 s longer to compile
_LEAST = 1 << 14
#: One of so many samples is repeated in a turn. Two to six in a hundred are refused, depending on the parameter.
_SHARE = 32

#: the two words of each key
Words = tuple[Any, Any]


def _applies(f: Function, words: Value, alphas: Value, impl: Impl, log_space: bool) -> bool:
    if impl is not THREEFRY or not config.current().threefry_partitionable or alphas.aval.dtype != dtypes.float32:
        return False
    # Gathering would move samples between devices.
    return _LEAST <= alphas.aval.size < 2**31 and f.module.partitions == 1


def _split(keys: Words, i: int) -> Words:
    """The i-th of the keys that each key is split into."""
    first, second = threefry.threefry2x32.bind(*keys, np.uint32(0), np.uint32(i))
    return first, second


def _units(keys: Words) -> Any:
    return unit_of(xor(*_split(keys, 0)), 32, dtypes.float32)


def _first_proposals(keys: Words, d: Any, c: Any) -> tuple[Any, Any]:
    """The first v that `accepted_proposal` tries for each key, and whether it takes another one."""
    fresh = _split(_split(keys, 1), 1)
    # Without the barrier XLA joins the product with c and that of the normal number, which changes the last bit.
    (normals,) = optimization_barrier(normal_of(_units(fresh)))
    x = Formula(normals)
    root = 1 + x * Formula(c)
    v = root * root * root
    refused = gamma.is_refused(d, (x * x).x, v.x, _units(_split(keys, 2)))
    return v.x, ((root <= 0) | refused).x


def _samples(words: Any, alphas: Any, impl: Impl, log_space: bool) -> Any:
    shape, size = typeof(alphas).shape, typeof(alphas).size
    count = shape[typeof(words).ndim - 1 :]
    flat, *split = (
        reshape(x, new_sizes=(size,), dimensions=None)
        for x in (alphas, *threefry.encrypt(words, *threefry.counters(count)))
    )
    keys = _split((split[0], split[1]), 0)
    d, c = gamma.scale(flat)
    proposals, refused = _first_proposals(keys, d, c)

    def turn(proposals: Any, refused: Any) -> list[Any]:
        at = first_places(refused, size=-(-size // _SHARE), index_dtype=dtypes.int32)
        rows = min_(at, spread(size - 1, typeof(at).shape))
        k0, k1, *scale = (take_rows(x, rows) for x in (*keys, d, c))
        accepted = gamma.each(gamma.accepted_proposal, random_wrap(threefry.pair(k0, k1), impl=impl), *scale)
        return [set_rows(proposals, at, accepted), set_rows(refused, at, spread(np.bool_(False), typeof(at).shape))]

    proposals, _ = repeat(lambda _, refused: reduce_or(refused, axes=(0,)), turn, [proposals, refused])
    power = _units(_split((split[0], split[1]), 1))
    return reshape(gamma.scaled_proposal(power, flat, d, proposals, log_space), new_sizes=shape, dimensions=None)


def _write(f: Function, words: Value, alphas: Value, impl: Impl, log_space: bool) -> Value:
    result: Value = lowered_as(_samples)(f, words, alphas, impl=impl, log_space=log_space)
    return result


FORMS = {gamma.random_gamma: [Form(_applies, _write, "1e5: 0.25 of the portable rule's time; equal bits")]}
