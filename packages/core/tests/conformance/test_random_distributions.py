"""Samplers that are formulas of uniform numbers: the same numbers as jax's, to the last bits of the formula."""

import functools

import jax
import numpy as np
import pytest

import phlox
from conformance.harness import agree, outcome, row

#: Each number is a chain of logarithms and roots, whose last bit may differ from compilation to compilation.
NEAR = row("random", tolerance=2e-6)
P = np.array([0.1, 0.2, 0.0, 0.7], np.float32)
LOGITS = np.log(np.array([[0.2, 0.8, 1e-9], [0.5, 0.25, 0.25]], np.float32))
SHAPES = [(), (7,), (2, 3), (0,)]

SAMPLERS = {
    **{
        name: lambda m, key, shape, name=name: getattr(m.random, name)(key, shape)
        for name in ("exponential", "laplace", "logistic", "cauchy", "maxwell", "gumbel", "rademacher")
    },
    **{
        f"{name}({dtype})": lambda m, key, shape, name=name, dtype=dtype: getattr(m.random, name)(key, shape, dtype)
        for name in ("exponential", "laplace", "logistic", "gumbel")
        for dtype in ("float16", "bfloat16")
    },
    "rademacher(int8)": lambda m, key, shape: m.random.rademacher(key, shape, "int8"),
    "rademacher(float32)": lambda m, key, shape: m.random.rademacher(key, shape, dtype="float32"),
    "gumbel(high)": lambda m, key, shape: m.random.gumbel(key, shape, mode="high"),
    "gumbel(highest)": lambda m, key, shape: m.random.gumbel(key, shape, mode="highest"),
    "rayleigh": lambda m, key, shape: m.random.rayleigh(key, np.float32(2), shape),
    "lognormal": lambda m, key, shape: m.random.lognormal(key, shape=shape),
    "lognormal(sigma)": lambda m, key, shape: m.random.lognormal(key, np.float32(0.5), shape),
    "pareto": lambda m, key, shape: m.random.pareto(key, np.float32(3), shape),
    "weibull_min": lambda m, key, shape: m.random.weibull_min(key, 2.0, 1.5, shape),
    "triangular": lambda m, key, shape: m.random.triangular(key, -1.0, 0.5, 2.0, shape),
    "geometric": lambda m, key, shape: m.random.geometric(key, 0.3, shape),
    "geometric(int16)": lambda m, key, shape: m.random.geometric(key, 0.3, shape, "int16"),
    "wald": lambda m, key, shape: m.random.wald(key, np.float32(2), shape),
    "double_sided_maxwell": lambda m, key, shape: m.random.double_sided_maxwell(key, 1.0, 2.0, shape),
    "bernoulli(high)": lambda m, key, shape: m.random.bernoulli(key, 0.3, shape, "high"),
    "choice": lambda m, key, shape: m.random.choice(key, 9, shape),
    "choice(array)": lambda m, key, shape: m.random.choice(key, np.arange(12.0).reshape(4, 3), shape),
    "choice(axis)": lambda m, key, shape: m.random.choice(key, np.arange(12.0).reshape(4, 3), shape, axis=1),
    "choice(p)": lambda m, key, shape: m.random.choice(key, 4, shape, p=P),
    "choice, no replacement": lambda m, key, shape: m.random.choice(key, 20, shape, replace=False),
    "choice(array), no replacement": lambda m, key, shape: m.random.choice(
        key, np.arange(18.0).reshape(9, 2), shape, replace=False
    ),
    "choice(p), no replacement": lambda m, key, shape: m.random.choice(
        key, np.arange(8.0), shape, False, np.arange(1.0, 9.0, dtype=np.float32)
    ),
    "categorical": lambda m, key, shape: m.random.categorical(key, LOGITS, shape=(*shape, 2)),
    "categorical(axis)": lambda m, key, shape: m.random.categorical(key, LOGITS.T, 0, (*shape, 2)),
    "categorical(high)": lambda m, key, shape: m.random.categorical(key, LOGITS, shape=(*shape, 2), mode="high"),
    "categorical, no replacement": lambda m, key, shape: m.random.categorical(
        key, np.arange(20.0, dtype=np.float32).reshape(2, 10), shape=(*shape, 2), replace=False
    ),
}


def both(case, what="", jit=True):
    theirs = outcome(case, jax, ())
    agree(outcome(case, phlox, ()), theirs, NEAR, what)
    if jit:
        agree(outcome(lambda m: m.jit(functools.partial(case, m))(), phlox, ()), theirs, NEAR, what + " under jit")


@pytest.mark.parametrize("name", SAMPLERS)
def test_sampler(name):
    for shape in SHAPES:
        both(lambda m, shape=shape: SAMPLERS[name](m, m.random.key(11), shape), str(shape))
    both(lambda m: SAMPLERS[name](m, m.random.PRNGKey(3), (5,)), "old key")


@pytest.mark.parametrize("name", SAMPLERS)
def test_sampler_of_many_keys(name):
    both(lambda m: m.vmap(lambda k: SAMPLERS[name](m, k, (3,)))(m.random.split(m.random.key(5), 4)))


def test_shapes_follow_the_parameters():
    scale = np.array([[1.0], [2.0]], np.float32)
    for name in ("rayleigh", "lognormal", "pareto", "wald"):
        both(lambda m, name=name: getattr(m.random, name)(m.random.key(1), scale), name)
        both(lambda m, name=name: getattr(m.random, name)(m.random.key(1), scale, (2, 3)), name)
    both(lambda m: m.random.triangular(m.random.key(1), np.zeros(3, np.float32), 1.0, scale * 2))
    both(lambda m: m.random.geometric(m.random.key(1), np.array([0.1, 0.9], np.float32)))
    both(lambda m: m.random.weibull_min(m.random.key(1), scale, np.float32(2), (2, 3)))
    both(lambda m: m.random.double_sided_maxwell(m.random.key(1), np.zeros(3, np.float32), 1.0))
    both(lambda m: m.random.categorical(m.random.key(1), LOGITS))
    both(lambda m: m.random.categorical(m.random.key(1), LOGITS, axis=0))


#: samplers with a dtype, and how many parameters they take
TYPED = {
    **dict.fromkeys(
        [
            "cauchy",
            "exponential",
            "gumbel",
            "laplace",
            "logistic",
            "maxwell",
            "normal",
            "rademacher",
            "uniform",
            "bits",
        ],
        0,
    ),
    **dict.fromkeys(["chisquare", "dirichlet", "gamma", "generalized_normal", "geometric", "loggamma", "lognormal"], 1),
    **dict.fromkeys(["pareto", "poisson", "rayleigh", "t", "wald"], 1),
    **dict.fromkeys(["beta", "binomial", "double_sided_maxwell", "f", "truncated_normal", "weibull_min"], 2),
    "triangular": 3,
}


def test_dtypes():
    """Each sampler takes the dtypes that jax's takes. Nothing is compiled."""

    def taken(m, name, dtype):
        key, parameters = m.random.key(0), [np.full(2, 0.5, np.float32)] * TYPED[name]
        shape = () if parameters else ((2,),)
        try:
            return str(m.eval_shape(lambda k: getattr(m.random, name)(k, *parameters, *shape, dtype=dtype), key).dtype)
        except (TypeError, ValueError) as error:
            return next(kind for kind in (TypeError, ValueError) if isinstance(error, kind))

    for name in TYPED:
        for dtype in ("bool", "uint32", "complex64", "S3"):
            mine, theirs = taken(phlox, name, dtype), taken(jax, name, dtype)
            assert mine == theirs or (mine is TypeError and theirs is ValueError), (name, dtype, mine, theirs)
    scale = np.full((2, 3), 0.5, np.float32)
    both(lambda m: m.random.lognormal(m.random.key(1), scale, dtype="complex64"))


WRONG = [
    lambda m, k: m.random.exponential(k, (2,), "int32"),
    lambda m, k: m.random.gumbel(k, (2,), mode="highly"),
    lambda m, k: m.random.rayleigh(k, np.ones(3, np.float32), (2,)),
    lambda m, k: m.random.choice(k, 3, 3),
    lambda m, k: m.random.choice(k, 3, (4,), replace=False),
    lambda m, k: m.random.choice(k, 0, (1,)),
    lambda m, k: m.random.choice(k, 4, (1,), p=np.ones(3, np.float32)),
    lambda m, k: m.random.choice(k, np.ones(4), (1,), axis=2),
    lambda m, k: m.random.categorical(k, LOGITS, shape=(3,)),
    lambda m, k: m.random.categorical(k, LOGITS, shape=(4, 2), replace=False),
    lambda m, k: m.random.categorical(k, LOGITS, axis=3),
]


@pytest.mark.parametrize("position", range(len(WRONG)))
def test_wrong_arguments(position):
    both(lambda m: WRONG[position](m, m.random.key(0)), jit=False)


@pytest.mark.parametrize(
    "name", ["rayleigh", "pareto", "wald", "lognormal", "triangular", "beta", "t", "chisquare", "f"]
)
def test_parameters_that_do_not_fit_are_refused(name):
    """As jax refuses them: an array parameter of a wider dtype than the result's; Python numbers fit."""
    values = {"triangular": (0.0, 0.5, 1.0), "beta": (1.0, 2.0), "f": (3.0, 4.0)}.get(name, (2.0,))
    for m in (phlox, jax):
        draw = getattr(m.random, name)
        with pytest.raises(ValueError):
            draw(m.random.key(0), *map(np.float32, values), shape=(2,), dtype="float16")
    assert getattr(phlox.random, name)(phlox.random.key(0), *values, shape=(2,), dtype="float16").dtype == "float16"


@pytest.mark.parametrize("value", ["a", None])
@pytest.mark.parametrize(
    ("name", "arguments"),
    {
        "weibull_min": (2.0,), "rayleigh": (), "pareto": (), "wald": (), "chisquare": (), "dirichlet": (),
        "generalized_normal": (), "ball": (2,), "beta": (1.0,), "triangular": (0.0, 1.0), "t": (), "gamma": (),
    }.items(),
)  # fmt: skip
def test_errors_name_the_sampler(name, arguments, value):
    with pytest.raises(phlox.errors.ArgumentError, match=f"^{name} "):
        getattr(phlox.random, name)(phlox.random.key(0), *arguments, value)


def test_trials_are_counted_in_integers():
    for m in (phlox, jax):
        with pytest.raises(ValueError, match="int"):
            m.random.geometric(m.random.key(0), 0.5, (2,), "float32")
