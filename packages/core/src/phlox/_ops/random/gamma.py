"""The primitive `random_gamma`: samples of the gamma distribution, differentiable with respect to its parameter.

Marsaglia and Tsang, A simple method for generating gamma variables, 2000: rejection sampling of a transformed normal
sample. For a parameter less than one, 1 is added to it, and the sample is multiplied by a power of a uniform sample.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._base.errors import ShapeError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import JaxprEqn
from ..._ir.primitive import Primitive
from ..._ir.sharding_types import batches
from ..._trace.trace import typeof
from ..._transform.array_operations import zeros
from ..._transform.batch import BatchAxis, Dim, place_axis, run_batched
from ..._transform.padding import Padding, pad_elementwise
from ..control.loop import repeat
from ..elementwise import arithmetic as e
from ..elementwise.families import lowered_as
from ..elementwise.formula import Formula, exp, log, log1p, sqrt
from ..elementwise.incomplete_gamma import sample_derivative
from ..elementwise.logic import lt
from ..structure.shape import reshape, squeeze
from ..structure.slicing import dynamic_slice, dynamic_update_slice, slice_
from .generators import Impl
from .keys import depends_on_count, is_key, random_split, random_wrap, with_impl
from .uniform import normal, unit


def _keys(key: Any, count: int) -> list[Any]:
    whole = random_split(key, shape=(count,))
    parts = [slice_(whole, start_indices=(i,), limit_indices=(i + 1,), strides=None) for i in range(count)]
    return [squeeze(part, dimensions=(0,)) for part in parts]


def _sample(key: Any, alpha: Any, log_space: bool) -> Any:
    """One sample from one key; with `log_space` its logarithm, because small samples underflow."""
    dtype = typeof(alpha).dtype
    a = Formula(alpha)
    third, zero, one = a.of(1.0 / 3.0), a.of(0), a.of(1)
    large = a >= one
    d = large.where(a, a + one) - third
    c = third / sqrt(d)

    def refused(_key: Any, x2: Any, v: Any, u: Any) -> Any:
        # Operands: the square of the normal sample, the cube of 1 + c x, and the uniform sample. Marsaglia and Tsang's
        # squeeze accepts most samples without logarithms. On arrays both conditions are computed, as in JAX.
        square, cube, height = Formula(x2), Formula(v), Formula(u)
        quickly = height >= one - square * square * 0.0331
        return (quickly & (log(height) >= square * 0.5 + d * (one - cube + log(cube)))).x

    def propose(key: Any, *_old: Any) -> list[Any]:
        key, x_key, u_key = _keys(key, 3)

        def again(key: Any, *_old: Any) -> list[Any]:
            key, fresh = _keys(key, 2)
            x = Formula(normal(fresh, (), dtype))
            return [key, x.x, (one + x * c).x]

        # -1 is not positive, so that the loop runs at least once.
        start = [x_key, zero.x, a.of(-1).x]
        _, x, v = repeat(lambda _key, _x, v: (Formula(v) <= zero).x, again, start)
        return [key, e.mul(x, x), e.mul(e.mul(v, v), v), unit(u_key, (), dtype)]

    key, power_key = _keys(key, 2)
    # The height 2 is above every density, so that the loop runs at least once.
    v = Formula(repeat(refused, propose, [key, zero.x, one.x, a.of(2).x])[2])
    u = Formula(unit(power_key, (), dtype))
    if not log_space:
        # 1 - u is in (0, 1], u is in [0, 1): zero would make the sample zero.
        power = Formula(e.pow_((one - u).x, (one / a).x))
        return (d * v * large.where(one, power)).x
    log_u = log1p(-u)
    # 0 times an infinite 1 / a would be nan.
    return (log(d) + log(v) + (large | log_u.equals(0)).where(zero, log_u * (one / a))).x


def _samples(words: Any, alphas: Any, impl: Impl, log_space: bool) -> Any:
    shape = typeof(alphas).shape
    keys = random_wrap(words, impl=impl)
    count = math.prod(shape[typeof(keys).ndim :])
    size = math.prod(shape)
    flat = [reshape(x, new_sizes=(size,), dimensions=None) for x in (random_split(keys, shape=(count,)), alphas)]
    if not impl.elementwise and size:  # under vmap the first key would make all samples; same results as in JAX
        return reshape(_one_by_one(flat[0], flat[1], log_space), new_sizes=shape, dimensions=None)
    (drawn,), (dim,) = run_batched(lambda k, a: [_sample(k, a, log_space)], BatchAxis(size), flat, [0, 0])
    assert dim == 0
    return reshape(drawn, new_sizes=shape, dimensions=None)


def _one_by_one(keys: Any, alphas: Any, log_space: bool) -> Any:
    size = typeof(alphas).size

    def turn(i: Any, drawn: Any) -> list[Any]:
        key, alpha = (squeeze(dynamic_slice(x, i, slice_sizes=(1,)), dimensions=(0,)) for x in (keys, alphas))
        sample = reshape(_sample(key, alpha, log_space), new_sizes=(1,), dimensions=None)
        return [e.add(i, np.int32(1)), dynamic_update_slice(drawn, sample, i)]

    return repeat(lambda i, _: lt(i, np.int32(size)), turn, [np.int32(0), zeros(typeof(alphas))])[1]


def _types(keys: ShapedArray, alphas: ShapedArray, log_space: bool) -> ShapedArray:
    if not is_key(keys) or keys.shape != alphas.shape[: keys.ndim]:
        raise ShapeError(f"random_gamma: keys {keys.short} for parameters {alphas.short}", shapes=[keys.shape])
    return alphas


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], log_space: bool) -> tuple[Any, Any]:
    alphas = primals[1]
    out = random_gamma(*primals, log_space=log_space)
    t = tangents[1]
    if not log_space:
        return out, e.mul(t, sample_derivative(alphas, out))
    sample = exp(Formula(out))
    # d log(s) = ds / s. A sample that underflows is replaced by the smallest number, as the quotient has a finite
    # limit.
    sample = sample.equals(0).where(sample.full(dtypes.finfo(typeof(out).dtype).tiny), sample)
    return out, e.mul(t, e.div(sample_derivative(alphas, sample.x), sample.x))


def _batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], log_space: bool) -> tuple[Any, Dim]:
    placed = [place_axis(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]
    return random_gamma(*placed, log_space=log_space), 0


def _pad(padding: Padding, eqn: JaxprEqn, keys: Any, alphas: Any) -> Any:
    """Each element has a key that depends on its position alone; the loop has to end for padding too."""
    aval = eqn.invars[1].aval
    depends_on_count(eqn, aval.shape[eqn.invars[0].aval.ndim :])
    return pad_elementwise(padding, eqn, keys, padding.filled(alphas, aval, 1))


#: operands: keys, and parameters with the axes of the keys, then more axes; each key samples for its parameters
random_gamma = Primitive(
    "random_gamma",
    types=_types,
    sharding=batches,
    lower=lowered_as(_samples),
    jvp=_jvp,
    batch=_batch,
    pad=_pad,
    extend=with_impl,
    nan_checked=True,
)
