"""The protocol of layers: names and first values of arrays, binding, state, keys, dtypes, and what errors say."""

import copy
import pickle

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
from phlox.errors import ArgumentError, ShapeError, TreeError

KEY = phlox.random.key(0)


class Scale(nn.Layer):
    size: int

    def parameters(self):
        return {"scale": (nn.initializers.ones, (self.size,))}

    def __call__(self, x):
        return x * self.scale


class Counter(nn.Layer):
    def variables(self):
        return {"count": (nn.initializers.zeros, (), jnp.int32)}

    def __call__(self, x):
        self.update(count=self.count + 1)
        return x + self.count


class Net(nn.Layer):
    first: nn.Layer
    rest: tuple[nn.Layer, ...]
    named: dict[str, nn.Layer]

    def __call__(self, x):
        x = self.first(x)
        for layer in self.rest:
            x = layer(x)
        return self.named["a"](x)


def net():
    return Net(nn.Linear(2, 4), (nn.Linear(4, 4), nn.Dropout(0.5)), {"a": Scale(4)})


def shapes(tree):
    return phlox.tree.map(jnp.shape, tree)


def message(excinfo):
    """The error's text with its notes; it must point at a line of this file."""
    assert excinfo.value.where.file == __file__, f"the error points at {excinfo.value.where}"
    return "\n".join([str(excinfo.value), *getattr(excinfo.value, "__notes__", ())])


# --- names and first values -----------------------------------------------------------------------------


def test_parameters_are_nested_dicts_named_by_field():
    assert shapes(net().init(KEY)) == {
        "first": {"bias": (4,), "weight": (2, 4)},
        "named": {"a": {"scale": (4,)}},
        "rest": {"0": {"bias": (4,), "weight": (4, 4)}},
    }
    model = nn.Sequential(nn.Linear(4, 8), nn.relu, lambda x: x + 1, nn.Sequential(nn.Linear(8, 2)))
    assert shapes(model.init(KEY)) == {
        "0": {"bias": (8,), "weight": (4, 8)},
        "3": {"0": {"bias": (2,), "weight": (8, 2)}},
    }
    assert model.init_state() == {} and nn.Dropout(0.5).init(KEY) == {}


def test_first_values_depend_on_key_and_path_alone():
    short = nn.Sequential(nn.Linear(4, 8), nn.relu).init(KEY)
    longer = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 8)).init(KEY)
    np.testing.assert_array_equal(short["0"]["weight"], longer["0"]["weight"])
    assert not np.allclose(longer["1"]["weight"], longer["2"]["weight"])
    other = nn.Sequential(nn.Linear(4, 8)).init(phlox.random.key(1))
    assert not np.allclose(short["0"]["weight"], other["0"]["weight"])


def test_init_can_be_traced_and_costs_nothing_by_eval_shape():
    model = nn.Sequential(nn.Linear(100_000, 100_000), nn.BatchNorm(100_000))
    abstract = phlox.eval_shape(model.init, KEY)
    assert abstract["0"]["weight"].shape == (100_000, 100_000)
    small = net()
    for a, b in zip(phlox.tree.leaves(phlox.jit(small.init)(KEY)), phlox.tree.leaves(small.init(KEY)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_dtypes_of_parameters():
    params = nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3)).init(KEY, dtype=jnp.bfloat16)
    assert {x.dtype for x in phlox.tree.leaves(params)} == {jnp.dtype("bfloat16")}
    state = nn.Sequential(nn.BatchNorm(3), Counter()).init_state(dtype=jnp.bfloat16)
    assert state["0"]["mean"].dtype == jnp.float32 and state["1"]["count"].dtype == jnp.int32


# --- binding --------------------------------------------------------------------------------------------


def test_apply_is_the_call_of_a_bound_layer():
    model, x = net(), jnp.ones((3, 2))
    params = model.init(KEY)
    bound = model.bind(params)
    assert bound.first.weight is params["first"]["weight"]
    np.testing.assert_array_equal(bound(x), model.apply(params, x))
    assert bound.rest[0].path == "rest.0" and bound.named["a"].path == "named.a" and bound.path == ""


def test_apply_is_a_function_for_all_transformations():
    model, x = net(), phlox.random.normal(KEY, (6, 2))
    params = model.init(KEY)
    y = model.apply(params, x)
    np.testing.assert_allclose(phlox.jit(model.apply)(params, x), y, rtol=1e-6)
    np.testing.assert_allclose(phlox.vmap(model.apply, in_axes=(None, 0))(params, x), y, rtol=1e-5)
    many = phlox.vmap(model.init)(phlox.random.split(KEY, 3))
    assert phlox.vmap(model.apply, in_axes=(0, None))(many, x).shape == (3, 6, 4)
    grads = phlox.grad(lambda p: model.apply(p, x).sum())(params)
    assert shapes(grads) == shapes(params)
    np.testing.assert_allclose(grads["named"]["a"]["scale"], y.sum(0), rtol=1e-5)
    _, ys = phlox.lax.scan(lambda carry, row: (carry, model.apply(params, row)), 0, x)
    np.testing.assert_allclose(ys, y, rtol=1e-5)


def test_a_layer_is_plain_configuration():
    model = net()
    assert model == net() and model.first is not net().first
    assert hash(nn.Sequential(nn.Linear(2, 3), nn.relu)) == hash(nn.Sequential(nn.Linear(2, 3), nn.relu))
    assert nn.Linear(2, 3) != nn.Linear(2, 3, use_bias=False)
    assert pickle.loads(pickle.dumps(model)) == model == copy.deepcopy(model)
    with pytest.raises(AttributeError):
        model.first = nn.Linear(1, 1)


def test_binding_leaves_the_layer_as_it_was():
    model = net()
    model.apply(model.init(KEY), jnp.ones((3, 2)))
    with pytest.raises(ArgumentError, match="is configuration"):
        _ = model.first.weight
    assert repr(model) == repr(net())


def test_a_subclass_may_call_what_it_overrides():
    class Twice(nn.Linear):
        def __call__(self, x):
            return 2 * super().__call__(x)

    layer = Twice(2, 3)
    params = layer.init(KEY)
    np.testing.assert_allclose(layer.apply(params, jnp.ones(2)), 2 * nn.Linear(2, 3).apply(params, jnp.ones(2)))


def test_a_subclass_of_sequential_takes_layers():
    class Network(nn.Sequential):
        def __call__(self, x):
            return super().__call__(x) + 1

    model = Network(nn.Linear(2, 3), nn.relu)
    assert model.apply(model.init(KEY), jnp.ones((5, 2))).shape == (5, 3)
    assert repr(model) == "Network(Linear(2, 3), relu)"


CODE = [
    "Linear(2, 3)",
    "Sequential(Linear(2, 3, use_bias=False), relu, Residual(MLP((3, 6, 3), dropout=0.1)))",
    "Sequential(Conv(1, 8, (3, 3), strides=2), BatchNorm(8), max_pool((2, 2)), flatten)",
    "Stack(Residual(GLU(8, 16)), 4, checkpoint=True)",
    "Parallel(avg_pool(2, padding='SAME'), Embedding(10, 4), LSTM(4, 4, bidirectional=True))",
    "LoRA(MultiHeadAttention(8, 2, causal=True), 2, pattern=('query', 'value'))",
]


@pytest.mark.parametrize("code", CODE)
def test_repr_is_code(code):
    model = eval(code, vars(nn))
    assert repr(model) == code
    assert eval(repr(model), vars(nn)) == model


def test_long_repr_has_lines():
    model = nn.Sequential(*[nn.Sequential(nn.Linear(100, 100), nn.relu, nn.Dropout(0.5))] * 3)
    lines = repr(model).splitlines()
    assert lines[0] == "Sequential(" and lines[1] == "    Sequential(Linear(100, 100), relu, Dropout(0.5)),"
    assert eval(repr(model), vars(nn)) == model


# --- state ----------------------------------------------------------------------------------------------


def test_state_goes_in_and_comes_out():
    model = nn.Sequential(Counter(), nn.Linear(2, 2), Counter())
    params, state = model.init(KEY), model.init_state()
    _, new = model.apply(params, jnp.zeros(2), state=state)
    assert (int(state["0"]["count"]), int(new["0"]["count"]), int(new["2"]["count"])) == (0, 1, 1)
    _, new = phlox.jit(lambda p, s: model.apply(p, jnp.zeros(2), state=s))(params, new)
    assert int(new["0"]["count"]) == 2 and new["0"]["count"].dtype == jnp.int32


def test_a_part_that_is_called_twice_sees_its_change():
    class Twice(nn.Layer):
        part: nn.Layer

        def __call__(self, x):
            return self.part(self.part(x))

    y, state = Twice(Counter()).apply({}, 0, state=Twice(Counter()).init_state())
    assert (int(y), int(state["part"]["count"])) == (3, 2)


def test_bound_layers_tell_their_state():
    model = nn.Sequential(Counter(), Counter())
    bound = model.bind({}, state=model.init_state())
    bound(0), bound.layers[1](0)
    assert {k: int(v["count"]) for k, v in bound.updated_state().items()} == {"0": 1, "1": 2}
    assert int(bound.layers[1].updated_state()["count"]) == 2


def test_state_without_variables_is_an_empty_dict():
    model = nn.Sequential(nn.Linear(2, 3))
    y, state = model.apply(model.init(KEY), jnp.ones(2), state=model.init_state())
    assert y.shape == (3,) and state == {}


# --- keys -----------------------------------------------------------------------------------------------


class Draw(nn.Layer):
    def __call__(self, x):
        return x + phlox.random.normal(self.random_key(), ())


def test_every_part_and_every_call_draws_numbers_of_its_own():
    class Several(nn.Layer):
        a: Draw
        b: Draw

        def __call__(self, x):
            return jnp.stack([self.a(x), self.a(x), self.b(x)])

    model = Several(Draw(), Draw())
    first = model.apply({}, 0.0, key=KEY)
    assert len(set(first.tolist())) == 3
    np.testing.assert_array_equal(first, model.apply({}, 0.0, key=KEY))
    assert not np.allclose(first, model.apply({}, 0.0, key=phlox.random.key(1)))


def test_train_reaches_every_part():
    model = nn.Stack(nn.Sequential(nn.Residual(nn.Dropout(0.5))), 2)
    x = jnp.ones((100,))
    np.testing.assert_array_equal(model.apply({}, x), 4 * x)
    assert len(set(model.apply({}, x, key=KEY, train=True).tolist())) > 2


# --- dtype of computation -------------------------------------------------------------------------------

MODELS = {
    "linear": (nn.Sequential(nn.Linear(8, 8), nn.gelu, nn.Dropout(0.1)), (4, 8)),
    "conv": (nn.Sequential(nn.Conv(8, 8, (3, 3)), nn.GroupNorm(8, groups=2), nn.avg_pool((2, 2))), (2, 4, 4, 8)),
    "transposed": (nn.ConvTranspose(8, 4, (2, 2), strides=2), (2, 4, 4, 8)),
    "attention": (nn.MultiHeadAttention(8, 2, causal=True, rotary_base=1e4), (2, 5, 8)),
    "norms": (nn.Sequential(nn.LayerNorm(8), nn.RMSNorm(8), nn.InstanceNorm(8)), (2, 5, 8)),
    "recurrent": (nn.Sequential(nn.LSTM(8, 8), nn.GRU(8, 8), nn.RNN(8, 8, bidirectional=True)), (2, 5, 8)),
    "stack": (nn.Stack(nn.Residual(nn.MLP((8, 16, 8))), 3), (4, 8)),
    "lora": (nn.LoRA(nn.Linear(8, 8), 2), (4, 8)),
    "weight norm": (nn.WeightNorm(nn.Linear(8, 8)), (4, 8)),
    "glu": (nn.GLU(8, 16), (4, 8)),
}


@pytest.mark.parametrize("name", MODELS)
def test_one_argument_computes_in_16_bits(name):
    model, shape = MODELS[name]
    params, x = model.init(KEY), phlox.random.normal(phlox.random.key(1), shape)
    exact = model.apply(params, x)
    y = model.apply(params, x, dtype=jnp.bfloat16)
    assert exact.dtype == jnp.float32 and y.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(y, np.float32), exact, atol=0.1, rtol=0.1)
    grads = phlox.grad(lambda p: model.apply(p, x, dtype="bfloat16").astype("float32").sum())(params)
    assert {g.dtype for g in phlox.tree.leaves(grads)} == {jnp.dtype("float32")}
    program = phlox.make_jaxpr(lambda p: model.apply(p, x, dtype="bfloat16"))(params).jaxpr
    products = [e for e in program.eqns if e.primitive.name in ("dot_general", "conv_general_dilated")]
    assert {v.aval.dtype for e in products for v in e.invars} <= {jnp.dtype("bfloat16")}


def test_statistics_stay_in_32_bits():
    model = nn.BatchNorm(4)
    x = 100 + phlox.random.normal(KEY, (64, 4))
    y, state = model.apply(model.init(KEY), x, state=model.init_state(), train=True, dtype="bfloat16")
    assert y.dtype == jnp.bfloat16 and state["mean"].dtype == jnp.float32


# --- what errors say ------------------------------------------------------------------------------------


def test_calling_configuration():
    with pytest.raises(ArgumentError, match="Sequential is configuration") as excinfo:
        nn.Sequential(nn.Linear(2, 3))(jnp.ones(2))
    assert "model.apply(params, x)" in message(excinfo)


def test_parameters_of_another_layer():
    model, x = net(), jnp.ones((3, 2))
    params = model.init(KEY)
    with pytest.raises(
        TreeError, match=r"parameters of rest\.0 do not fit Linear\(4, 4\): they lack \['weight'\]"
    ) as e:
        model.apply({**params, "rest": {"0": {"bias": jnp.ones(4)}}}, x)
    assert e.value.path == ("rest", "0")
    message(e)
    with pytest.raises(TreeError, match=r"have \['kernel'\], which it does not know"):
        model.apply({**params, "first": {**params["first"], "kernel": 1}}, x)
    with pytest.raises(TreeError, match=r"must be a dict, got a list"):
        model.apply([], x)
    with pytest.raises(
        ShapeError, match=r"'rest\.0\.weight' has shape \(2, 4\), but Linear\(4, 4\) needs \(4, 4\)"
    ) as e:
        model.apply({**params, "rest": {"0": params["first"]}}, x)
    assert e.value.shapes == [(2, 4), (4, 4)]


def test_inputs_that_do_not_fit():
    with pytest.raises(ShapeError, match=r"rest\.0 \(Linear\(3, 4\)\): the last axis.*length 3, got f32\[7,4\]") as e:
        model = Net(nn.Linear(2, 4), (nn.Linear(3, 4),), {"a": Scale(4)})
        model.apply(model.init(KEY), jnp.ones((7, 2)))
    assert e.value.layer == "rest.0"
    message(e)


def test_errors_of_own_layers_tell_the_path():
    class Wrong(nn.Layer):
        def __call__(self, x):
            return x @ jnp.ones((7, 7))

    with pytest.raises(phlox.errors.PhloxError) as excinfo:
        nn.Sequential(nn.relu, nn.Residual(Wrong())).apply({}, jnp.ones((2, 3)))
    assert "in layer: 1.layer (Wrong())" in message(excinfo)


def test_unknown_keywords():
    model = nn.Sequential(nn.Linear(2, 3))
    with pytest.raises(ArgumentError, match="unexpected keyword argument 'training'") as excinfo:
        model.apply(model.init(KEY), jnp.ones(2), training=True)
    assert "state, key, train, dtype" in message(excinfo)
    with pytest.raises(ArgumentError, match="has no method 'encode'"):
        model.apply(model.init(KEY), jnp.ones(2), method="encode")
    with pytest.raises(ArgumentError, match="missing a required argument"):
        model.apply(model.init(KEY))


def test_a_type_error_inside_of_a_layer_is_its_own():
    class Wrong(nn.Layer):
        def __call__(self, x):
            return len(x, 3)

    with pytest.raises(TypeError, match="exactly one argument"):
        Wrong().apply({}, 1.0)


def test_missing_state_and_key_are_told_by_path():
    model = nn.Sequential(nn.Linear(2, 3), nn.Residual(nn.BatchNorm(3)), nn.Dropout(0.5))
    params, x = model.init(KEY), jnp.ones((4, 2))
    for train in (False, True):
        with pytest.raises(ArgumentError, match=r"1\.layer \(BatchNorm\(3\)\) has state and was given none") as excinfo:
            model.apply(params, x, train=train, key=KEY)
        assert "model.init_state()" in message(excinfo)
    with pytest.raises(ArgumentError, match=r"2 \(Dropout\(0\.5\)\) draws random numbers and got no key"):
        model.apply(params, x, train=True, state=model.init_state())
    with pytest.raises(TreeError, match=r"variables of 1\.layer do not fit BatchNorm"):
        model.apply(params, x, state={})


def test_variables_keep_their_shape():
    class Grows(Counter):
        def __call__(self, x):
            self.update(count=jnp.ones(3))

    with pytest.raises(ShapeError, match=r"'count' has shape \(\) and cannot become \(3,\)"):
        Grows().apply({}, 1, state=Grows().init_state())


def test_names_that_are_taken():
    with pytest.raises(ArgumentError, match="the field 'train'"):

        class Wrong(nn.Layer):
            train: bool

    class Same(nn.Layer):
        scale: float

        def parameters(self):
            return {"scale": (nn.initializers.ones, ())}

    with pytest.raises(ArgumentError, match="'scale' cannot be the name"):
        Same(1.0).init(KEY)


def test_an_error_in_parameters_is_not_hidden():
    class Wrong(nn.Layer):
        def parameters(self):
            return {"a": self.nothing}

    with pytest.raises(AttributeError, match="nothing"):
        Wrong().init(KEY)


def test_sequential_says_what_is_no_layer():
    with pytest.raises(ArgumentError, match="layer 1 is 10") as excinfo:
        nn.Sequential(nn.relu, 10)
    message(excinfo)
    with pytest.raises(ArgumentError, match="layer 0 is Linear"):
        nn.Sequential(nn.Linear)


@pytest.mark.parametrize("pool", [nn.max_pool((2, 2)), nn.avg_pool((2, 2)), nn.avg_pool(2, 1, "SAME")])
def test_pooling_is_differentiated_under_jit(pool):
    x = phlox.random.normal(KEY, (2, 4, 4, 3))

    def loss(x):
        return (pool.apply({}, x) ** 2).sum()

    got = phlox.jit(phlox.grad(loss))(x)
    step = 1e-3
    slope = (loss(x + step * got) - loss(x - step * got)) / (2 * step)
    np.testing.assert_allclose(slope, (got**2).sum(), rtol=1e-3)


def test_a_stack_of_eighty_is_a_program_as_long_as_one_of_eight():
    def text(count):
        model = nn.Stack(nn.Residual(nn.MLP((4, 8, 4))), count)
        params = phlox.eval_shape(model.init, KEY)
        loss = phlox.grad(lambda params, x: (model.apply(params, x) ** 2).sum())
        return phlox.jit(loss).lower(params, jnp.ones((2, 4))).as_text()

    assert len(text(80).splitlines()) == len(text(8).splitlines())


@pytest.mark.parametrize("seed", [0, 0.5, None, "a", (0,)])
def test_a_seed_in_the_place_of_a_key_is_refused(seed):
    model = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5))
    with pytest.raises(ArgumentError, match=r"Sequential\.init takes a PRNG key") as caught:
        model.init(seed)
    assert f"init(phlox.random.key({'seed' if seed != 0 else 0}))" == caught.value.instead
    if seed is not None:
        with pytest.raises(ArgumentError, match="apply takes a PRNG key"):
            model.apply(model.init(phlox.random.PRNGKey(0)), jnp.ones(2), key=seed, train=True)
    assert phlox.eval_shape(model.init, phlox.random.key(0))["0"]["weight"].shape == (2, 3)


def test_misspelt_layers():
    with pytest.raises(AttributeError, match="Did you mean: 'Linear'"):
        _ = nn.Lineer
