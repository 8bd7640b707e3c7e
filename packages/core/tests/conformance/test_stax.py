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
    x = judge.array(judge.rng("stax", name), shape, "float32")
    results = []
    for package, stax in ((phlox, ours), (jax, theirs)):
        init, apply = make(stax)
        output_shape, params = init(package.random.PRNGKey(3), shape)
        unknown = (-1, *shape[1:])
        open_shape = init(package.random.PRNGKey(3), unknown)[0]
        key = package.random.PRNGKey(5)
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
