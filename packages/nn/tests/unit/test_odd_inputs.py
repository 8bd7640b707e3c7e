"""Empty batches, integers, masks and options that layers of other libraries get too."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
from phlox.errors import ArgumentError, AxisError, DtypeError, ShapeError, TreeError

KEY = phlox.random.key(0)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Conv(4, 8, (3, 3)), (0, 5, 5, 4)),
        (nn.ConvTranspose(4, 8, (3, 3), 2), (2, 0, 5, 5, 4)),
        (nn.GroupNorm(4, groups=2), (0, 5, 4)),
        (nn.MultiHeadAttention(8, 4, kv_heads=2, rotary_base=1e4, causal=True), (0, 3, 8)),
        (nn.MultiHeadAttention(8, 4), (2, 0, 8)),
        (nn.Stack(nn.TransformerEncoderBlock(8, 2, dropout=0.1), 2), (0, 3, 8)),
        (nn.LSTM(4, 3, bidirectional=True), (0, 2, 4)),
        (nn.MoE(nn.MLP((8, 16, 8)), 4, 8), (0, 8)),
        (nn.MoE(nn.MLP((8, 16, 8)), 4, 8, capacity_factor=1.0), (0, 3, 8)),
    ],
    ids=lambda value: str(value).split("(")[0],
)
def test_no_examples(layer, shape):
    def loss(params, x):
        y = layer.apply(params, x, key=phlox.random.key(1), train=True)
        return y.sum(), y

    grads, y = phlox.grad(loss, has_aux=True)(layer.init(KEY), jnp.ones(shape))
    assert y.size == 0 and y.shape[:-1] == layer.apply(layer.init(KEY), jnp.ones(shape)).shape[:-1]
    assert not any(np.asarray(leaf).any() for leaf in phlox.tree.leaves(grads))


@pytest.mark.parametrize(
    "layer", [nn.LayerNorm(2), nn.RMSNorm(2), nn.BatchNorm(2), nn.InstanceNorm(2), nn.GroupNorm(2, groups=1)]
)
def test_norms_of_integers(layer):
    x = np.array([[[1, 4], [3, 2]]], np.uint8)
    params, state = layer.init(KEY), layer.init_state()
    results = [layer.apply(params, a, state=state, train=True)[0] for a in (x, x.astype(np.float32))]
    assert results[0].dtype == np.float32
    np.testing.assert_array_equal(results[0], results[1])


def test_slopes_of_integers():
    np.testing.assert_array_equal(nn.PReLU().apply({"weight": jnp.array([0.25])}, np.array([-2, 4])), [-0.5, 4])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "bool", "float16", "bfloat16"])
@pytest.mark.parametrize("count_padding", [True, False])
def test_means_of_narrow_numbers(dtype, count_padding):
    """Sums of windows of 65536 numbers fit into none of these types."""
    x = jnp.ones((1, 256, 256, 1)).astype(dtype)
    y = nn.avg_pool((256, 256), count_padding=count_padding).apply({}, x)
    assert y.dtype == (x.dtype if jnp.issubdtype(x.dtype, jnp.floating) else jnp.float32)
    assert y.ravel().tolist() == [1.0]


def test_masks_that_fit_no_attention():
    layer, x = nn.MultiHeadAttention(8, 2), jnp.ones((3, 5, 8))
    params = layer.init(KEY)
    for shape in ((5,), (2, 5, 5), (3, 5), (3, 3, 5, 5)):
        with pytest.raises(ShapeError, match=r"here \(3, 2, 5, 5\)"):
            layer.apply(params, x, mask=np.ones(shape, bool))
    # As bools, minus infinity would be a position that counts, and 0 one that does not.
    with pytest.raises(DtypeError, match="bias=mask"):
        layer.apply(params, x, mask=np.where(np.tri(5), 0, -np.inf))
    ones = layer.apply(params, x, mask=np.tri(5, dtype=np.int32))
    np.testing.assert_array_equal(ones, layer.apply(params, x, mask=np.tri(5, dtype=bool)))


@pytest.mark.parametrize("padding", [np.int64(1), [np.int64(1)], [(np.int64(1), 1)]])
def test_numbers_of_numpy_as_options(padding):
    layer = nn.Conv(2, 3, np.int64(3), padding=padding)
    assert layer.apply(layer.init(KEY), jnp.ones((1, 5, 2))).shape == (1, 5, 3)
    assert nn.Dropout(np.float32(0.5)).rate == 0.5


def test_options_that_no_layer_takes():
    for options in ({"kernel_size": 3.0}, {"kernel_size": (3, "3")}, {"kernel_size": 3, "padding": [(1, 0.5)]}):
        with pytest.raises(ArgumentError, match=r"kernel_size|padding"):
            nn.Conv(2, 3, **options)
    with pytest.raises(ArgumentError, match="runs both ways"):
        nn.LSTM(2, 3, bidirectional=True, reverse=True)
    with pytest.raises(AxisError, match=r"f32\[4\] have no axis 1"):
        nn.Dropout(0.5, broadcast=1).apply({}, jnp.ones(4), key=KEY, train=True)


def test_parameters_of_a_deeper_model():
    """Names are checked below fields that hold several layers, too."""
    with pytest.raises(TreeError, match=r"have \['layers.2'\]"):
        nn.MLP((8, 8, 8)).apply(nn.MLP((8, 8, 8, 8)).init(KEY), jnp.ones(8))
    for model in (nn.LoRA(nn.Linear(8, 8), 2), nn.Quantized(nn.Linear(8, 8))):
        with pytest.raises(TreeError, match="must be a dict, got a list"):
            model.apply([jnp.ones(8)], jnp.ones(8))


def test_trees_that_overlap():
    for trees in (({"a": 1}, {"a": {"b": 2}}), ({"a": {"b": 2}}, {"a": 1}), ({"a": 1}, {"a": 1})):
        with pytest.raises(TreeError, match=r"a value at a(\.b)?\n"):
            nn.merge(*trees)
    assert nn.merge({"a": {"b": 1}}, {"a": {"c": 2}, "d": 3}) == {"a": {"b": 1, "c": 2}, "d": 3}


def test_odd_heads_are_not_turned():
    with pytest.raises(ShapeError, match=r"pairs of features, got f32\[2,1,3\]"):
        nn.rotary(jnp.ones((2, 1, 3)), jnp.arange(2))


def test_inputs_of_quantized_layers():
    """The checks are those of the layers that are quantized."""
    linear, table = nn.Quantized(nn.Linear(4, 3)), nn.Quantized(nn.Embedding(5, 3))
    with pytest.raises(ShapeError, match="must have length 4"):
        linear.apply(linear.init(KEY), jnp.ones((2, 3)))
    with pytest.raises(DtypeError, match="tokens are integers"):
        table.apply(table.init(KEY), jnp.ones(2))
