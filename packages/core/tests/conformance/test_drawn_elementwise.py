"""Drawn calls of elementwise functions: phlox.numpy promotes and broadcasts, phlox.lax does the one and the other sparingly."""

from conformance.drawn import every, values
from conformance.harness import S, call


def unary(kinds="bifcn"):
    return lambda d: call(d.number() if d.chance(0.1) else d.array(kinds=kinds, odd=True))


def binary(kinds="bifc", **ranges):
    return lambda d: call(*d.operands(2, kinds, odd=True, **ranges))


def nan_to_num(d):
    options = {"nan": [1.0, None], "posinf": [2.0, S(3.0)], "neginf": [-1]}
    return call(d.array(odd=True), **d.some(**options))


def unwrap(d):
    x = d.array(d.shape(1), "iiffc")
    return call(x, **d.some(axis=[d.axis(len(x.shape))], discont=[1.0, 4.0], period=[1.0, 3, 2.5]))


def clip(d):
    x, low, high = d.operands(3, "bif")
    kind = d.pick("both", "low", "high", "keywords", "none")
    if kind == "both":
        return call(x, low, high)
    if kind == "low":
        return call(x, low)
    if kind == "high":
        return call(x, None, high)
    return call(x, max=high, min=d.pick(low, None)) if kind == "keywords" else call(x)


def where(d):
    mask, x, y = d.operands(3)
    mask = d.array(mask.shape, "b") if hasattr(mask, "shape") else mask
    return call(mask, x, y)


def select(d):
    shapes, dtype, count = d.shapes(2), d.dtype(), d.integer(1, 2)
    conditions = [d.array(shapes[0], "b") for _ in range(count)]
    choices = [d.array(shapes[0], dtype=d.pick(dtype, d.dtype())) for _ in range(count)]
    return call(conditions, choices, *d.pick([], [d.number()], [d.array(shapes[1])]))


def choose(d):
    shapes, dtype, count = d.shapes(3), d.dtype(), d.integer(1, 3)
    choices = [d.array(d.pick(*shapes[1:]), dtype=dtype) for _ in range(count)]
    index = d.array(shapes[0], "i", low=0 if d.chance(0.7) else -2, high=count - 1 + d.chance(0.3))
    return call(index, choices, **d.some(mode=["wrap", "clip", "clip", "raise", "nonsense"]))


def piecewise(d):
    x = d.array(kinds="iffc")
    conditions = [d.array(x.shape, "b") for _ in range(2)]
    choices = [lambda v: v * 2, 1, lambda v: -v][: d.integer(2, 3)]
    return call(x, d.pick(conditions, conditions, tuple(conditions)), choices)


def close(d):
    x, y = d.operands(2, "bifc", odd=True)
    if d.chance(0.4):
        y = x
    return call(x, y, **d.some(rtol=[1e-3, S(0.5), 0], atol=[0.0, 1.0], equal_nan=[True, False]))


def equal(d):
    x, y = d.operands(2, odd=True)
    return call(x, d.pick(x, y), **d.some(equal_nan=[True, False]))


def equivalent(d):
    x, y = d.operands(2)
    return call(x, d.pick(x, y))


NUMPY = {
    **every("numpy", "abs absolute acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh cbrt ceil conj "
        "conjugate cos cosh deg2rad degrees exp expm1 fabs floor frexp i0 imag iscomplex iscomplexobj isfinite isinf "
        "isnan isneginf isposinf isreal isrealobj isscalar log log10 log1p log2 logical_not modf negative positive rad2deg "
        "radians real reciprocal rint sign signbit sin sinc sinh spacing sqrt square tan tanh trunc", unary()),
    **every("numpy", "bitwise_count bitwise_invert bitwise_not invert", unary("biin")),
    # Without half precision, whose exponents jax rounds first: test_exp2_of_half_precision.
    "numpy.exp2": lambda d: call(d.array(dtype=d.pick("bool", "int32", "float32", "complex64"), odd=True)),
    "numpy.angle": lambda d: call(d.array(odd=True), **d.some(deg=[True, False])),
    **every("numpy", "around round", lambda d: call(d.array(odd=True), *d.pick([], [0], [1], [2], [-1]))),
    "numpy.nan_to_num": nan_to_num,
    "numpy.unwrap": unwrap,
    **every("numpy", "add arctan2 atan2 copysign divide divmod equal float_power floor_divide fmax fmin fmod greater "
        "greater_equal heaviside hypot less less_equal logaddexp logaddexp2 logical_and logical_or logical_xor maximum "
        "minimum mod multiply nextafter not_equal pow power remainder subtract true_divide", binary()),
    **every("numpy", "bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor gcd lcm left_shift right_shift",
        binary("biii")),
    "numpy.ldexp": lambda d: call(d.operands(1, "bif")[0], d.array(d.pick((), (3,), (2, 3)), "i")),
    "numpy.clip": clip,
    "numpy.where": where,
    "numpy.select": select,
    "numpy.choose": choose,
    "numpy.piecewise": piecewise,
    **every("numpy", "isclose allclose", close),
    "numpy.array_equal": equal,
    "numpy.array_equiv": equivalent,
}  # fmt: skip


def lax_unary(kinds):
    return lambda d: call(d.number() if d.chance(0.1) else d.array(kinds=kinds if d.chance(0.9) else "bifcn", odd=True))


def lax_binary(kinds):
    """Arrays of one dtype and shape, or such that lax refuses or broadcasts, or a number beside an array."""

    def draw(d):
        if d.chance(0.25):
            return call(*d.operands(2, kinds))
        found = d.alike(2, kinds=kinds if d.chance(0.9) else "bifcn", odd=True)
        if d.chance(0.2):
            found[d.integer(0, 1)] = d.number(kinds)
        return call(*found)

    return draw


def with_accuracy(d):
    return call(d.array(kinds="ffc", odd=True), **d.some(accuracy=[None]))


def lax_gamma(count, kinds="f"):
    def draw(d):
        found = d.alike(count, kinds=kinds, low=0.1, high=2.0)
        if d.chance(0.2):
            found[d.integer(0, count - 1)] = d.number("f")
        return call(*found)

    return draw


def clamp(d):
    low, x, high = d.alike(3, kinds="iiff")
    kind = d.pick("arrays", "arrays", "scalars", "numbers")
    if kind == "scalars":
        low, high = d.array((), dtype=x.dtype), d.array((), dtype=x.dtype)
    if kind == "numbers":
        low, high = S(-1), S(2)
    return call(low, x, high)


def lax_select(d):
    x, y = d.alike(2)
    return call(d.array(d.pick(x.shape, x.shape, ()), d.pick("b", "b", "b", "i")), x, y)


def select_n(d):
    count = d.integer(1, 3)
    cases = d.alike(count)
    shape = d.pick(cases[0].shape, cases[0].shape, ())
    which = d.array(shape, "b") if count < 3 and d.chance(0.7) else d.array(shape, dtype="int32", low=0, high=count - 1)
    return call(which, *cases)


def lax_round(d):
    return call(d.array(kinds="f", odd=True), *d.pick([], [0], [1]))


LAX = {
    # jax refuses narrow integers here, and takes them in the sign beside it.
    "lax.abs": lambda d: call(d.array(dtype=d.dtype("biifc", stray=0), odd=True)),
    **every("lax", "acos acosh asin asinh atan atanh cosh digamma erf erf_inv erfc lgamma sinh bessel_i0e bessel_i1e", lax_unary("fffc")),
    **every("lax", "cbrt cos exp expm1 log log1p logistic rsqrt sin sqrt tan tanh", with_accuracy),
    "lax.exp2": lambda d: call(d.array(dtype=d.pick("float32", "complex64"), odd=True), **d.some(accuracy=[None])),
    **every("lax", "ceil floor is_finite", lax_unary("f")),
    **every("lax", "neg sign square reciprocal stop_gradient optimization_barrier stage", lax_unary("iifcn")),
    **every("lax", "bitwise_not clz population_count", lax_unary("biiin")),
    **every("lax", "conj imag real", lax_unary("fccc")),
    "lax.round": lax_round,
    "lax.reduce_precision": lambda d: call(d.array(kinds="f", odd=True), d.integer(0, 8), d.integer(-1, 10)),
    "lax.integer_pow": lambda d: call(d.array(kinds="iffc"), d.pick(-3, -1, 0, 1, 2, 3, 5, 1.5)),
    "lax.convert_element_type": lambda d: call(d.array(kinds="bifcn", low=0, high=3), d.pick(d.dtype("bifcn"), float, int, bool)),
    "lax.bitcast_convert_type": lambda d: call(d.array(d.pick((4,), (3, 4), (2, 2), ()), "ifn"), d.dtype("ifn")),
    **every("lax", "add div eq ge gt le lt max min mul ne pow rem sub", lax_binary("iiffc")),
    **every("lax", "atan2 nextafter", lax_binary("f")),
    **every("lax", "bitwise_and bitwise_or bitwise_xor shift_left shift_right_arithmetic shift_right_logical mulhi", lax_binary("biiii")),
    "lax.complex": lambda d: call(*d.alike(2, kinds="f", odd=True)),
    **every("lax", "igamma igammac igamma_grad_a polygamma", lax_gamma(2)),
    "lax.random_gamma_grad": lambda d: call(*d.alike(2, kinds="f", low=0.1, high=2.0)),
    "lax.zeta": lambda d: call(*d.alike(2, kinds="f", low=1.2, high=3.0)),
    "lax.betainc": lax_gamma(3),
    "lax.clamp": clamp,
    "lax.select": lax_select,
    "lax.select_n": select_n,
}  # fmt: skip

TABLE = NUMPY | LAX

test_like_jax = values(TABLE)
