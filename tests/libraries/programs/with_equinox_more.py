"""equinox: stateful layers, files, closures, custom derivatives, checks, specifications of filters."""

import functools
import io

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from common import data, show

x, y = data()
key = jax.random.key(0)


class Normed(eqx.Module):
    first: eqx.nn.Linear
    norm: eqx.nn.BatchNorm
    spectral: eqx.nn.SpectralNorm
    dropout: eqx.nn.Dropout

    def __init__(self, key):
        a, b, c = jax.random.split(key, 3)
        self.first = eqx.nn.Linear(2, 4, key=a)
        self.norm = eqx.nn.BatchNorm(4, "batch", mode="batch")
        self.spectral = eqx.nn.SpectralNorm(eqx.nn.Linear(4, 1, key=b), "weight", key=c)
        self.dropout = eqx.nn.Dropout(0.3)

    def __call__(self, x, state, key):
        x, state = self.norm(self.first(x), state)
        x, state = self.spectral(self.dropout(jax.nn.silu(x), key=key), state)
        return x, state


model, state = eqx.nn.make_with_state(Normed)(key)
apply = jax.vmap(model, axis_name="batch", in_axes=(0, None, 0), out_axes=(0, None))
out, state = apply(x, state, jax.random.split(key, len(x)))
show("state", out, eqx.filter(state, eqx.is_inexact_array))
quiet = eqx.nn.inference_mode(model)
show("inference", jax.vmap(quiet, axis_name="batch", in_axes=(0, None, None))(x, state, None)[0])

buffer = io.BytesIO()
mlp = eqx.nn.MLP(2, 1, 4, 2, key=jax.random.key(1))
eqx.tree_serialise_leaves(buffer, mlp)
buffer.seek(0)
like = eqx.filter_eval_shape(functools.partial(eqx.nn.MLP, 2, 1, 4, 2), key=jax.random.key(2))
read = eqx.tree_deserialise_leaves(buffer, like)
show("file", jax.vmap(read)(x), eqx.tree_equal(read, mlp))

params, static = eqx.partition(mlp, eqx.is_inexact_array)
show("partition", jax.grad(lambda p: jnp.sum(eqx.combine(p, static)(x[0])))(params))
frozen = eqx.tree_at(lambda m: m.layers[0].weight, jax.tree.map(lambda _: True, mlp), False)
spec, rest = eqx.partition(mlp, jax.tree.map(lambda flag, leaf: flag and eqx.is_array(leaf), frozen, mlp))
show("frozen", eqx.filter_grad(lambda p: jnp.sum(jax.vmap(eqx.combine(p, rest))(x)))(spec))


@eqx.filter_custom_vjp
def scaled(v, _):
    return v["a"] * 2


@scaled.def_fwd
def scaled_forward(perturbed, v, _):
    return v["a"] * 2, v["a"]


@scaled.def_bwd
def scaled_backward(residual, grad, perturbed, v, _):
    return {"a": grad * residual}


show("custom vjp", eqx.filter_grad(lambda v: jnp.sum(scaled(v, None)))({"a": x}))


@eqx.filter_custom_jvp
def doubled(v, *, flag):
    return v * 2


@doubled.def_jvp
def doubled_jvp(primals, tangents, *, flag):
    (v,), (t,) = primals, tangents
    return v * 2, t * 5


show("custom jvp", eqx.filter_jvp(lambda v: doubled(v, flag=True), (x[0],), (jnp.ones(2),)))


@eqx.filter_jit
def positive(v):
    return jnp.sqrt(eqx.error_if(v, v < 0, "negative"))


show("error_if", positive(x[0] ** 2))
try:
    positive(jnp.float32(-1)).block_until_ready()
except Exception as error:
    show("raised", "negative" in str(error))
show("branched", eqx.filter_jit(lambda v: eqx.branched_error_if(v, v > 10, jnp.array(0), ["a", "b"]))(jnp.ones(2)))

closed = eqx.filter_closure_convert(lambda a, b: a * mlp(b), jnp.ones(()), x[0])
show("closure", closed(jnp.float32(2), x[1]))
show("checkpoint", eqx.filter_grad(eqx.filter_checkpoint(lambda m: jnp.sum(jax.vmap(m)(x))))(mlp))
shapes = eqx.filter_eval_shape(mlp, x[0])
show("eval_shape", shapes.shape)
jaxpr, out_shape, _ = eqx.filter_make_jaxpr(lambda v: mlp(v))(x[0])
show("jaxpr", len(jaxpr.eqns) > 3, out_shape.shape)
show("callback", eqx.filter_jit(lambda v: eqx.filter_pure_callback(lambda w: w * 3, v, result_shape_dtypes=v))(x[0]))

attention = eqx.nn.MultiheadAttention(2, 4, key=key)
mask = jnp.tril(jnp.ones((3, 3), bool))
z = jnp.arange(12.0).reshape(3, 4) / 12
show("attention", attention(z, z, z, mask=mask))
rope = eqx.nn.RotaryPositionalEmbedding(4)
show("rope", rope(z))
show("gru", jax.lax.scan(lambda c, v: (eqx.nn.GRUCell(2, 3, key=key)(v, c), c), jnp.zeros(3), x)[1])
show("pool", eqx.nn.AdaptiveAvgPool2d((2, 3))(jnp.arange(36.0).reshape(1, 6, 6)))
show("transposed", eqx.nn.ConvTranspose1d(1, 2, 3, stride=2, key=key)(jnp.ones((1, 5))))
show("weight norm", eqx.nn.WeightNorm(eqx.nn.Linear(2, 3, key=key))(x[0]))
show("group norm", eqx.nn.GroupNorm(2, 4)(jnp.arange(8.0).reshape(4, 2)))
show("prelu", eqx.nn.PReLU(0.1)(jnp.array([-1.0, 2.0])))

stack = eqx.filter_vmap(lambda k: eqx.nn.Linear(2, 2, key=k))(jax.random.split(key, 3))
arrays, fixed = eqx.partition(stack, eqx.is_array)
show("scan of layers", jax.lax.scan(lambda v, layer: (jnp.tanh(eqx.combine(layer, fixed)(v)), None), x[0], arrays)[0])
show("vmap axes", eqx.filter_vmap(lambda m, v: m(v), in_axes=(eqx.if_array(0), None))(stack, x[0]))
show(
    "loop", eqx.internal.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 1.5), (0, jnp.ones(2)), kind="lax")
)
bounded = lambda v: eqx.internal.while_loop(
    lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, v), kind="checkpointed", max_steps=8
)[1]
show("checkpointed loop", jax.grad(lambda v: jnp.sum(bounded(v)))(x[0]))
show("bounded loop", eqx.internal.scan(lambda c, v: (c + v, c), jnp.zeros(2), x, kind="checkpointed")[0])


class Base(eqx.Module):
    size: eqx.AbstractVar[int]

    def double(self):
        return self.size * 2


class Leaf(Base):
    size: int = eqx.field(converter=int, default=3)
    scale: jax.Array = eqx.field(converter=jnp.asarray, default=2.0)

    def __check_init__(self):
        assert self.size > 0


show("fields", Leaf().double(), Leaf("4", [1.0]).scale, eqx.tree_equal(Leaf(), Leaf()))


class Kinds(eqx.Enumeration):
    a = "first"
    b = "second"


show("enumeration", jax.jit(lambda k: Kinds.where(k == Kinds.a, Kinds.b, Kinds.a) == Kinds.b)(Kinds.a))
buffer = io.BytesIO()
eqx.tree_serialise_leaves(buffer, (3, True, 2.5, 1j, np.ones(2)))
buffer.seek(0)
show("numbers in a file", eqx.tree_deserialise_leaves(buffer, (0, False, 0.0, 0j, np.zeros(2))))
apart = eqx.internal.noinline(lambda v: jnp.sin(v) * 2)
show("not inlined", jax.jit(jax.grad(lambda v: apart(v).sum()))(x[0]), eqx.filter_jit(eqx.filter_vmap(apart))(x))
donated = eqx.filter_jit(
    lambda m, v: (jax.tree.map(lambda leaf: leaf * 2 if eqx.is_array(leaf) else leaf, m), v), donate="all-except-first"
)
show("donate", donated(mlp, x + 0)[1])
show("pmap", eqx.filter_pmap(lambda v: v * 2)(x[None]))
print(mlp, eqx.tree_pprint(mlp) or "")
