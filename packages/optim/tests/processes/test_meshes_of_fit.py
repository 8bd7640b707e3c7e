"""`fit` over a mesh of eight virtual devices: the losses of one device, parameters and optimizer split by the rules."""

import pytest

import optim_processes
import phlox_nn  # noqa: F401  (a program below imports it, which Pants cannot see in a text)

PROGRAM = """
import sys, tempfile
import numpy as np
import phlox, phlox.numpy as jnp, phlox_optim as optim
from phlox.sharding import PartitionSpec as P
from phlox_optim import metrics
from phlox_optim.checkpoint import CheckpointManager

rng = np.random.default_rng(0)
params = {
    "embedding": {"weight": rng.normal(size=(16, 8)).astype("f4")},
    "blocks": [
        {"attention": {n: {"weight": rng.normal(size=(8, 8)).astype("f4") / 3} for n in ("query", "value")},
         "mlp": {"in": rng.normal(size=(8, 16)).astype("f4") / 3, "out": rng.normal(size=(16, 8)).astype("f4") / 4}}
        for _ in range(2)
    ],
    "bias": np.zeros(5, "f4"),
}
tokens = rng.integers(0, 16, (160, 6))
batches = [{"x": tokens[n : n + 32], "y": tokens[n : n + 32].sum(1) % 5} for n in range(0, 160, 32)]
batches.append({"x": tokens[:6], "y": tokens[:6].sum(1) % 5})  # a batch that eight devices cannot share equally

def block(x, p):
    a = phlox.nn.softmax(jnp.einsum("btd,bsd->bts", x @ p["attention"]["query"]["weight"], x) / 3)
    x = x + a @ x @ p["attention"]["value"]["weight"]
    return x + phlox.nn.gelu(x @ p["mlp"]["in"]) @ p["mlp"]["out"]

def loss(params, batch, key):
    x = params["embedding"]["weight"][batch["x"]]
    x = x + 0.01 * phlox.random.normal(key, x.shape)
    for p in params["blocks"]:
        x = phlox.checkpoint(block)(x, p)
    scores = x.mean(1)[:, :5] + params["bias"]
    losses = optim.softmax_cross_entropy_with_integer_labels(scores, batch["y"])
    return losses.mean(), {"accuracy": metrics.accuracy(scores, batch["y"])}

def train(accumulate=1, **options):
    step = optim.make_step(loss, optim.adamw(1e-2), clip=1.0, ema=0.9, accumulate=accumulate)
    state = step.init(params, key=phlox.random.key(0))
    return optim.fit(state, step, batches, progress=False, **{"epochs": 3, **options})
"""

MESHES = {
    "data parallel": ("(8,), ('data',)", "None"),
    "data parallel, axis of another name": ("(8,), ('x',)", "None"),
    "fsdp": ("(8,), ('data',)", "'fsdp'"),
    "fsdp by rules": ("(8,), ('data',)", "{'*/weight': P('data'), '*/in': P(None, 'data')}"),
    "tensor parallel": ("(8,), ('model',)", "{'*/query/weight': P(None, 'model'), '*/mlp/out': P('model')}"),
    "both": (
        "(2, 4), ('data', 'model')",
        "{'*/attention/query/weight': P('data', 'model'), '*/mlp/in': P(None, 'model'), '*/mlp/out': P('model')}",
    ),
}
ENVIRONMENT = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "PHLOX_PLATFORMS": "cpu"}


@pytest.mark.parametrize("name", MESHES)
def test_losses_are_those_of_one_device(name):
    mesh, rules = MESHES[name]
    program = f"""
plain = train()
done = train(mesh=phlox.make_mesh({mesh}), rules={rules})
for row, expected in zip(done.history, plain.history, strict=True):
    for name in ("loss", "accuracy", "grad_norm"):
        np.testing.assert_allclose(row[name], expected[name], rtol=0, atol=1e-6)
for a, b in zip(phlox.tree.leaves(done.state.params), phlox.tree.leaves(plain.state.params), strict=True):
    np.testing.assert_allclose(a, b, atol=2e-5)
    assert len(a.sharding.device_set) == 8
print("done")
"""
    assert optim_processes.run(PROGRAM + program, **ENVIRONMENT) == "done"


def test_shardings_follow_the_rules_and_a_training_goes_on():
    mesh, rules = MESHES["both"]
    program = f"""
mesh, rules = phlox.make_mesh({mesh}), {rules}
whole = train(mesh=mesh, rules=rules, accumulate=2)
query = whole.state.params["blocks"][0]["attention"]["query"]["weight"]
assert query.sharding.spec == P("data", "model"), query.sharding
assert query.addressable_shards[0].data.shape == (4, 2)
mu = whole.state.opt_state[0].mu["blocks"][1]["mlp"]["out"]
assert mu.sharding.spec[0] == "model" and whole.state.ema["blocks"][1]["mlp"]["out"].sharding.spec[0] == "model"
assert whole.state.params["bias"].sharding.is_fully_replicated
with tempfile.TemporaryDirectory() as folder, CheckpointManager(folder) as checkpoints:
    train(mesh=mesh, rules=rules, accumulate=2, epochs=1, checkpoints=checkpoints)
    best = optim.Best("loss")
    done = train(mesh=mesh, rules=rules, accumulate=2, checkpoints=checkpoints, best=best,
                 plateau=optim.ReduceOnPlateau("loss", patience=9))
    assert done.history == whole.history
    assert done.best.params["blocks"][0]["attention"]["query"]["weight"].sharding.spec == P("data", "model")
plain = train(accumulate=2)
np.testing.assert_allclose(done.history[-1]["loss"], plain.history[-1]["loss"], atol=1e-6)
print("done")
"""
    program = PROGRAM.replace("batches.append(", "(") + program
    assert optim_processes.run(program, **ENVIRONMENT) == "done"


EXPERTS = """
import numpy as np
import phlox, phlox.numpy as jnp, phlox_nn as nn, phlox_optim as optim
from phlox.sharding import PartitionSpec as P

experts = nn.MoE(nn.MLP((8, 16, 8), nn.relu), num_experts=8, features=8, top_k=2, capacity_factor=1.5)
model = nn.Sequential(nn.Linear(4, 8), experts, nn.Linear(8, 4))
x = np.random.default_rng(0).normal(size=(128, 4)).astype("f4")
batches = [(x[n : n + 32], x[n : n + 32].argmax(1)) for n in range(0, 128, 32)]

def loss(params, batch, state):
    scores, state = model.apply(params, batch[0], state=state, train=True)
    losses = optim.softmax_cross_entropy_with_integer_labels(scores, batch[1])
    return losses.mean() + 0.01 * nn.balance_loss(state), {"state": state}

def train(epochs, **options):
    # The first scale is too high for float16: some steps are skipped.
    step = optim.make_step(loss, optim.adam(1e-2), dtype=jnp.float16, loss_scale=optim.LossScale(2.0**17))
    state = step.init(model.init(phlox.random.key(0)), state=model.init_state())
    return optim.fit(state, step, batches, epochs=epochs, progress=False, **options)
"""


@pytest.mark.parametrize("rules", ["'fsdp'", "{'1/expert/*': P('data')}"])
def test_a_mixture_of_experts_trains_in_float16(rules):
    program = f"""
plain, done = train(1), train(20, mesh=phlox.make_mesh((8,), ("data",)), rules={rules})
first, last = done.history[0], done.history[-1]
# A rounding error may send a token to another expert, so only the first epoch is compared.
np.testing.assert_allclose(first["loss"], plain.history[0]["loss"], atol=5e-3)
assert first["skipped"] == plain.history[0]["skipped"] > 0 and last["skipped"] == 0, (first, last)
assert last["loss"] < first["loss"] / 2, (first, last)
weight = done.state.params["1"]["expert"]["layers"]["0"]["weight"]
assert weight.dtype == jnp.float32 and weight.addressable_shards[0].data.size == weight.size // 8
print("done")
"""
    assert optim_processes.run(EXPERTS + program, **ENVIRONMENT) == "done"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("train(mesh=mesh, rules={'*/quary': P('data')})", "no parameter is meant by the pattern '*/quary'"),
        ("train(mesh=mesh, rules={'bias': P('data')})", "axis 0 of bias, (5,), cannot be cut into 8 equal parts"),
        ("train(mesh=mesh, rules={'*/query': P('model')})", "names 'model', but the mesh has ('data',)"),
        ("train(mesh=mesh, rules={'*/query': 'data'})", "is 'data'"),
        ("train(mesh=mesh, rules='fdsp')", "rules is 'fdsp'"),
        (
            "step = optim.make_step(loss, optim.sgd(0.1), axis_name='i')\\n"
            "optim.fit(step.init(params, key=phlox.random.key(0)), step, batches, epochs=1, mesh=mesh)",
            "which is for pmap",
        ),
        (
            "step = optim.make_step(loss, optim.sgd(0.1), axis_name='i')\\n"
            "state = phlox.tree.map(lambda x: jnp.stack([x] * 8), step.init(params, key=phlox.random.key(0)))\\n"
            "optim.fit(state, phlox.pmap(step.function, axis_name='i'), batches, epochs=1)",
            'mesh=phlox.make_mesh((8,), ("data",))',
        ),
    ],
)
def test_what_does_not_fit(lines, message):
    program = (
        PROGRAM
        + f"""
mesh = phlox.make_mesh((8,), ("data",))
try:
    exec('''{lines}''')
except phlox.errors.ArgumentError as error:
    print(error)
"""
    )
    assert message in optim_processes.run(program, **ENVIRONMENT)
