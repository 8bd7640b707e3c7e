"""dm-haiku: control flow, several functions on one set of parameters, interception, mixed precision, nested transforms."""

import haiku as hk
import jax
import jax.numpy as jnp
import jmp
from common import data, show

x, y = data()
key = jax.random.PRNGKey(0)


def run(name, f, *args, rng=key):
    net = hk.transform_with_state(f)
    params, state = net.init(key, *args)
    out, changed = jax.jit(net.apply)(params, state, rng, *args)
    grads = jax.grad(lambda p: sum(jnp.sum(v) for v in jax.tree.leaves(net.apply(p, state, rng, *args)[0])))(params)
    show(name, params, out, changed, grads)
    return net, params, state


def loops(v):
    linear = hk.Linear(2)
    linear(v)
    v = hk.fori_loop(0, 3, lambda i, c: jnp.tanh(linear(c)) + i, v)
    v, seen = hk.scan(lambda c, w: (jnp.tanh(linear(c) + w), jnp.sum(c)), v, v[:4, None])
    v = hk.cond(jnp.sum(v) > 0, lambda c: linear(c), lambda c: -c, v)
    return hk.switch(1, [jnp.sin, jnp.cos, linear], v), seen


run("loops", loops, x)


def while_loop(v):
    linear = hk.Linear(2)
    if hk.running_init():
        return linear(v)
    return hk.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, linear(c[1])), (0, v))[1]


while_net = hk.transform(while_loop)
show("while", while_net.apply(while_net.init(key, x), None, x))
run("remat", lambda v: hk.remat(lambda w: hk.nets.MLP([3, 1])(w))(v), x)
run("stack", lambda v: hk.experimental.layer_stack(3)(lambda w: w + hk.Linear(2)(w))(v), x)
run(
    "norms",
    lambda v: (
        hk.LayerNorm(-1, True, True)(v)
        + hk.RMSNorm(-1)(v)
        + hk.GroupNorm(2)(v)
        + hk.InstanceNorm(True, True)(v[None])[0]
    ),
    x,
)
run("averages", lambda v: (hk.ExponentialMovingAverage(0.9)(v), hk.EMAParamsTree(0.9)({"a": {"w": v}})), x)
run("spectral", lambda v: v @ hk.SpectralNorm()(hk.get_parameter("w", (2, 3), init=hk.initializers.RandomNormal())), x)
run("embedding", lambda: hk.Embed(5, 3)(jnp.array([1, 2])))
run("dropout", lambda v: hk.dropout(hk.next_rng_key(), 0.5, hk.Linear(4)(v)), x)
run(
    "keys",
    lambda v: (
        jnp.stack([k.astype(jnp.float32) for k in hk.next_rng_keys(3)]) * hk.get_parameter("w", (), init=jnp.ones)
    ),
    x,
)
run(
    "reset",
    lambda v: hk.dynamic_unroll(
        hk.ResetCore(hk.GRU(3)), (v[:, None], jnp.zeros((len(v), 1), bool)), hk.GRU(3).initial_state(1)
    )[0],
    x,
)
run(
    "convolutional lstm",
    lambda v: hk.Conv1DLSTM((4,), 2, 3)(v, hk.Conv1DLSTM((4,), 2, 3).initial_state(1))[0],
    jnp.ones((1, 4, 1)),
)
run(
    "convolutions",
    lambda v: (hk.Conv2DTranspose(2, 3, stride=2)(v), hk.DepthwiseConv2D(1, 3)(v), hk.AvgPool(2, 2, "SAME")(v)),
    jnp.arange(16.0).reshape(1, 4, 4, 1),
)
run("batches", lambda v: hk.BatchApply(hk.Linear(2))(v.reshape(4, 4, -1)), x[:16])
run("scopes", lambda v: sum(hk.Linear(2, name=n)(v) for n in ("a", "b")), x)


class Named(hk.Module):
    def __init__(self):
        super().__init__("outer")

    @hk.transparent
    def inside(self, v):
        return hk.Linear(2)(v)

    def __call__(self, v):
        with hk.experimental.name_scope("inner"):
            return self.inside(v) + hk.Bias()(v)


run("names", lambda v: Named()(v), x)


def several():
    encoder, decoder = hk.Linear(3, name="encoder"), hk.Linear(2, name="decoder")

    def init(v):
        return decoder(encoder(v))

    return init, (encoder, decoder)


multi = hk.multi_transform(several)
params = multi.init(key, x)
encode, decode = multi.apply
show("several", decode(params, None, encode(params, None, x)))


def doubled(next_f, args, kwargs, context):
    out = next_f(*args, **kwargs)
    return out * 2 if context.method_name == "__call__" else out


def intercepted(v):
    with hk.intercept_methods(doubled):
        return hk.Linear(2)(v)


run("intercepted", intercepted, x)


def created(v):
    ones = lambda next_creator, shape, dtype, init, context: next_creator(shape, dtype, jnp.ones)
    halved = lambda next_getter, value, context: next_getter(value) / 2
    with hk.custom_creator(ones), hk.custom_getter(halved):
        return hk.Linear(2)(v)


run("created", created, x)
policy = jmp.get_policy("params=float32,compute=bfloat16,output=float32")
hk.mixed_precision.set_policy(hk.nets.MLP, policy)
run("precision", lambda v: hk.nets.MLP([4, 1])(v), x)
hk.mixed_precision.clear_policy(hk.nets.MLP)
inner = hk.transform(lambda v: hk.Linear(2)(v))


def lifted(v):
    lifted_params = hk.lift(inner.init, name="inner")(hk.next_rng_key(), v)
    return inner.apply(lifted_params, None, v)


run("lifted", lifted, x)
run("grad inside", lambda v: hk.grad(lambda w: jnp.sum(hk.Linear(1)(w) ** 2))(v), x)
net, params, state = run(
    "resnet",
    lambda v: hk.nets.ResNet(
        [1, 1, 1, 1],
        2,
        {"decay_rate": 0.9, "create_scale": True, "create_offset": True},
        bottleneck=False,
        channels_per_group=(4, 4, 4, 4),
    )(v, True),
    jnp.ones((1, 16, 16, 3)) * jnp.arange(16.0)[:, None] / 16,
)
weights, others = hk.data_structures.partition(lambda m, n, v: n == "w", params)
show(
    "partition",
    hk.data_structures.tree_size(weights),
    hk.data_structures.tree_bytes(others),
    len(hk.data_structures.merge(weights, others)),
)
show(
    "shapes",
    [
        (i.shape, str(i.dtype)) == () or i.shape
        for i in jax.tree.leaves(hk.experimental.eval_summary(inner)(x)[0].output_spec)
    ],
)
seq = hk.PRNGSequence(3)
show("sequence", next(seq), seq.take(2))
quantized = hk.transform_with_state(lambda v: hk.nets.VectorQuantizer(2, 4, 0.25)(v, True))
p, s = quantized.init(key, x)
show("quantizer", quantized.apply(p, s, key, x)[0]["quantize"])
buffered = hk.transform_with_state(
    lambda v: hk.set_state("s", hk.get_state("s", (2,), init=jnp.zeros) + v.mean(0)) or v
)
p, s = buffered.init(key, x)
show("state", jax.lax.scan(lambda s, _: (buffered.apply(p, s, None, x)[1], None), s, None, 4)[0])
