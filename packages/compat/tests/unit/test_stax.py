"""The layers of phlox.example_libraries.stax on their own: shapes, structures of parameters, randomness, and what they say of wrong input."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox.errors import ArgumentError, ShapeError, TreeError
from phlox.example_libraries import stax

KEY = phlox.random.PRNGKey(0)


def message(excinfo):
    """The error's text; it must point at a line of this file."""
    assert excinfo.value.where.file == __file__, f"the error points at {excinfo.value.where}"
    return str(excinfo.value)


# --- Dense ----------------------------------------------------------------------------------------------


def test_dense_is_a_matrix_product_and_a_sum():
    init, apply = stax.Dense(3)
    shape, (W, b) = init(KEY, (-1, 2))
    assert shape == (-1, 3) and W.shape == (2, 3) and b.shape == (3,)
    assert W.dtype == b.dtype == jnp.float32
    x = np.arange(10.0, dtype=np.float32).reshape(5, 2)
    np.testing.assert_allclose(apply((W, b), x), x @ np.asarray(W) + np.asarray(b), rtol=1e-5, atol=1e-5)
    one = phlox.vmap(apply, in_axes=(None, 0))((W, b), x)
    np.testing.assert_allclose(one, apply((W, b), x), rtol=1e-6)


def test_sizes_may_be_numpys():
    init, apply = stax.serial(stax.Dense(np.int64(3)), stax.Dropout(np.float32(0.5)))
    shape, params = init(KEY, [np.int32(-1), np.int32(2)])
    assert shape == (-1, 3) and params[0][0].shape == (2, 3)
    assert apply(params, jnp.ones((5, 2)), rng=KEY).shape == (5, 3)


def test_dense_takes_initializers():
    zeros, ones = stax.zeros, stax.ones
    _, (W, b) = stax.Dense(3, W_init=ones, b_init=zeros).init(KEY, (2,))
    np.testing.assert_array_equal(W, np.ones((2, 3)))
    np.testing.assert_array_equal(b, np.zeros(3))


@pytest.mark.parametrize("out_dim", [0, -1, 2.0, True, "3", None])
def test_dense_needs_a_positive_size(out_dim):
    with pytest.raises(ArgumentError, match="positive integer") as excinfo:
        stax.Dense(out_dim)
    message(excinfo)


@pytest.mark.parametrize("shape", [(), (3, -1), (-1, 0), 64, (2.0,), None])
def test_dense_needs_to_know_the_number_of_features(shape):
    with pytest.raises(ShapeError, match=r"Dense\(3\)") as excinfo:
        stax.Dense(3).init(KEY, shape)
    assert "instead: for example (-1, 64)" in message(excinfo)


def test_dense_names_both_types_when_inputs_do_not_fit():
    _, apply = stax.Dense(3)
    params = jnp.ones((4, 3)), jnp.ones(3)
    with pytest.raises(ShapeError, match=r"f32\[5,2\], does not fit the weights, f32\[4,3\]") as excinfo:
        apply(params, np.ones((5, 2), np.float32))
    message(excinfo)
    with pytest.raises(ShapeError, match=r"f32\[5,2\]"):
        phlox.jit(apply)(params, np.ones((5, 2), np.float32))
    with pytest.raises(TreeError, match=r"a pair \(W, b\), got a dict"):
        apply({"W": 1, "b": 2}, np.ones((5, 2)))
    with pytest.raises(TreeError, match=r"a pair \(W, b\), got a tuple"):
        apply((), np.ones((5, 2)))


# --- Dropout --------------------------------------------------------------------------------------------


def test_dropout_keeps_a_part_and_the_mean():
    init, apply = stax.Dropout(0.8)
    assert init(KEY, (-1, 7)) == ((-1, 7), ())
    out = np.asarray(apply((), jnp.ones((100, 100)), rng=KEY))
    assert set(np.unique(out)) == {np.float32(0), np.float32(1 / 0.8)}
    assert abs((out > 0).mean() - 0.8) < 0.02
    again = np.asarray(apply((), jnp.ones((100, 100)), rng=KEY))
    np.testing.assert_array_equal(out, again)


def test_dropout_of_rate_one_and_in_mode_test_does_nothing():
    x = jnp.arange(4.0)
    np.testing.assert_array_equal(stax.Dropout(1.0).apply((), x, rng=KEY), x)
    assert stax.Dropout(0.5, mode="test").apply((), x) is x


def test_dropout_without_a_key_says_what_to_write():
    _, apply = stax.serial(stax.Dense(3), stax.Dropout(0.5))
    params = [(jnp.ones((2, 3)), jnp.ones(3)), ()]
    with pytest.raises(ArgumentError, match="got no key") as excinfo:
        apply(params, jnp.ones((1, 2)))
    assert "rng=key" in message(excinfo)


@pytest.mark.parametrize("rate", [0, 0.0, 1.5, -0.1, "0.5", None, True, float("nan")])
def test_dropout_rates_are_parts(rate):
    with pytest.raises(ArgumentError, match="above 0, and at most 1"):
        stax.Dropout(rate)


def test_dropout_modes():
    with pytest.raises(ArgumentError, match="unknown mode 'eval'") as excinfo:
        stax.Dropout(0.5, mode="eval")
    assert excinfo.value.mode == "eval"


# --- Flatten --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5, 2, 3), (5, 2), (5,), (0, 2, 3)])
def test_flatten(shape):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    out = stax.Flatten.apply((), x)
    np.testing.assert_array_equal(out, x.reshape(shape[0], int(np.prod(shape[1:]))))
    assert stax.Flatten.init(KEY, (-1, *shape[1:])) == ((-1, out.shape[1]), ())


def test_flatten_of_what_has_no_batch():
    with pytest.raises(ShapeError, match="got a scalar"):
        stax.Flatten.apply((), 1.0)
    with pytest.raises(ShapeError, match="only the first length"):
        stax.Flatten.init(KEY, (2, -1, 3))


# --- serial ---------------------------------------------------------------------------------------------


def network(mode="train"):
    return stax.serial(
        stax.Flatten,
        stax.Dense(8),
        stax.selu,
        stax.Dropout(0.5, mode),
        stax.serial(stax.Dense(4), stax.Tanh),
        stax.log_softmax,
    )


def test_serial_builds_a_network():
    init, apply = network()
    shape, params = init(KEY, (-1, 2, 3))
    assert shape == (-1, 4)
    assert [len(part) for part in params] == [0, 2, 0, 0, 2, 0]
    x = jnp.ones((5, 2, 3))
    scores = phlox.jit(apply)(params, x, rng=KEY)
    np.testing.assert_allclose(np.exp(scores).sum(1), np.ones(5), rtol=1e-5)
    other = apply(params, x, rng=phlox.random.PRNGKey(1))
    assert not np.allclose(scores, other), "another key must drop other elements"


def test_serial_trains():
    init, apply = network("test")
    _, params = init(KEY, (-1, 2, 3))
    x = phlox.random.normal(KEY, (16, 2, 3))
    labels = jnp.arange(16) % 4

    def loss(params):
        return -(apply(params, x) * nn_one_hot(labels)).sum(1).mean()

    def nn_one_hot(labels):
        return phlox.nn.one_hot(labels, 4)

    @phlox.jit
    def step(params):
        value, grads = phlox.value_and_grad(loss)(params)
        return value, phlox.tree.map(lambda p, g: p - 0.5 * g, params, grads)

    losses = []
    for _ in range(30):
        value, params = step(params)
        losses.append(float(value))
    assert losses[-1] < 0.7 * losses[0]


def test_serial_gives_every_layer_its_own_key():
    init, _ = stax.serial(stax.Dense(3), stax.Dense(3))
    _, ((W1, _), (W2, _)) = init(KEY, (-1, 3))
    assert not np.allclose(W1, W2)
    seen = []
    spy = stax.Layer(lambda rng, shape: (shape, ()), lambda params, x, rng=None, **kw: seen.append((rng, kw)) or x)
    stax.serial(spy, spy, stax.serial(spy)).apply([(), (), [()]], 0.0, rng=KEY, flag=7)
    assert [kw for _, kw in seen] == [{"flag": 7}] * 3
    assert len({np.asarray(key).tobytes() for key, _ in seen}) == 3


def test_serial_takes_plain_pairs_functions_and_nothing():
    pair = (lambda rng, shape: (shape, 2.0), lambda params, x, **kwargs: params * x)
    init, apply = stax.serial(pair, jnp.exp, lambda x: x + 1)
    shape, params = init(KEY, (3,))
    assert shape == (3,) and params == [2.0, (), ()]
    np.testing.assert_allclose(apply(params, jnp.ones(3)), np.exp(2 * np.ones(3)) + 1, rtol=1e-6)
    init, apply = stax.serial()
    assert init(KEY, (3,)) == ((3,), []) and apply([], 5.0, rng=KEY) == 5.0


def test_serial_refuses_what_is_no_layer():
    with pytest.raises(ArgumentError, match="layer 1 is 10") as excinfo:
        stax.serial(stax.Dense(3), 10)
    message(excinfo)
    with pytest.raises(ArgumentError, match="layer 0 is Dense itself") as excinfo:
        stax.serial(stax.Dense)
    assert "Dense(...)" in message(excinfo)
    with pytest.raises(ArgumentError, match="layer 0"):
        stax.serial((stax.selu, stax.selu, stax.selu))


def test_serial_checks_structure_and_shapes():
    init, apply = stax.serial(stax.Dense(3), lambda x: x.sum(-1))
    _, params = init(KEY, (-1, 2))
    with pytest.raises(ShapeError, match=r"layer 1 of serial, <lambda>, turns shape \(5, 3\) into \(5,\)") as excinfo:
        apply(params, jnp.ones((5, 2)))
    message(excinfo)
    with pytest.raises(TreeError, match="each of 2 layers, got 1") as excinfo:
        apply(params[:1], jnp.ones((5, 2)))
    message(excinfo)
    with pytest.raises(TreeError, match="got a dict"):
        apply({}, jnp.ones((5, 2)))
    with pytest.raises(ShapeError, match="serial: input_shape") as excinfo:
        init(KEY, 2)
    message(excinfo)


@pytest.mark.parametrize("maker", [stax.Conv, stax.ConvTranspose, stax.Conv1DTranspose, stax.MaxPool, stax.parallel])
def test_what_makes_layers_is_no_layer(maker):
    for combine in (stax.serial, stax.parallel):
        with pytest.raises(ArgumentError, match=f"{combine.__name__}: layer 0 is {maker.__name__} itself") as excinfo:
            combine(maker)
        message(excinfo)


def test_serial_takes_functions_that_belong_to_no_module():
    function = lambda x: 2 * x
    function.__module__ = None
    assert stax.serial(function).apply([()], 3.0) == 6.0


# --- parallel, FanOut, shape_dependent ------------------------------------------------------------------


def test_parallel_wants_one_of_everything_for_each_layer():
    init, apply = stax.parallel(stax.Dense(2), stax.Identity)
    _, params = init(KEY, [(-1, 3), (-1, 3)])
    x = jnp.ones((4, 3))
    for inputs in ([x], [x, x, x], {"a": x}, 3.0):
        with pytest.raises(
            TreeError, match="parallel: the inputs must be a list with one for each of 2 layers"
        ) as excinfo:
            apply(params, inputs)
        assert "FanOut(2)" in message(excinfo)
    with pytest.raises(TreeError, match=r"parallel: the parameters .* each of 2 layers, got 1") as excinfo:
        apply(params[:1], [x, x])
    message(excinfo)
    with pytest.raises(TreeError, match=r"parallel: the input shapes .* each of 2 layers, got 1") as excinfo:
        init(KEY, [(-1, 3)])
    message(excinfo)
    with pytest.raises(
        ShapeError, match=r"needs a list of shapes, one for each of 2 layers, got one, \(-1, 3\)"
    ) as excinfo:
        init(KEY, (-1, 3))
    message(excinfo)
    with pytest.raises(ArgumentError, match="parallel: layer 1 is 10"):
        stax.parallel(stax.Dense(2), 10)


def test_parallel_takes_the_rows_of_an_array():
    rows = stax.parallel(stax.Identity, stax.Tanh)
    for apply in (rows.apply, phlox.jit(rows.apply)):
        a, b = apply(((), ()), jnp.arange(6.0).reshape(2, 3))
        np.testing.assert_allclose(a, [0, 1, 2])
        np.testing.assert_allclose(b, np.tanh([3, 4, 5]), rtol=1e-6)


def test_shape_dependent_takes_functions_and_refuses_what_is_no_layer():
    init, apply = stax.shape_dependent(lambda shape: jnp.tanh)
    assert init(KEY, (-1, 3)) == ((-1, 3), ())
    np.testing.assert_allclose(apply((), jnp.ones(3)), np.tanh(np.ones(3)), rtol=1e-6)
    with pytest.raises(ArgumentError, match="shape_dependent: the layer is 3") as excinfo:
        stax.shape_dependent(lambda shape: 3).init(KEY, (-1, 3))
    message(excinfo)


def test_an_open_length_stays_open_when_joined():
    assert stax.FanInConcat(0).init(KEY, [(-1, 2), (5, 2)]) == ((-1, 2), ())


@pytest.mark.parametrize("num", [-1, "2", 2.0, None, True])
def test_fan_out_needs_a_number(num):
    with pytest.raises(ArgumentError, match="FanOut: the number of outputs"):
        stax.FanOut(num)


def test_elementwise_needs_a_function():
    with pytest.raises(ArgumentError, match="needs a function, got 3"):
        stax.elementwise(3)


# --- convolutions, pooling, normalization ---------------------------------------------------------------

IMAGE = (2, 8, 9, 3)


@pytest.mark.parametrize("make", [stax.Conv, stax.ConvTranspose])
def test_convolutions_name_themselves_and_what_is_wrong(make):
    name = make.__name__
    wrong_sizes = {
        "filter_shape must be a tuple of 2 positive integers": [(4, (3,)), (4, 3), (4, (3, 0)), (4, (3, 2.0))],
        "strides must be a tuple of 2 positive integers": [
            (4, (3, 3), 2),
            (4, (3, 3), (1, 1, 1)),
            (4, (3, 3), (1, -1)),
        ],
        "number of features must be a positive integer": [(0, (3, 3)), ("4", (3, 3)), (True, (3, 3))],
    }
    for text, calls in wrong_sizes.items():
        for call in calls:
            with pytest.raises(ArgumentError, match=text) as excinfo:
                make(*call)
            assert message(excinfo).startswith(f"{name}(")
    init, apply = make(4, (3, 3))
    for shape in [(2, -1, 9, 3), (2, 8, 9, -1), (2, 8, 9)]:
        with pytest.raises(ShapeError, match=f"{name}.4.: input_shape .* must have 4 lengths") as excinfo:
            init(KEY, shape)
        message(excinfo)
    _, (W, b) = init(KEY, IMAGE)
    with pytest.raises(
        ShapeError, match=r"f32\[2,8,9,5\] with axes NHWC, do not fit the weights, f32\[3,3,3,4\]"
    ) as excinfo:
        apply((W, b), np.ones((2, 8, 9, 5), "float32"))
    message(excinfo)
    for inputs, kernel in [(np.ones((8, 9, 3), "float32"), W), (np.ones(IMAGE, "float32"), W[0])]:
        with pytest.raises(ShapeError, match="do not fit the weights"):
            apply((kernel, b), inputs)
    with pytest.raises(TreeError, match=r"a pair \(W, b\)") as excinfo:
        apply((), np.ones(IMAGE, "float32"))
    message(excinfo)


@pytest.mark.parametrize(
    "words",
    [None, "NHWC", ("NHWC", "HWIO"), ("NHW", "HWIO", "NHWC"), ("NHWD", "HWIO", "NHWC"), ("NHWC", "HWIX", "NHWC")],
)
@pytest.mark.parametrize("make", [stax.GeneralConv, stax.GeneralConvTranspose])
def test_convolutions_need_three_words(make, words):
    with pytest.raises(ArgumentError, match="dimension_numbers must be three words") as excinfo:
        make(words, 4, (3, 3))
    message(excinfo)


@pytest.mark.parametrize("make", [stax.MaxPool, stax.SumPool, stax.AvgPool])
def test_pooling_names_itself_and_what_is_wrong(make):
    name = make.__name__
    for text, given in {
        "window_shape must be a tuple of positive integers": {"window_shape": 2},
        "strides must be a tuple of 2 positive integers": {"window_shape": (2, 2), "strides": (2,)},
        "spec must be a word with letters N and C": {"window_shape": (2, 2), "spec": "HWX"},
    }.items():
        with pytest.raises(ArgumentError, match=f"{name}: {text}") as excinfo:
            make(**given)
        message(excinfo)
    for shape in [(2, -1, 9, 3), (2, 8, 9), 5]:
        with pytest.raises(ShapeError, match=f"{name}: input_shape") as excinfo:
            make((2, 2)).init(KEY, shape)
        message(excinfo)


def test_pooling_of_an_open_batch_elsewhere():
    assert stax.MaxPool((2, 2), spec="HWNC").init(KEY, (8, 9, -1, 3)) == ((7, 8, -1, 3), ())


def test_batch_norm_names_what_is_wrong():
    with pytest.raises(
        ShapeError, match=r"of input_shape \(-1, 5\) only the lengths along axis \(1,\) may be -1"
    ) as excinfo:
        stax.BatchNorm(axis=1).init(KEY, (-1, 5))
    message(excinfo)
    with pytest.raises(TreeError, match=r"a pair \(beta, gamma\)") as excinfo:
        stax.BatchNorm(axis=0).apply((), jnp.ones((4, 5)))
    message(excinfo)
    with pytest.raises(ArgumentError, match="axis must be an integer or a tuple of them, got '0'") as excinfo:
        stax.BatchNorm(axis="0")
    message(excinfo)
    assert stax.BatchNorm(axis=np.array(0)).init(KEY, (-1, 5))[1][0].shape == (5,)
