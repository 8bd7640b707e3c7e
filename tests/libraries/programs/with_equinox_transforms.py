"""equinox: filtered transformations, surgery on trees, serialisation, state, checkpointed loops, errors."""

import io

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from common import data, show

x, y = data(8)
key = jax.random.key(0)
model = eqx.nn.MLP(2, 1, 8, 2, activation=jax.nn.tanh, key=key)


@eqx.filter_value_and_grad(has_aux=True)
def loss(model, x, y):
    out = jax.vmap(model)(x)
    return jnp.mean((out - y) ** 2), out


(value, out), grads = eqx.filter_jit(loss)(model, x, y)
show("value and grad", value, out, grads)
optimizer = optax.adamw(0.01)
state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))


@eqx.filter_jit(donate="all-except-first")
def train(xy, model, state):
    (value, _), grads = loss(model, *xy)
    updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_inexact_array))
    return eqx.apply_updates(model, updates), state, value


trained = jax.tree.map(lambda v: v.copy() if eqx.is_array(v) else v, model)
for _ in range(3):
    trained, state, value = train((x, y), trained, state)
show("train", value, eqx.filter(trained, eqx.is_array))

# --- filtered transformations
many = eqx.filter_vmap(lambda key: eqx.nn.Linear(2, 3, key=key))(jax.random.split(key, 4))
show("ensemble", eqx.filter_vmap(lambda m, x: m(x), in_axes=(eqx.if_array(0), None))(many, x[0]))
show(
    "axes",
    eqx.filter_vmap(lambda a, b: a * b["n"], in_axes=(0, {"n": None, "s": None}), out_axes=1)(x, {"n": 2.0, "s": "a"}),
)
show(
    "jvp",
    eqx.filter_jvp(
        lambda m, x: m(x), (model, x[0]), (jax.tree.map(jnp.ones_like, eqx.filter(model, eqx.is_inexact_array)), x[1])
    ),
)
out, back = eqx.filter_vjp(lambda m: jax.vmap(m)(x), model)
show("vjp", out, back(jnp.ones_like(out)))
show("closure", eqx.filter_closure_convert(lambda x: model(x), x[0])(x[1]))
show("hessian", eqx.filter_hessian(lambda b: jnp.sum(jnp.sin(b) ** 3))(x[0]))
show("jacobians", eqx.filter_jacfwd(lambda x: model(x))(x[0]), eqx.filter_jacrev(lambda x: model(x))(x[0]))
show("shape", eqx.filter_eval_shape(model, x[0]).shape)
show("jaxpr", len(eqx.filter_make_jaxpr(model)(x[0])[0].eqns) > 3)
show("checkpoint", eqx.filter_grad(lambda m: eqx.filter_checkpoint(lambda x: m(x).sum())(x[0]))(model))


@eqx.filter_custom_vjp
def clipped(x, *, limit):
    return x * limit


@clipped.def_fwd
def forward(perturbed, x, *, limit):
    return x * limit, None


@clipped.def_bwd
def backward(residuals, g, perturbed, x, *, limit):
    return jnp.clip(g, -limit, limit)


show("custom_vjp", eqx.filter_grad(lambda x: (clipped(x, limit=0.5) * 3).sum())(x[0]))


@eqx.filter_custom_jvp
def tripled(x):
    return x


@tripled.def_jvp
def rule(primals, tangents):
    return primals[0], 3 * tangents[0]


show("custom_jvp", jax.grad(lambda v: tripled(v) ** 2)(2.0))
show(
    "pure callback", eqx.filter_jit(lambda v: eqx.filter_pure_callback(lambda v: v * 2, v, result_shape_dtypes=v))(x[0])
)

# --- surgery, serialisation
changed = eqx.tree_at(lambda m: (m.layers[0].weight, m.layers[1].bias), model, replace_fn=lambda v: v * 0)
show("tree_at", jax.vmap(changed)(x))
no_bias = eqx.tree_at(lambda m: m.layers[0].bias, model, None, is_leaf=lambda v: v is None)
show("without", len(jax.tree.leaves(eqx.filter(no_bias, eqx.is_array))))
arrays, static = eqx.partition(model, eqx.is_array)
show(
    "combine",
    eqx.combine(jax.tree.map(lambda v: 2 * v, arrays), static)(x[0]),
    eqx.tree_equal(model, eqx.combine(arrays, static)),
)
file = io.BytesIO()
eqx.tree_serialise_leaves(file, trained)
file.seek(0)
like = eqx.filter_eval_shape(eqx.nn.MLP, 2, 1, 8, 2, activation=jax.nn.tanh, key=key)
show("serialised", eqx.tree_deserialise_leaves(file, like)(x[0]), trained(x[0]))
show("printed", len(eqx.tree_pformat(model)) > 100, sum(map(len, eqx.tree_pformat(many, short_arrays=False)[:50])) > 0)
show("inference", eqx.nn.inference_mode(eqx.nn.Dropout(0.5))(x), eqx.nn.Dropout(0.5)(x, key=key))


# --- state
class Counted(eqx.Module):
    index: eqx.nn.StateIndex
    norm: eqx.nn.BatchNorm
    linear: eqx.nn.Linear

    def __init__(self, key):
        self.index = eqx.nn.StateIndex(jnp.int32(0))
        self.norm = eqx.nn.BatchNorm(3, axis_name="batch", mode="batch")
        self.linear = eqx.nn.Linear(2, 3, key=key)

    def __call__(self, x, state):
        x, state = self.norm(self.linear(x), state)
        return x, state.set(self.index, state.get(self.index) + 1)


counted, memory = eqx.nn.make_with_state(Counted)(key)
run = jax.vmap(counted, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
for _ in range(2):
    out, memory = eqx.filter_jit(run)(x, memory)
show("state", out, memory.get(counted.index))

# --- loops and errors
for kind in ("lax", "checkpointed", "bounded"):
    loop = lambda v, kind=kind: eqx.internal.while_loop(
        lambda s: s[0] < 4,
        lambda s: (s[0] + 1, jnp.sin(s[1]) * v),
        (0, v),
        max_steps=6,
        kind=kind,
        checkpoints=2 if kind == "checkpointed" else None,
    )[1]
    show(kind, loop(x[0]), *([] if kind == "lax" else [jax.grad(lambda v: loop(v).sum())(x[0])]))
show("error_if", eqx.filter_jit(lambda v: eqx.error_if(v, v.sum() > 100, "too large"))(x[0]))
try:
    eqx.filter_jit(lambda v: eqx.error_if(v, v.sum() < 100, "too small"))(x[0]).block_until_ready()
    show("raised", 0)
except Exception as error:
    show("raised", 1 if "too small" in str(error) else 0)
show(
    "layers",
    eqx.nn.Conv2d(1, 2, 3, padding=1, key=key)(jnp.ones((1, 4, 4))),
    eqx.nn.GRUCell(2, 3, key=key)(x[0], jnp.zeros(3)),
    eqx.nn.MultiheadAttention(2, 4, key=key)(jnp.ones((3, 4)), jnp.ones((3, 4)), jnp.ones((3, 4))),
    eqx.nn.RotaryPositionalEmbedding(4)(jnp.ones((3, 4))),
)
