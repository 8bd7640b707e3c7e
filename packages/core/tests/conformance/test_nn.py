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

ACTIVATIONS = [
    *rows("nn", "selu elu relu relu6 gelu log_sigmoid softplus soft_sign leaky_relu tanh identity", *ACTIVATION,
        twice=True),
    *rows("nn", "sigmoid silu swish", *[c for c in ACTIVATION if c != call(S(2))], twice=True, dtypes=INEXACT),
    *rows("nn", "hard_tanh hard_sigmoid hard_silu hard_swish sparse_plus sparse_sigmoid celu squareplus", *ACTIVATION,
        twice=True, dtypes=judge.INTS + judge.FLOATS),
    row("nn.mish", *ACTIVATION, twice=True, dtypes=judge.FLOATS),
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
    row("scipy.stats.norm.cdf", call(A(2, 3)), call(A(2, 3), 1, 2), call(A(2, 3), loc=A(3), scale=A(3, low=0.5)),
        call(S(0.5)), call(S(1)), call(A(2), S(1.0), S(2.0)), twice=True, dtypes=[*judge.BOOL, *judge.INTS, "float32"]),
]  # fmt: skip

TABLE = ACTIVATIONS + NORMALISED + SPECIAL

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_second_derivative = second_derivatives(TABLE)
test_vmap = batches(TABLE)
test_64_bits = wide(TABLE)


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


def test_out_sharding_of_initializers():
    def case(m):
        with m.set_mesh(m.make_mesh((4,), ("x",))):
            made = [getattr(m.nn.initializers, name)(None, (8, 2), "float32", m.P("x")) for name in ("zeros", "ones")]
            return [(x, str(x.sharding.devices_indices_map(x.shape).values())) for x in made]

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
