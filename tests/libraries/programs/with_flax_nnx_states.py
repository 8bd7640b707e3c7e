"""flax.nnx: axes of states, optimizers of a part, metadata of partitions, perturbations, views, linen's modules, variables."""

import flax.linen
import jax
import jax.numpy as jnp
import optax
from common import data, show
from flax import nnx

x, y = data(4)


class Normalized(nnx.Module):
    def __init__(self, rngs):
        self.linear = nnx.Linear(2, 3, rngs=rngs)
        self.norm = nnx.BatchNorm(3, rngs=rngs)

    def __call__(self, x):
        hidden = self.perturb("hidden", self.linear(x))
        self.sow(nnx.Intermediate, "mean", hidden.mean())
        return self.norm(hidden)


# --- axes: parameters and statistics for each member, the rest shared; a variable that is carried
axes = nnx.StateAxes({(nnx.Param, nnx.BatchStat): 0, ...: None})


@nnx.split_rngs(splits=3)
@nnx.vmap(in_axes=0, out_axes=axes)
def create(rngs):
    model = Normalized(rngs)
    model.eval()
    return model


ensemble = create(nnx.Rngs(0))
show("vmap", nnx.vmap(lambda m, x: m.norm(m.linear(x)), in_axes=(axes, None))(ensemble, x), nnx.state(ensemble))
layers = nnx.Dict(kernel=nnx.Param(jnp.full((4, 2, 2), 0.1)), count=nnx.Variable(jnp.float32(0)))


@nnx.scan(in_axes=(nnx.StateAxes({nnx.Param: 0, ...: nnx.Carry}), nnx.Carry), out_axes=(nnx.Carry, 0))
def through(layer, h):
    layer["count"][...] += 1
    h = h @ layer["kernel"][...]
    return h, h.sum()


show("scan", through(layers, x), layers["count"][...])

# --- an optimizer of the low-rank parameters only
tuned = nnx.Sequential(
    nnx.LoRALinear(2, 4, lora_rank=2, rngs=nnx.Rngs(0)), nnx.relu, nnx.Linear(4, 1, rngs=nnx.Rngs(1))
)
optimizer = nnx.Optimizer(tuned, optax.adam(1e-2), wrt=nnx.LoRAParam)
low_rank = nnx.DiffState(0, nnx.LoRAParam)


@nnx.jit
def step(model, optimizer):
    loss, grads = nnx.value_and_grad(lambda m: jnp.mean((m(x) - y) ** 2), argnums=low_rank)(model)
    optimizer.update(model, grads)
    return loss


show("optimizer", [step(tuned, optimizer) for _ in range(3)], nnx.state(tuned, nnx.LoRAParam), optimizer.step[...])

# --- perturbations and sown values, metadata of partitions
model = Normalized(nnx.Rngs(2))
model(x)
perturbation = nnx.DiffState(0, nnx.Perturbation)
show("perturb", nnx.grad(lambda m: jnp.sum(m(x) ** 3), argnums=perturbation)(model), nnx.pop(model, nnx.Intermediate))
with jax.set_mesh(jax.make_mesh((1,), ("x",))), nnx.logical_axis_rules([("embed", None), ("mlp", "x")]):
    kernel = nnx.with_partitioning(nnx.initializers.ones, ("embed", "mlp"))
    split = nnx.Linear(2, 4, kernel_init=kernel, rngs=nnx.Rngs(3))
    spec = nnx.get_partition_spec(nnx.state(split))["kernel"].get_value()
    show("partitions", spec == jax.sharding.PartitionSpec(None, "x"), split(x))

# --- views, layers with normalized weights, modules of linen
dropping = nnx.Sequential(nnx.Dropout(0.5, rngs=nnx.Rngs(4)), nnx.BatchNorm(2, rngs=nnx.Rngs(4)))
still = nnx.view(dropping, deterministic=True, use_running_average=True)
show("view", dropping(x), still(x))
weight_norm = nnx.WeightNorm(nnx.Linear(2, 3, rngs=nnx.Rngs(5)), rngs=nnx.Rngs(6))
spectral_norm = nnx.SpectralNorm(nnx.Linear(2, 3, rngs=nnx.Rngs(5)), rngs=nnx.Rngs(6))
show("normalized weights", weight_norm(x), spectral_norm(x, update_stats=True))
linear = nnx.bridge.ToLinen(nnx.Linear, args=(2, 3))
variables = linear.init(jax.random.key(0), x)
show("bridge", nnx.bridge.ToNNX(flax.linen.Dense(2), rngs=nnx.Rngs(7)).lazy_init(x)(x), linear.apply(variables, x))

# --- ensembles with an optimizer each, optimizers with line searches, captured arguments, variables with hooks
members = nnx.vmap(lambda key: nnx.Linear(2, 1, rngs=nnx.Rngs(key)))(jax.random.split(jax.random.key(0), 3))
optimizers = nnx.vmap(lambda m: nnx.Optimizer(m, optax.adam(0.1), wrt=nnx.Param))(members)


@nnx.jit
@nnx.vmap(in_axes=(0, 0))
def step_of_each(model, optimizer):
    loss, grads = nnx.value_and_grad(lambda m: jnp.mean((m(x) - y) ** 2))(model)
    optimizer.update(model, grads)
    return loss


cached = nnx.cached_partial(step_of_each, members, optimizers)
show("optimizers", [cached() for _ in range(2)], nnx.state(members), optimizers.step[...])
searched = nnx.Linear(2, 1, rngs=nnx.Rngs(8))
search = nnx.Optimizer(searched, optax.lbfgs(), wrt=nnx.Param)
graph = nnx.graphdef(searched)
loss = lambda params: jnp.mean((nnx.merge(graph, params)(x) - y) ** 2)
for _ in range(3):
    value, grads = jax.value_and_grad(loss)(nnx.state(searched, nnx.Param))
    search.update(searched, grads, grad=grads, value=value, value_fn=loss)
show("line search", value, nnx.state(searched))


class Doubled(nnx.Param):
    def on_get_value(self, value):
        return value * 2

    def on_set_value(self, value):
        return value + 1


doubled = Doubled(jnp.ones(2))
first = doubled[...]
doubled[...] = jnp.zeros(2)
show("hooks", first, doubled[...])
streams = nnx.Rngs(0, noise=jax.random.key(4))
forked = streams.fork(split={"noise": 2, ...: None})
show("forks", forked.noise.key[...], streams.noise(), streams.normal((2,)), streams.noise.bernoulli(0.3, (4,)))
