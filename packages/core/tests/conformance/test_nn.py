"""phlox.nn and its initializers, phlox.scipy.special and phlox.scipy.stats.norm."""

import functools

import jax
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import (
    A,
    B,
    I,
    S,
    Special,
    agree,
    batches,
    call,
    gradients,
    outcome,
    row,
    rows,
    second_derivatives,
    values,
    wide,
)

ACTIVATION = [
    call(A(2, 3)),
    call(A()),
    call(A(0, 2)),
    call(A(6, whole=True)),
    call(Special()),
    call(S(0.5)),
    call(S(2)),
    call([1.0]),
]  # fmt: skip
SUMS = [
    call(A(2, 3)),
    call(A(2, 3), axis=0),
    call(A(2, 3, 4), (0, -1)),
    call(A(2, 3, 4), axis=(1,)),
    call(A(3), -1),
    call(A(2, 3), axis=1, where=B(2, 3)),
    call(A(0)),
    call(Special()),
    call(A(2), axis=2),
]  # fmt: skip

#: jax refuses integers in some functions, and computes others in them, where they overflow.
INEXACT = judge.FLOATS + judge.COMPLEX

#: In jax, -1 wraps around in unsigned integers.
SIGNED = [name for name in judge.INTS if not name.startswith("u")]

#: Of gated activations jax has nan at -inf, and of soft_sign at both infinities.
FINITE = [c for c in ACTIVATION if c != call(Special())]

ACTIVATIONS = [
    *rows("nn", "selu elu relu relu6 log_sigmoid softplus leaky_relu tanh identity", *ACTIVATION,
        twice=True),
    *rows("nn", "sigmoid", *[c for c in ACTIVATION if c != call(S(2))], twice=True, dtypes=INEXACT),
    *rows("nn", "silu swish", *[c for c in FINITE if c != call(S(2))], twice=True, dtypes=INEXACT),
    *rows("nn", "gelu soft_sign", *FINITE, twice=True),
    *rows("nn", "hard_sigmoid sparse_plus sparse_sigmoid celu squareplus", *ACTIVATION,
        twice=True, dtypes=judge.INTS + judge.FLOATS),
    row("nn.hard_tanh", *ACTIVATION, twice=True, dtypes=SIGNED + judge.FLOATS),
    *rows("nn", "hard_silu hard_swish", *FINITE, twice=True, dtypes=judge.INTS + judge.FLOATS),
    row("nn.mish", *FINITE, twice=True, dtypes=judge.FLOATS),
    row("nn.celu", call(A(3), 0.5), call(A(3), alpha=A(3, low=0.5)), twice=True, dtypes=judge.FLOATS),
    row("nn.squareplus", call(A(3), 1.0), call(A(3), b=A(3, low=0.5)), twice=True, dtypes=judge.FLOATS),
    row("nn.log1mexp", call(A(2, 3, low=0.1)), call(A(low=0.01, high=0.1)), call(A(3, low=3, high=30)), call(S(0.5)),
        call([1.0]), twice=True, dtypes=judge.FLOATS),
    row("nn.elu", call(A(3), 0.5), call(A(3), alpha=A(3)), call(A(3), S(2.0)), twice=True),
    row("nn.leaky_relu", call(A(3), 0.2), call(A(3), negative_slope=A(3)), twice=True),
    row("nn.gelu", call(A(3), False), call(A(2, 3), approximate=False), call(A(3), approximate=True), twice=True),
    row("nn.glu", call(A(2, 4)), call(A(4, 3), 0), call(A(2, 4, 2), axis=-2), call(A()), twice=True,
        dtypes=INEXACT),
]  # fmt: skip

NORMALISED = [
    *rows("nn", "softmax log_softmax", *SUMS, call(A(2, 3), None), call(S(1.0)), twice=True,
        dtypes=INEXACT),
    *[row(path, *SUMS, call(A(2, 3), keepdims=True), call(A(2, 3), b=A(2, 3, low=0.2)),
        call(A(2, 3), axis=1, b=A(3, low=0), keepdims=True), call(A(2, 3), b=B(2, 3)),
        call(A(2, 3), b=A(2, 3), return_sign=True), call(S(2.0)), twice=True) for path in ("nn.logsumexp",
        "scipy.special.logsumexp")],
    row("nn.logmeanexp", *SUMS, call(A(2, 3), keepdims=True), twice=True, dtypes=judge.FLOATS),
    row("nn.standardize", call(A(2, 3)), call(A(2, 3), 0), call(A(2, 3, 2), axis=(0, 2)),
        call(A(2, 3), mean=A(2, 1), variance=A(2, 1, low=0.5)), call(A(2, 3), epsilon=0.5),
        call(A(2, 3), where=B(2, 3)), call(A(4), variance=S(2.0)), twice=True),
    row("nn.one_hot", call(I(3, low=0), 4), call(I(2, 2), 3), call(I(), 3), call(I(3), 3, dtype="int8"),
        call(I(3), 3, axis=0), call(I(2, 2), 3, axis=1), call(I(2), 3, axis=-2), call(S(1), 3), call(A(2), 3),
        call(I(2), 0), call(I(2), 3, dtype="bfloat16"), call(I(2), 2.5), call(I(2), 3, axis=4)),
]  # fmt: skip

SPECIAL = [
    *rows("scipy.special", "erf erfc expit", call(A(2, 3)), call(A()), call(S(0.5)), call(S(1)), call(Special()),
        twice=True),
    row("scipy.special.erfinv", call(A(2, 3, low=-0.9, high=0.9)), call(S(0.5)), call(Special()), call(S(0)),
        twice=True),
    *rows("scipy.stats.norm", "pdf logpdf", call(A(2, 3)), call(A(2, 3), 1, 2),
        call(A(2, 3), loc=A(3), scale=A(3, low=0.5)), call(S(0.5)), call(S(1)), call(A(2), S(1.0), S(2.0)),
        call(A(2), A(2, dtype="other")), twice=True),
    # jax has no cdf of narrow floats.
    row("scipy.stats.norm.cdf", call(A(2, 3)), call(A(2, 3), 1, 2),
        call(A(2, 3), loc=A(3), scale=A(3, low=0.5, dtype="float32")),  # of a scale of 0 phlox has nan, as SciPy
        call(S(0.5)), call(S(1)), call(A(2), S(1.0), S(2.0)), twice=True, dtypes=[*judge.BOOL, *judge.INTS, "float32"]),
]  # fmt: skip

TABLE = ACTIVATIONS + NORMALISED + SPECIAL

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_second_derivative = second_derivatives(TABLE)
test_vmap = batches(TABLE)
test_64_bits = wide(TABLE)


@pytest.mark.parametrize("dtype", [name for name in judge.INTS if name not in SIGNED])
def test_hard_tanh_of_unsigned_integers(dtype):
    x = np.array([0, 1, 2, 200], dtype)
    judge.same_values(np.asarray(phlox.nn.hard_tanh(phlox.numpy.asarray(x))), np.minimum(x, 1), exact=True)


@pytest.mark.parametrize("name", ["sigmoid", "silu", "glu", "softmax", "log_softmax"])
@pytest.mark.parametrize("dtype", [*judge.BOOL, *judge.INTS])
def test_integers_give_what_their_floats_give(name, dtype):
    f, x = getattr(phlox.nn, name), judge.array(judge.rng(name, dtype), (3, 4), dtype)
    judge.same_values(*(np.asarray(f(phlox.numpy.asarray(v))) for v in (x, x.astype(np.float32))), exact=True)


# --- initializers


def both(case, *args, jit=True, what=""):
    theirs = outcome(case, jax, args)
    one = row("initializers", tolerance=1e-6)
    agree(outcome(case, phlox, args), theirs, one, what)
    if jit:
        run = lambda m, *xs: m.jit(functools.partial(case, m))(*xs)
        agree(outcome(run, phlox, args), theirs, row("initializers"), what + " under jit")


SCALED = [
    "glorot_uniform",
    "glorot_normal",
    "lecun_uniform",
    "lecun_normal",
    "he_uniform",
    "he_normal",
    "xavier_uniform",
    "xavier_normal",
    "kaiming_uniform",
    "kaiming_normal",
]
MADE = {
    **{
        name: lambda m, name=name: getattr(m.nn.initializers, name)()
        for name in ("uniform", "normal", "truncated_normal", *SCALED)
    },
    "uniform(0.5)": lambda m: m.nn.initializers.uniform(0.5),
    "normal(2)": lambda m: m.nn.initializers.normal(2),
    "truncated_normal(lower, upper)": lambda m: m.nn.initializers.truncated_normal(1.0, lower=-1, upper=0.5),
    "normal(dtype)": lambda m: m.nn.initializers.normal(0.1, "float16"),
    "constant(3)": lambda m: m.nn.initializers.constant(3),
    "constant(2.5)": lambda m: m.nn.initializers.constant(2.5),
    "constant(array)": lambda m: m.nn.initializers.constant(m.numpy.arange(3.0)),
    "zeros": lambda m: m.nn.initializers.zeros,
    "ones": lambda m: m.nn.initializers.ones,
}


@pytest.mark.parametrize("name", MADE)
def test_initializer(name):
    for shape in ((4, 3), (2, 2, 5, 3)):
        both(lambda m, shape=shape: MADE[name](m)(m.random.key(3), shape), what=str(shape))
    both(lambda m: MADE[name](m)(m.random.PRNGKey(1), (5, 3), "float32"), what="float32")
    both(lambda m: MADE[name](m)(m.random.key(1), (5, 3), dtype="bfloat16"), what="bfloat16")
    both(lambda m: m.vmap(lambda k: MADE[name](m)(k, (2, 3)))(m.random.split(m.random.key(0), 2)), what="vmap")
    both(lambda m: MADE[name](m)(m.random.key(0), (3,)), jit=False, what="a vector")
    both(lambda m: MADE[name](m)(m.random.key(0), (2, 3), "int32"), jit=False, what="int32")


def test_orthogonal_initializers():
    flat = lambda m, **o: m.nn.initializers.orthogonal(**o)
    deep = lambda m, **o: m.nn.initializers.delta_orthogonal(**o)
    for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 4), (0, 2), (3,)):
        both(lambda m, s=shape: flat(m)(m.random.key(2), s), what=f"orthogonal{shape}")
        both(
            lambda m, s=shape: flat(m, scale=2, column_axis=0)(m.random.key(2), s), jit=False, what=f"columns, {shape}"
        )
    for shape in ((3, 2, 2), (4, 3, 2, 5), (1, 2, 3, 2, 2), (3, 3), (3, 4, 2)):
        both(lambda m, s=shape: deep(m, scale=0.5)(m.random.key(2), s), jit=False, what=f"delta_orthogonal{shape}")
    for make in (flat, deep):
        both(lambda m, make=make: make(m, dtype="complex64")(m.random.key(2), (3, 2, 2)), jit=False)
        both(lambda m, make=make: make(m)(m.random.key(2), (3, 2, 2), "int32"), jit=False)


def test_orthogonal_initializers_of_half_precision():
    """jax refuses them, as there are no routines for half precision."""
    for dtype in ("float16", "bfloat16"):
        x = phlox.nn.initializers.orthogonal()(phlox.random.key(2), (6, 4), dtype)
        assert x.dtype == dtype
        np.testing.assert_allclose(np.float32(x).T @ np.float32(x), np.eye(4), atol=0.02)
        single = phlox.nn.initializers.orthogonal()(phlox.random.key(2), (6, 4))
        np.testing.assert_array_equal(x, single.astype(dtype))


@pytest.mark.parametrize("name", MADE)
def test_out_sharding_of_initializers(name):
    def case(m):
        with m.set_mesh(m.make_mesh((4,), ("x",))):
            x = MADE[name](m)(m.random.key(0), (8, 3), "float32", m.P("x"))
            return x, str(x.sharding.devices_indices_map(x.shape).values())

    both(case, jit=False)


@pytest.mark.parametrize("mode", ["fan_in", "fan_out", "fan_avg", "fan_geo_avg", "nonsense"])
@pytest.mark.parametrize("distribution", ["truncated_normal", "normal", "uniform", "nonsense"])
def test_variance_scaling(mode, distribution):
    make = lambda m, **axes: m.nn.initializers.variance_scaling(2.0, mode, distribution, **axes)
    both(lambda m: make(m)(m.random.key(0), (3, 4)))
    both(lambda m: make(m, in_axis=0, out_axis=1)(m.random.key(0), (3, 4, 5)), jit=False)
    both(lambda m: make(m, in_axis=(0, 1), out_axis=-1, batch_axis=2)(m.random.key(0), (3, 4, 2, 5)), jit=False)
    both(lambda m: make(m, dtype="float16")(m.random.key(0), (3, 4)), jit=False)


def test_variance_scaling_of_complex_numbers():
    for distribution in ("truncated_normal", "normal", "uniform"):
        both(
            lambda m, d=distribution: m.nn.initializers.variance_scaling(1.0, "fan_in", d)(
                m.random.key(0), (3, 4), "complex64"
            ),
            jit=False,
            what=distribution,
        )


@pytest.mark.parametrize("name", SCALED)
def test_axes_of_scaled_initializers(name):
    both(lambda m: getattr(m.nn.initializers, name)(in_axis=0, out_axis=(1, 2))(m.random.key(5), (3, 4, 5)), jit=False)
    both(
        lambda m: getattr(m.nn.initializers, name)(batch_axis=(0,), dtype="bfloat16")(m.random.key(5), (3, 4, 5)),
        jit=False,
    )


# --- products in few bits ------------------------------------------------------------------------------------


@pytest.fixture
def jax_scales_on_cpus():
    """jax compiles scaled_matmul for GPUs alone. Its definition by jax's own words, as a rule for CPUs: the judge."""
    from jax._src.cudnn import scaled_matmul_stablehlo as theirs
    from jax.interpreters import mlir

    def definition(a, b, a_scales, b_scales, *, preferred_element_type):
        wide = lambda x, s: (
            x.astype("float32") * jax.numpy.repeat(s.astype("float32"), x.shape[-1] // s.shape[-1], axis=-1)
        )
        out = jax.numpy.einsum("bmk,bnk->bmn", wide(a, a_scales), wide(b, b_scales))
        return [out.astype(preferred_element_type)]

    mlir.register_lowering(theirs._scaled_matmul_p, mlir.lower_fun(definition, multiple_results=True), platform="cpu")
    yield
    del mlir._platform_specific_lowerings["cpu"][theirs._scaled_matmul_p]


def scaled(shape, dtype, *seed):
    return judge.array(judge.rng("scaled", *seed), shape, "float32").astype(np.dtype(dtype))


SCALED = {
    "mxfp8": ((2, 3, 64), (2, 4, 64), (2, 3, 2), (2, 4, 2), "float8_e4m3fn", "float8_e8m0fnu"),
    "nvfp4": ((1, 2, 32), (1, 3, 32), (1, 2, 2), (1, 3, 2), "float4_e2m1fn", "float8_e4m3fn"),
    "floats": ((2, 3, 6), (2, 1, 6), (2, 3, 3), (2, 1, 3), "float32", "float32"),
    "integers": ((2, 3, 6), (2, 1, 6), (2, 3, 1), (2, 1, 1), "int32", "bfloat16"),
    "other rank": ((3, 6), (1, 6), (3, 1), (1, 1), "float32", "float32"),
    "other batches": ((2, 3, 6), (1, 1, 6), (2, 3, 1), (1, 1, 1), "float32", "float32"),
    "other lengths": ((2, 3, 6), (2, 1, 5), (2, 3, 1), (2, 1, 1), "float32", "float32"),
    "other numbers of scales": ((2, 3, 6), (2, 1, 6), (2, 3, 1), (2, 1, 2), "float32", "float32"),
    "scales of other rows": ((2, 3, 6), (2, 1, 6), (2, 1, 1), (2, 1, 1), "float32", "float32"),
}


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("wanted", [None, "bfloat16"])
def test_scaled_matmul(name, wanted, jax_scales_on_cpus):
    *shapes, data, scales = SCALED[name]
    kind = lambda n: getattr(phlox.numpy, n).dtype
    args = [scaled(s, kind(data), name, i) for i, s in enumerate(shapes[:2])]
    args += [np.abs(scaled(s, kind(scales), name, i)) for i, s in enumerate(shapes[2:])]
    more = [] if wanted is None else [wanted]
    case = lambda m, *xs: m.nn.scaled_matmul(*map(m.numpy.asarray, xs), *more)
    theirs = outcome(case, jax, args)
    agree(outcome(case, phlox, args), theirs, row("nn.scaled_matmul"), name)
    agree(outcome(lambda m, *xs: m.jit(functools.partial(case, m))(*xs), phlox, args), theirs, row("nn"), name)


def configs(m, mode, scale):
    if mode is None:
        return None
    options = () if scale is None else (m.numpy.array([scale], "float32"),)
    return [m.nn.get_scaled_dot_general_config(mode, *options) for _ in range(3)]


DOTS = {
    "matrices": ((4, 64), (32, 64), (((1,), (1,)), ((), ()))),
    "batches": ((2, 32, 64), (2, 32, 64), (((2,), (2,)), ((0,), (0,)))),
    "batch last, two contracted": ((4, 8, 32, 2), (8, 4, 2, 32), (((0, 1), (1, 0)), ((3,), (2,)))),
    "free axes": ((2, 16, 64), (64, 4, 8), (((2,), (0,)), ((), ()))),
    "lists": ((32, 64), (32, 64), [[[1], [1]], [[], []]]),
    "too short": ((4, 8), (4, 8), (((1,), (1,)), ((), ()))),
    "not divided": ((4, 72), (4, 72), (((1,), (1,)), ((), ()))),
}
FORMATS = [("mxfp8", None), ("nvfp4", None), ("nvfp4", 0.25), (None, None)]
if jax.__version_info__ >= (0, 12):
    FORMATS.append(("mxfp4", None))


def both_dots(run, name, mode, scale, wanted, dtype="float32"):
    left, right, numbers = DOTS[name]
    args = [judge.array(judge.rng("dots", name, i), s, dtype) for i, s in enumerate((left, right))]

    def case(m, *xs):
        dot = lambda x, y: m.nn.scaled_dot_general(x, y, numbers, wanted, configs(m, mode, scale))
        return run(m, dot, *map(m.numpy.asarray, xs))

    mine, theirs = outcome(case, phlox, args), outcome(case, jax, args)
    if isinstance(theirs[1], AssertionError):  # jax's checks of blocks are assertions
        assert isinstance(mine[1], ValueError)
        return
    agree(mine, theirs, row("nn.scaled_dot_general"), name, tolerance=1e-2 if wanted == "bfloat16" else 1e-5)


@pytest.mark.parametrize("name", [n for n in DOTS if n != "batch last, two contracted"])
@pytest.mark.parametrize(("mode", "scale"), FORMATS)
def test_scaled_dot_general(name, mode, scale, jax_scales_on_cpus):
    both_dots(lambda m, dot, x, y: dot(x, y), name, mode, scale, "float32")
    both_dots(lambda m, dot, x, y: m.jit(dot)(x, y), name, mode, scale, "bfloat16")


def test_scaled_dot_general_contracts_pairs_of_axes():
    """In jax axes are paired by their order in each array, whatever the dimension numbers say."""
    left, right, numbers = DOTS["batch last, two contracted"]
    x, y = (np.float32(judge.rng(i).integers(-2, 3, s)) for i, s in enumerate((left, right)))
    found = phlox.nn.scaled_dot_general(x, y, numbers, configs=configs(phlox, "mxfp8", None))
    np.testing.assert_array_equal(found, jax.lax.dot_general(x, y, numbers))


@pytest.mark.parametrize("name", ["matrices", "batches"])
@pytest.mark.parametrize(("mode", "scale"), FORMATS[:3])
def test_derivatives_of_scaled_dot_general(name, mode, scale, jax_scales_on_cpus):
    # Squares are the same bits in both: of sines the last may differ, and is rounded to four bits in the backward pass.
    loss = lambda m, dot: lambda x, y: (m.numpy.square(dot(x, y)) * 3).sum()
    both_dots(lambda m, dot, x, y: m.grad(loss(m, dot), (0, 1))(x, y), name, mode, scale, "float32")
    both_dots(lambda m, dot, x, y: m.grad(loss(m, dot), (0, 1))(100 * x, y), name, mode, scale, "float32")


def test_what_is_quantized_at_the_ends_of_the_range(jax_scales_on_cpus):
    x = np.zeros((1, 32 * 8), np.float32)
    x[0, ::32] = [0.0, 1e-45, 1e-40, 3e38, 448.0, 449.0, np.inf, 2.0**-120]
    y = np.ones((1, 32 * 8), np.float32)
    numbers = (((1,), (1,)), ((), ()))
    for block in range(8):
        part = slice(32 * block, 32 * block + 32)
        case = lambda m, i=part: m.nn.scaled_dot_general(
            m.numpy.asarray(x[:, i]), m.numpy.asarray(y[:, i]), numbers, configs=configs(m, "mxfp8", None)
        )
        agree(outcome(case, phlox, []), outcome(case, jax, []), row("nn"), f"block {block}")


def test_settings_of_scaled_dot_general():
    for mode in ("nvfp4", "mxfp8"):
        mine, theirs = phlox.nn.get_scaled_dot_general_config(mode), jax.nn.get_scaled_dot_general_config(mode)
        for name in ("mode", "block_size", "data_type", "scale_type", "infer_only"):
            assert getattr(mine, name) == getattr(theirs, name), name
        assert (mine.global_scale is None) == (theirs.global_scale is None)
    with pytest.raises(phlox.errors.OptionError, match="mxfp4 has no global_scale"):
        phlox.nn.get_scaled_dot_general_config("mxfp4", 2.0)
    assert phlox.nn.get_scaled_dot_general_config("mxfp4").data_type == phlox.numpy.float4_e2m1fn.dtype.type
    assert phlox.nn.get_scaled_dot_general_config("mxfp8", 2.0).global_scale is None
    assert jax.nn.get_scaled_dot_general_config("mxfp8", 2.0).global_scale is None
    same = lambda case: agree(outcome(case, phlox, []), outcome(case, jax, []), row("nn"), "")
    x, numbers = np.ones((2, 32), np.float32), (((1,), (1,)), ((), ()))
    same(lambda m: m.nn.get_scaled_dot_general_config("int8"))
    same(lambda m: m.nn.scaled_dot_general(m.numpy.asarray(x), m.numpy.asarray(x), numbers, "int8"))
    same(lambda m: m.nn.scaled_dot_general(x, x, numbers, "int8", configs(m, "mxfp8", None)))
    with pytest.warns(DeprecationWarning):
        phlox.nn.scaled_dot_general(x, x, numbers, implementation="cudnn")


@pytest.mark.parametrize(
    ("in_axis", "out_axis", "shape"),
    [([0], [], (4,)), ([], [0], (4,)), ([], [], ()), (0, -1, (3,)), ({}, range(1), (2, 3))],
)
def test_initializers_of_vectors(in_axis, out_axis, shape):
    made = lambda m: m.nn.initializers.variance_scaling(1.0, "fan_in", "normal", in_axis=in_axis, out_axis=out_axis)(
        m.random.key(0), shape
    )
    np.testing.assert_allclose(np.asarray(made(phlox)), np.asarray(made(jax)), rtol=1e-6)


@pytest.mark.parametrize("shape", [2, np.int64(3)])
def test_shapes_that_are_numbers(shape):
    initializers = phlox.nn.initializers
    assert initializers.variance_scaling(1.0, "fan_in", "normal", 0, ())(phlox.random.key(0), shape).shape == (shape,)
    for init in (initializers.orthogonal(), initializers.delta_orthogonal(), initializers.lecun_normal()):
        with pytest.raises(phlox.errors.ShapeError):
            init(phlox.random.key(0), shape)


def test_initializers_of_weights_without_elements():
    for name in ("lecun_normal", "he_uniform", "orthogonal"):
        for shape in ((0, 3), (3, 0), (0, 0, 2)):  # where jax divides by zero
            assert getattr(phlox.nn.initializers, name)()(phlox.random.key(0), shape).shape == shape


def test_activations_at_infinities():
    """jax has nan: 0 * inf, and of soft_sign inf / inf. (The derivative of gelu at -inf is nan here too.)"""
    x = np.float32([-np.inf, np.inf])
    for name in ("silu", "gelu", "mish", "hard_silu"):
        np.testing.assert_array_equal(getattr(phlox.nn, name)(x), [0, np.inf], err_msg=name)
        assert name == "gelu" or float(phlox.grad(getattr(phlox.nn, name))(x[0])) == 0
    np.testing.assert_array_equal(phlox.nn.gelu(x, approximate=False), [0, np.inf])
    np.testing.assert_array_equal(phlox.nn.soft_sign(x), [-1, 1])
    np.testing.assert_array_equal(phlox.vmap(phlox.grad(phlox.nn.soft_sign))(x), [0, 0])


@pytest.mark.parametrize("name", ["elu", "selu", "celu", "leaky_relu", "hard_sigmoid", "sparse_sigmoid", "mish"])
def test_activations_refuse_lists(name):
    with pytest.raises(TypeError, match="requires ndarray or scalar arguments"):
        getattr(phlox.nn, name)([1.0, 2.0])


@pytest.mark.parametrize("algorithm", ["fast", "stable"])
def test_variances_of_complex_numbers(algorithm):
    x = np.array([1 + 2j, -1], np.complex64)
    with pytest.raises(phlox.errors.DtypeError, match="standardize"):
        phlox.nn.standardize(x, algorithm=algorithm)
    np.testing.assert_allclose(phlox.nn.standardize(x, variance=4.0, epsilon=0), [0.5 + 0.5j, -0.5 - 0.5j])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "uint8", "bool"])
def test_standardize_computes_in_floats(dtype):
    """Half precision is rounded once, and integers are not subtracted before: jax is 0.06 off, 33, and wraps."""
    random = judge.rng("standardize", dtype)
    bound = {"float16": 1e-3, "bfloat16": 8e-3}.get(dtype, 1e-6)
    for _ in range(50):
        x = judge.array(random, (2, 3), dtype, high=3)
        wide = x.astype(float)
        mean, variance = wide.mean(-1, keepdims=True), wide.var(-1, keepdims=True)
        exact = (wide - mean) / np.sqrt(variance + 1e-5)
        options = {} if bound > 1e-6 else {"mean": np.float32(mean), "variance": np.float32(variance)}
        np.testing.assert_allclose(np.asarray(phlox.nn.standardize(x, **options), float), exact, rtol=0, atol=bound)


def test_sums_of_exponentials_beyond_float16():
    """jax has -inf, 0 and inf for the first three, and -inf for the derivatives (thread 40409 of jax-ml/jax)."""
    n = 2**17
    x = np.zeros(n, np.float16)
    nn = phlox.nn
    np.testing.assert_allclose(nn.log_softmax(x), -np.log(n), rtol=1e-3)
    np.testing.assert_allclose(nn.softmax(x).astype("float32"), 1 / n, rtol=1e-2)
    np.testing.assert_allclose(nn.logsumexp(x), np.log(n), rtol=1e-3)
    np.testing.assert_allclose(nn.logmeanexp(x), 0, atol=1e-3)
    np.testing.assert_allclose(phlox.scipy.special.log_softmax(x), -np.log(n), rtol=1e-3)
    x[0] = 9
    shares = np.exp(x.astype(float)) / np.exp(x.astype(float)).sum()
    slopes = phlox.grad(lambda x: nn.log_softmax(x).sum())(x)
    np.testing.assert_allclose(slopes, 1 - n * shares, rtol=5e-3, atol=1e-3)
    for function in (nn.softmax, nn.log_softmax, nn.logsumexp, nn.logmeanexp):
        assert function(x[:3]).dtype == x.dtype
    assert [part.dtype for part in nn.logsumexp(x[:3], return_sign=True)] == [x.dtype] * 2


def test_the_logarithm_of_the_modulus_of_a_complex_sum_is_real():
    x = np.array([1 + 2j, -3 - 1j], np.complex64)
    modulus, phase = phlox.nn.logsumexp(x, return_sign=True)
    total = np.exp(x).sum()
    assert (modulus.dtype, phase.dtype) == (np.float32, np.complex64)
    np.testing.assert_allclose(modulus, np.log(abs(total)), rtol=1e-5)
    np.testing.assert_allclose(phase, total / abs(total), rtol=1e-5)
