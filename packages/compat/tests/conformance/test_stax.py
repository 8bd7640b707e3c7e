"""phlox.example_libraries.stax against jax's: shapes, parameters by the same keys, outputs, gradients."""

import jax
import numpy as np
import pytest
from jax.example_libraries import stax as theirs

import judge
import phlox
from phlox.example_libraries import stax as ours

IMAGE, SEQUENCE, MATRIX = (2, 8, 9, 3), (2, 9, 3), (4, 5)

LAYERS = {
    "Dense": (lambda s: s.Dense(7), MATRIX),
    "Dense, three axes": (lambda s: s.Dense(1), SEQUENCE),
    "Dense, initializers": (lambda s: s.Dense(4, s.glorot(), s.zeros), MATRIX),
    "GeneralConv": (lambda s: s.GeneralConv(("NCHW", "OIHW", "NCHW"), 4, (3, 3), padding="SAME"), (2, 3, 8, 9)),
    "GeneralConv, one axis": (lambda s: s.GeneralConv(("NWC", "WIO", "NWC"), 4, (3,), (2,)), SEQUENCE),
    "Conv": (lambda s: s.Conv(4, (3, 3)), IMAGE),
    "Conv, strides": (lambda s: s.Conv(4, (3, 2), strides=(2, 1), padding="SAME", b_init=s.ones), IMAGE),
    "Conv, pairs": (lambda s: s.Conv(4, (3, 3), padding=[(1, 0), (2, 1)]), IMAGE),
    "Conv1DTranspose": (lambda s: s.Conv1DTranspose(4, (3,), (2,)), SEQUENCE),
    "ConvTranspose": (lambda s: s.ConvTranspose(4, (3, 3), (2, 2), padding="SAME"), IMAGE),
    "GeneralConvTranspose": (lambda s: s.GeneralConvTranspose(("NWC", "WIO", "NWC"), 4, (2,)), SEQUENCE),
    "BatchNorm": (lambda s: s.BatchNorm(), IMAGE),
    "BatchNorm, one axis": (lambda s: s.BatchNorm(axis=0, epsilon=1e-3, beta_init=s.ones), MATRIX),
    "BatchNorm, no center": (lambda s: s.BatchNorm(center=False), IMAGE),
    "BatchNorm, no scale": (lambda s: s.BatchNorm(scale=False), IMAGE),
    "MaxPool": (lambda s: s.MaxPool((2, 2), (2, 2)), IMAGE),
    "MaxPool, spec": (lambda s: s.MaxPool((2, 2), spec="NCHW"), (2, 3, 8, 9)),
    "SumPool": (lambda s: s.SumPool((3, 2), padding="SAME"), IMAGE),
    "AvgPool": (lambda s: s.AvgPool((2, 2), (2, 1)), IMAGE),
    "AvgPool, same": (lambda s: s.AvgPool((3, 3), padding="SAME"), IMAGE),
    "AvgPool, spec": (lambda s: s.AvgPool((2, 2), padding="SAME", spec="NCHW"), (2, 3, 8, 9)),
    "Flatten": (lambda s: s.Flatten, IMAGE),
    "Identity": (lambda s: s.Identity, MATRIX),
    "elementwise": (lambda s: s.elementwise(s.leaky_relu, negative_slope=0.3), MATRIX),
    "Dropout": (lambda s: s.Dropout(0.7), (40, 5)),
    "Dropout, test": (lambda s: s.Dropout(0.7, mode="test"), MATRIX),
    "FanOut and FanInSum": (lambda s: s.serial(s.FanOut(3), s.FanInSum), MATRIX),
    "FanInConcat": (lambda s: s.serial(s.FanOut(2), s.parallel(s.Dense(3), s.Dense(4)), s.FanInConcat()), MATRIX),
    "shape_dependent": (lambda s: s.shape_dependent(lambda shape: s.Dense(2 * shape[-1])), MATRIX),
    "a network": (
        lambda s: s.serial(
            s.Conv(4, (3, 3), padding="SAME"), s.BatchNorm(), s.Relu, s.MaxPool((2, 2)), s.Dropout(0.8),
            s.serial(s.FanOut(2), s.parallel(s.Identity, s.Conv(4, (1, 1))), s.FanInSum),
            s.Flatten, s.Dense(4), s.LogSoftmax,
        ),
        IMAGE,
    ),
    **{
        name: (lambda s, name=name: getattr(s, name), MATRIX)
        for name in ["Tanh", "Relu", "Exp", "LogSoftmax", "Softmax", "Softplus", "Sigmoid", "Elu", "LeakyRelu", "Selu", "Gelu"]
    },
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name):
    make, shape = LAYERS[name]
    random = judge.rng("stax", name)
    for _ in range(judge.CASES):
        x = judge.array(random, shape, "float32")
        seed, drawn = (int(n) for n in random.integers(0, 2**31, 2))
        results = []
        for package, stax in ((phlox, ours), (jax, theirs)):
            init, apply = make(stax)
            output_shape, params = init(package.random.PRNGKey(seed), shape)
            unknown = (-1, *shape[1:])
            open_shape = init(package.random.PRNGKey(seed), unknown)[0]
            key = package.random.PRNGKey(drawn)
            y = apply(params, x, rng=key)
            assert tuple(y.shape) == tuple(output_shape)

            def loss(params, x, package=package, apply=apply, key=key):
                return package.numpy.square(apply(params, x, rng=key)).sum()

            grads = package.jit(package.grad(loss, argnums=(0, 1)))(params, x)
            compiled = package.jit(apply)(params, x, rng=key)
            results.append((tuple(output_shape), tuple(open_shape), params, y, compiled, grads))
        (shape_, open_, params, y, compiled, grads), (their_shape, _, their_params, their_y, _, their_grads) = results
        assert shape_ == their_shape
        assert open_ == (-1, *shape_[1:])  # jax gives 0 for the unknown length where windows move by more than 1
        judge.compare(params, their_params, tolerance=1e-6, what="parameters")
        judge.compare(y, their_y, what="outputs")
        judge.compare(compiled, their_y, what="compiled")
        judge.compare(grads, their_grads, tolerance=1e-4, what="gradients")


# --- the order of axes


LAYOUTS = {
    "batch last": (("HWCN", "HWIO", "HWCN"), (8, 9, 3, 2)),
    "batch goes to the front": (("HWCN", "HWIO", "NHWC"), (8, 9, 3, 2)),
    "batch goes to the back": (("NHWC", "OHWI", "CHWN"), (2, 8, 9, 3)),
    "space is turned": (("NHWC", "WIHO", "CWHN"), (2, 8, 9, 3)),
}


@pytest.mark.whole
@pytest.mark.parametrize("name", ["GeneralConv", "GeneralConvTranspose"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, name):
    """The shape that `init` tells is that of what `apply` returns, wherever the axes stand; also of an open batch."""
    words, shape = LAYOUTS[layout]
    x = judge.array(judge.rng("layout", layout), shape, "float32")
    open_shape = tuple(-1 if letter == "N" else n for letter, n in zip(words[0], shape, strict=True))
    results = []
    for package, stax in ((phlox, ours), (jax, theirs)):
        init, apply = getattr(stax, name)(words, 4, (3, 2), (2, 1))
        output_shape, params = init(package.random.PRNGKey(1), shape)
        y = apply(params, x)
        assert tuple(y.shape) == tuple(output_shape)
        results.append((tuple(output_shape), tuple(init(package.random.PRNGKey(1), open_shape)[0]), params, y))
    mine, expected = results
    assert mine[0] == expected[0] and mine[1] == tuple(
        -1 if letter == "N" else n for letter, n in zip(words[2], mine[0], strict=True)
    )
    judge.compare(mine[2], expected[2], tolerance=1e-6, what="parameters")
    judge.compare(mine[3], expected[3], what="outputs")


# --- several inputs


SEVERAL = {
    "parallel": lambda s: s.parallel(s.Dense(3), s.Tanh),
    "serial of parallel": lambda s: s.serial(s.parallel(s.Dense(3), s.Dropout(0.5)), s.FanInConcat()),
    "serial of FanInSum": lambda s: s.serial(s.FanInSum, s.Dense(3)),
    "serial of FanInConcat": lambda s: s.serial(s.FanInConcat(1), s.Dense(3)),
    "parallel of serial": lambda s: s.parallel(s.serial(s.Dense(3), s.Relu), s.serial(s.FanOut(2), s.FanInSum)),
    "pairs in lists": lambda s: s.serial(list(s.parallel(list(s.Dense(3)), list(s.Identity))), list(s.FanInConcat())),
    "shape_dependent": lambda s: s.serial(s.FanInSum, s.shape_dependent(lambda shape: s.Dense(shape[-1]))),
    "of another kind": lambda s: s.serial((lambda rng, shapes: (shapes[0], ()), lambda p, xs, **k: xs[0] - xs[1]), s.Dense(2)),
}  # fmt: skip


@pytest.mark.whole
@pytest.mark.parametrize("name", SEVERAL)
def test_several_inputs(name):
    random = judge.rng("several", name)
    xs = [judge.array(random, (4, 5), "float32") for _ in range(2)]
    seed = int(random.integers(0, 2**31))
    results = []
    for package, stax in ((phlox, ours), (jax, theirs)):
        init, apply = SEVERAL[name](stax)
        shape, params = init(package.random.PRNGKey(seed), [(-1, 5), (-1, 5)])
        key = package.random.PRNGKey(seed + 1)
        results.append((shape, params, package.jit(apply)(params, xs, rng=key)))
    mine, expected = results
    assert mine[0] == expected[0]
    judge.compare(mine[1], expected[1], tolerance=1e-6, what="parameters")
    judge.compare(mine[2], expected[2], what="outputs")


# --- under other settings, of other types


def outputs(package, stax, make, shape, x):
    init, apply = make(stax)
    _, params = init(package.random.PRNGKey(3), shape)
    return params, apply(params, x, rng=package.random.PRNGKey(5))


@pytest.mark.parametrize("name", LAYERS)
def test_strict_flags(name):
    """Layers do not obey flags that concern the user's own expressions: all compute, with the same numbers."""
    make, shape = LAYERS[name]
    x = judge.array(judge.rng("strict", name), shape, "float32")
    expected = outputs(jax, theirs, make, shape, x)
    with phlox.numpy_rank_promotion("raise"), phlox.numpy_dtype_promotion("strict"):
        mine = outputs(phlox, ours, make, shape, x)
    judge.compare(mine, expected, what="under strict flags")


@pytest.mark.parametrize("name", LAYERS)
def test_64_bits(name):
    make, shape = LAYERS[name]
    x = judge.array(judge.rng("64 bits", name), shape, "float64")
    with phlox.enable_x64(True):
        mine = outputs(phlox, ours, make, shape, x)
    with jax.enable_x64(True):
        judge.compare(mine, outputs(jax, theirs, make, shape, x), tolerance=1e-10, what="in 64 bits")


NARROW = ["Dense", "BatchNorm", "MaxPool", "SumPool", "AvgPool, same", "Dropout", "Flatten", "Softmax", "Gelu"]


@pytest.mark.parametrize("dtype", ["bfloat16", "int32"])
@pytest.mark.parametrize("name", NARROW)
def test_dtypes(name, dtype):
    make, shape = LAYERS[name]
    x = judge.array(judge.rng("narrow", name), shape, dtype)
    mine, expected = (outputs(m, s, make, shape, x) for m, s in ((phlox, ours), (jax, theirs)))
    judge.compare(mine, expected, what=dtype)


RATES = {
    "a number of NumPy": lambda m, s, x, key: s.Dropout(np.float32(0.7))[1]((), x, rng=key),
    "an array": lambda m, s, x, key: s.Dropout(m.numpy.float32(0.7))[1]((), x, rng=key),
    "one for each feature": lambda m, s, x, key: s.Dropout(np.linspace(0.1, 1, 5, dtype="float32"))[1]((), x, rng=key),
    "traced": lambda m, s, x, key: m.jit(lambda rate: s.Dropout(rate)[1]((), x, rng=key))(0.7),
}


@pytest.mark.whole
@pytest.mark.parametrize("name", RATES)
def test_rates_of_dropout(name):
    x = judge.array(judge.rng("rates"), (40, 5), "float32")
    mine, expected = (RATES[name](m, s, x, m.random.PRNGKey(11)) for m, s in ((phlox, ours), (jax, theirs)))
    judge.compare(mine, expected, what=name)


# --- draws, and names


def test_draws_are_bit_for_bit_where_the_function_is_exact():
    """Uniform draws and zeros need no approximated function, so not one bit may differ."""
    mine = ours.Dense(4, phlox.nn.initializers.glorot_uniform(), ours.zeros)
    init, _ = theirs.Dense(4, jax.nn.initializers.glorot_uniform(), theirs.zeros)
    _, params = mine.init(phlox.random.PRNGKey(5), (-1, 6))
    _, expected = init(jax.random.PRNGKey(5), (-1, 6))
    judge.compare(params, expected, exact=True)
    _, new = mine.init(phlox.random.key(5), (-1, 6))
    np.testing.assert_array_equal(new[0], params[0])


def test_every_name_is_there():
    missing = [
        name
        for name in dir(theirs)
        if not name.startswith("_") and name not in ("functools", "jnp", "lax", "math", "random")
        if not hasattr(ours, name)
    ]
    assert not missing


ELSEWHERE = (
    "elu gelu leaky_relu log_softmax relu selu sigmoid softmax softplus standardize glorot_normal normal ones zeros"
)


def test_functions_of_other_modules():
    for name in ELSEWHERE.split():
        function = getattr(phlox.nn, name, None) or getattr(phlox.nn.initializers, name)
        assert getattr(ours, name) is function
    assert (ours.glorot, ours.randn, ours.logsoftmax) == (ours.glorot_normal, ours.normal, ours.log_softmax)
    assert isinstance(ours.Dense(3), ours.Layer)
