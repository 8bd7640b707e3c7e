"""flax.nnx: lifted transformations, filters of state, random streams, metrics, layers of recurrent networks."""

import pickle

import jax
import jax.numpy as jnp
import optax
from common import data, show
from flax import nnx

x, y = data()


class Block(nnx.Module):
    def __init__(self, size, rngs):
        self.linear = nnx.Linear(size, size, rngs=rngs, kernel_init=nnx.initializers.orthogonal())
        self.norm = nnx.LayerNorm(size, rngs=rngs)
        self.drop = nnx.Dropout(0.2, rngs=rngs)

    def __call__(self, x):
        return x + self.drop(jax.nn.relu(self.norm(self.linear(x))))


class Deep(nnx.Module):
    def __init__(self, depth, rngs):
        @nnx.split_rngs(splits=depth)
        @nnx.vmap(in_axes=(0,), out_axes=0)
        def create(rngs):
            return Block(2, rngs)

        self.blocks = create(rngs)
        self.head = nnx.Linear(2, 1, rngs=rngs)
        self.depth = depth

    def __call__(self, x):
        @nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
        def forward(block, x):
            return block(x)

        x = forward(self.blocks, x)
        self.sow(nnx.Intermediate, "features", jnp.mean(x))
        return self.head(x)


deep = Deep(3, nnx.Rngs(0, dropout=1))
schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-2, 3, 10)
optimizer = nnx.Optimizer(deep, optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule)), wrt=nnx.Param)
metrics = nnx.MultiMetric(loss=nnx.metrics.Average("loss"), accuracy=nnx.metrics.Accuracy())


@nnx.jit
def step(model, optimizer, metrics):
    def loss(model):
        out = model(x)
        return jnp.mean((out - y) ** 2), out

    (value, out), grads = nnx.value_and_grad(loss, has_aux=True)(model)
    metrics.update(loss=value, logits=jnp.concatenate([out, -out], -1), labels=(y[:, 0] > 0).astype(int))
    optimizer.update(model, grads)
    return value


for _ in range(4):
    step(deep, optimizer, metrics)
show("scan", nnx.state(deep, nnx.Param))
show("metrics", metrics.compute())
show("sown", nnx.pop(deep, nnx.Intermediate))
show("filters", nnx.state(deep, nnx.All(nnx.Param, nnx.PathContains("head"))), nnx.state(deep, nnx.RngCount))
graph, params, streams, rest = nnx.split(deep, nnx.Param, nnx.RngState, ...)
show("split", params, len(jax.tree.leaves(streams)))
nnx.update(deep, jax.tree.map(jnp.zeros_like, params))
show("update", nnx.state(deep, nnx.Param))
again = nnx.clone(nnx.merge(graph, params, streams, rest))
again.eval()
show("eval", again(x))

frozen = nnx.value_and_grad(lambda m: jnp.sum(m(x)), argnums=nnx.DiffState(0, nnx.PathContains("head")))
show("diff state", frozen(again))


class Counter(nnx.Module):
    def __init__(self):
        self.count = nnx.Variable(jnp.array(0))


@nnx.jit
def advance(counter, n):
    def body(i, c):
        c.count[...] += i
        return c

    return nnx.fori_loop(0, n, body, counter).count[...]


counter = Counter()
show("fori_loop", advance(counter, 5), counter.count[...])
nnx.while_loop(lambda c: c.count[...] < 30, lambda c: (setattr(c.count, "value", c.count[...] + 7), c)[1], counter)
show("while_loop", counter.count[...])
nnx.cond(counter.count[...] > 3, lambda c: c.count.set_value(c.count[...] * 2), lambda c: None, counter)
show("cond", counter.count[...])
show("remat", nnx.grad(lambda m: jnp.sum(nnx.remat(lambda m, v: m(v))(m, x)))(again.head))


rnn = nnx.RNN(nnx.OptimizedLSTMCell(2, 4, rngs=nnx.Rngs(2)), return_carry=True)
show("rnn", rnn(x[None], seq_lengths=jnp.array([20])))
both = nnx.Bidirectional(nnx.RNN(nnx.GRUCell(2, 3, rngs=nnx.Rngs(3))), nnx.RNN(nnx.SimpleCell(2, 3, rngs=nnx.Rngs(4))))
show("bidirectional", both(x[None]))
lora = nnx.LoRA(2, 1, 3, base_module=nnx.Linear(2, 3, rngs=nnx.Rngs(5)), rngs=nnx.Rngs(6))
show("lora", lora(x), nnx.state(lora, nnx.LoRAParam))
decode = nnx.MultiHeadAttention(2, 4, decode=True, rngs=nnx.Rngs(7))
decode.init_cache((1, 3, 4))
show("decode", [decode(jnp.ones((1, 1, 4)) * i) for i in range(3)], nnx.state(decode, nnx.Cache))
show("embed", nnx.Embed(5, 3, rngs=nnx.Rngs(8)).attend(jnp.ones((1, 3))))
show("groups", nnx.GroupNorm(4, num_groups=2, rngs=nnx.Rngs(9))(jnp.arange(8.0).reshape(2, 4)))
show("einsum", nnx.Einsum("ab,bc->ac", (2, 3), (3,), rngs=nnx.Rngs(10))(x))
show("transposed", nnx.ConvTranspose(1, 2, (3,), strides=2, rngs=nnx.Rngs(11))(jnp.ones((1, 4, 1))))
rngs = nnx.Rngs(0, noise=jax.random.key(3))
show(
    "streams", rngs.params(), rngs.noise(), rngs(), jax.random.normal(rngs.noise(), (2,)), nnx.state(rngs, nnx.RngCount)
)
show("forked", nnx.state(nnx.Rngs(1).fork(split=2)))
sequence = nnx.Sequential(nnx.Linear(2, 3, rngs=rngs), jax.nn.gelu, nnx.Linear(3, 1, rngs=rngs))
show("sequence", sequence(x), len(nnx.to_flat_state(nnx.state(sequence))))
pure = nnx.to_pure_dict(nnx.state(sequence))
state = nnx.state(sequence)
nnx.replace_by_pure_dict(state, jax.tree.map(lambda leaf: leaf * 2, pure))
nnx.update(sequence, state)
show("pure dict", sequence(x))
abstract = nnx.eval_shape(lambda: Deep(2, nnx.Rngs(0)))
show("abstract", [leaf.shape for leaf in jax.tree.leaves(nnx.state(abstract, nnx.Param))])
show("pickled", pickle.loads(pickle.dumps(nnx.to_pure_dict(nnx.state(sequence)))))
cached = nnx.cached_partial(nnx.jit(lambda m, v: m(v)), sequence)
show("cached", cached(x))


class Custom(nnx.Variable):
    pass


class Holder(nnx.Module):
    def __init__(self):
        self.items = nnx.List([nnx.Param(jnp.ones(2)), Custom(jnp.zeros(1))])
        self.table = nnx.Dict(a=nnx.Param(jnp.arange(3.0)))


holder = Holder()
show("containers", nnx.state(holder), nnx.state(holder, Custom), [len(p) for p, _ in nnx.iter_graph(holder)][:2])
show("vmap axes", nnx.vmap(lambda m, v: m(v), in_axes=(None, 0))(sequence, x))
axes = nnx.StateAxes({nnx.Param: 0, ...: None})
many = nnx.vmap(lambda k: nnx.Linear(2, 1, rngs=nnx.Rngs(k)))(jax.random.split(jax.random.key(0), 3))
show("state axes", nnx.vmap(lambda m, v: m(v), in_axes=(axes, None))(many, x[0]))
print(nnx.tabulate(sequence, x)[:10], str(holder)[:5])
