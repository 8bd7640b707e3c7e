"""flax nnx: scan, vmap, remat, cond, while_loop, jvp, shard over modules; filters, graphs, own variables."""

import jax
import jax.numpy as jnp
import optax
from common import data, show
from flax import nnx

x, y = data(8)


class Block(nnx.Module):
    def __init__(self, width, *, rngs):
        self.linear = nnx.Linear(width, width, rngs=rngs)
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.drop = nnx.Dropout(0.2, rngs=rngs)
        self.calls = nnx.Variable(jnp.int32(0))

    def __call__(self, h):
        self.calls[...] += 1
        return h + self.drop(nnx.gelu(self.linear(self.norm(h))))


class Deep(nnx.Module):
    def __init__(self, depth, *, rngs):
        @nnx.split_rngs(splits=depth)
        @nnx.vmap(in_axes=(0,), out_axes=0)
        def make(rngs):
            return Block(4, rngs=rngs)

        self.start = nnx.Linear(2, 4, rngs=rngs)
        self.blocks = make(rngs)
        self.end = nnx.Linear(4, 1, rngs=rngs)

    def __call__(self, h):
        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        @nnx.remat
        def through(h, block):
            return block(h)

        return self.end(through(self.start(h), self.blocks))


model = Deep(3, rngs=nnx.Rngs(0, dropout=1))
show("scan", model(x), model.blocks.calls[...], nnx.state(model, nnx.Param))
optimizer = nnx.Optimizer(model, optax.adam(0.01), wrt=nnx.Param)


@nnx.jit
def train(model, optimizer, x, y):
    loss, grads = nnx.value_and_grad(lambda m: jnp.mean((m(x) - y) ** 2))(model)
    optimizer.update(model, grads)
    return loss


show("train", [train(model, optimizer, x, y) for _ in range(4)], model.blocks.calls[...])
model.eval()
show("eval", model(x))

# --- ensembles, conditions, loops
make = nnx.vmap(lambda key: nnx.Linear(2, 1, rngs=nnx.Rngs(key)), in_axes=0, out_axes=0)
many = make(jax.random.split(jax.random.key(0), 3))
show("vmap", nnx.vmap(lambda m, x: m(x), in_axes=(0, None))(many, x))
axes = nnx.StateAxes({nnx.Param: 0, ...: None})
show("state axes", nnx.vmap(lambda m: m.kernel[...].sum(), in_axes=(axes,))(many))
one, other = nnx.Linear(2, 1, rngs=nnx.Rngs(1)), nnx.Linear(2, 1, rngs=nnx.Rngs(2))
show("cond", nnx.cond(x[0, 0] > 0, lambda a, b, x: a(x), lambda a, b, x: b(x), one, other, x))
show("switch", nnx.switch(1, [lambda a, x: a(x), lambda a, x: -a(x)], one, x))
grads = nnx.grad(lambda m, x: jnp.sum(m(x) ** 2), argnums=nnx.DiffState(0, nnx.filterlib.PathContains("kernel")))(
    one, x
)
show("grad of part", grads)

# --- graphs
graph, params, rest = nnx.split(model, nnx.Param, ...)
show("merge", nnx.merge(graph, jax.tree.map(lambda v: v * 2, params), rest, copy=True)(x))
nnx.update(model, jax.tree.map(lambda v: v * 0.5, params))
show("update", model(x))
show("clone", nnx.clone(model)(x), len(list(nnx.iter_graph(model))))
shapes = nnx.eval_shape(lambda: Deep(2, rngs=nnx.Rngs(0)))
show("eval_shape", [v.size for v in jax.tree.leaves(nnx.state(shapes, nnx.Param))])
show("pure", jax.jit(lambda p, r, x: nnx.merge(graph, p, r)(x))(params, rest, x))
shared = nnx.Sequential(one, nnx.relu, nnx.Linear(1, 2, rngs=nnx.Rngs(4)), one)
show("shared", shared(x), len(jax.tree.leaves(nnx.state(shared))))
cell = nnx.RNN(nnx.LSTMCell(2, 3, rngs=nnx.Rngs(5)))
show("rnn", cell(jnp.stack([x[:4], x[4:]])))
batch = nnx.BatchNorm(2, rngs=nnx.Rngs(6))
show("batch norm", batch(x), batch.mean[...], batch.var[...])
attention = nnx.MultiHeadAttention(2, 4, 8, decode=False, rngs=nnx.Rngs(7))
show("attention", attention(jax.random.normal(jax.random.key(1), (2, 3, 4))))
metrics = nnx.MultiMetric(loss=nnx.metrics.Average("loss"), accuracy=nnx.metrics.Accuracy())
metrics.update(loss=jnp.float32(2), logits=jnp.eye(3), labels=jnp.arange(3))
show("metrics", metrics.compute())
lora = nnx.LoRA(2, 1, 3, rngs=nnx.Rngs(8))
show("lora", lora(x))
tabulated = nnx.tabulate(one, x)
show("tabulate", len(tabulated) > 100)
