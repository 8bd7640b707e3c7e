"""Other layers at some paths, parameters reused, sizes by module, LoRA over any weights, patterns of paths."""

import pickle

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
from phlox.errors import ArgumentError

KEY = phlox.random.key(0)
BLOCK = nn.TransformerEncoderBlock(8, 2, 12)
MODEL = nn.Sequential(nn.Linear(4, 8), nn.Stack(BLOCK, 3), nn.Residual(BLOCK), nn.Linear(8, 10))
X = phlox.random.normal(KEY, (2, 5, 4))


def test_a_new_head_with_the_rest_of_the_parameters():
    params = MODEL.init(KEY)
    model = nn.replace(MODEL, "3", nn.Linear(8, 3))
    new = model.init(phlox.random.key(1), reuse=params)
    assert new["3"]["weight"].shape == (8, 3) and new["1"]["block"] is not None
    for path in ("0", "1", "2"):
        for a, b in zip(phlox.tree.leaves(new[path]), phlox.tree.leaves(params[path]), strict=True):
            assert a is b
    assert model.apply(new, X).shape == (2, 5, 3)
    assert MODEL.layers[3] == nn.Linear(8, 10)


def test_parts_that_are_made_are_replaced_at_any_depth():
    model = nn.replace(MODEL, "*/attention/out", nn.Identity())
    params = model.init(KEY)
    assert "out" not in params["1"]["block"]["attention"] and "out" not in params["2"]["layer"]["attention"]
    assert model.apply(params, X).shape == (2, 5, 10)
    assert repr(model).count("with_parts(out=Identity())") == 2 and "with_parts" not in repr(MODEL)
    again = pickle.loads(pickle.dumps(model))
    assert again == model and hash(again) == hash(model) and again != MODEL
    assert phlox.tree.structure(again.init(KEY)) == phlox.tree.structure(params)


def test_classes_and_functions():
    model = nn.replace(MODEL, nn.LayerNorm, nn.RMSNorm(8))
    assert set(model.init(KEY)["1"]["block"]["mlp_norm"]) == {"weight"}
    model = nn.replace(MODEL, nn.Linear, lambda old: nn.WeightNorm(old))
    assert model.init(KEY)["2"]["layer"]["mlp"]["layers"]["1"]["scale"].shape == (8,)
    assert model.apply(model.init(KEY), X).shape == (2, 5, 10)
    assert nn.replace(MODEL, lambda path: path == "1.block", nn.Remat(BLOCK)).layers[1].block == nn.Remat(BLOCK)


@pytest.mark.parametrize(
    ("pattern", "new", "message"),
    [
        ("hed", nn.Identity(), r"no layer is meant by 'hed'(.|\n)*'0', '1'"),
        (nn.Conv, nn.Identity(), "no layer is meant by Conv"),
        ("0", nn.Linear, "the new layer is Linear"),
        ("0", 3, "the new layer is 3"),
        ("0", lambda old: None, "for '0' the function returned None"),
        (3, nn.Identity(), "a pattern is a glob"),
    ],
)
def test_what_cannot_be_replaced(pattern, new, message):
    with pytest.raises(ArgumentError, match=message):
        nn.replace(MODEL, pattern, new)
    with pytest.raises(ArgumentError, match="has no part 'quary'"):
        nn.MultiHeadAttention(8, 2).with_parts(quary=nn.Identity())


def test_sizes_are_those_of_the_arrays():
    params = MODEL.init(KEY, dtype=jnp.bfloat16)
    sizes = nn.sizes(params, depth=3, frozen="*/attention/*/weight")
    count = sum(x.size for x in phlox.tree.leaves(params))
    assert sizes.parameters == count and sizes.bytes == 2 * count
    attention = params["1"]["block"]["attention"]
    own = sum(x.size for x in phlox.tree.leaves(attention))
    assert sizes.modules["1.block.attention"][:2] == (own, 2 * own)
    assert sizes.modules["1.block.attention"][2] == 3 * 8 * 4
    assert sizes.trained == count - 4 * 4 * 8 * 8
    assert nn.sizes(phlox.eval_shape(MODEL.init, KEY)).parameters == count
    with pytest.raises(ArgumentError, match="depth must be a positive integer"):
        nn.sizes(params, 0)


@pytest.mark.parametrize("slash", [True, False])
def test_patterns_have_slashes_or_dots(slash):
    params = MODEL.init(KEY)

    def glob(text):
        return text.replace("/", "." if not slash else "/")

    trained, frozen = nn.partition(params, glob("*/attention/query/weight"))
    assert [leaf.shape for leaf in phlox.tree.leaves(trained)] == [(3, 8, 8), (8, 8)]
    assert len(phlox.tree.leaves(frozen)) == len(phlox.tree.leaves(params)) - 2
    assert nn.mask(nn.Linear(2, 3).init(KEY), glob("*/bias")) == {"weight": False, "bias": True}


LORA = nn.Sequential(nn.Embedding(7, 4), nn.Conv(4, 8, 3), nn.Stack(BLOCK, 3), nn.Linear(8, 2))


@pytest.mark.parametrize("dtype", [None, jnp.bfloat16])
def test_lora_over_any_weight(dtype):
    model = nn.LoRA(
        LORA, 2, alpha=4.0, pattern=("0", "1", "3", "*/query", "*/mlp"), kinds=(nn.Linear, nn.Conv, nn.Embedding)
    )
    params = model.init(KEY)
    shapes = phlox.tree.map(jnp.shape, params["adapters"])
    assert shapes["1"] == {"a": (12, 2), "b": (2, 8)} and shapes["0"] == {"a": (7, 2), "b": (2, 4)}
    assert shapes["2"]["block"]["attention"]["query"] == {"a": (3, 8, 2), "b": (3, 2, 8)}
    assert set(shapes["2"]["block"]["mlp"]["layers"]) == {"0", "1"}
    tokens = jnp.arange(10).reshape(2, 5) % 7
    y = LORA.apply(params["layer"], tokens, dtype=dtype)
    np.testing.assert_allclose(model.apply(params, tokens, dtype=dtype), y, atol=1e-6)
    keys = iter(phlox.random.split(KEY, 100))
    changed = {
        **params,
        "adapters": phlox.tree.map(lambda x: phlox.random.normal(next(keys), x.shape), params["adapters"]),
    }
    z = model.apply(changed, tokens, dtype=dtype)
    assert not np.allclose(z, y, atol=0.1)
    tolerance = 1e-4 if dtype is None else 0.2
    np.testing.assert_allclose(
        z, LORA.apply(model.merged(changed), tokens, dtype=dtype), atol=tolerance, rtol=tolerance
    )
    learnt, frozen = nn.partition(changed, "adapters")
    grads = phlox.grad(lambda a: (model.apply(nn.merge(a, frozen), tokens) ** 2).sum())(learnt)
    assert all(float(jnp.abs(g).max()) > 0 for g in phlox.tree.leaves(grads))


def test_lora_says_which_layers_there_are():
    with pytest.raises(ArgumentError, match=r"no layer of Linear is meant(.|\n)*'2.block.attention.query'"):
        nn.LoRA(LORA, 2, pattern="*/quary").init(KEY)
    with pytest.raises(ArgumentError, match="kinds are classes of layers"):
        nn.LoRA(LORA, 2, kinds=nn.Linear)
