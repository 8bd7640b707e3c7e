"""The tasks of phlox_tasks.py with flax nnx, optax and orbax."""

import csv
import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import nnx
from flax.training.dynamic_scale import DynamicScale
from jax.sharding import NamedSharding, PartitionSpec as P
from safetensors.numpy import load_file
from task_data import BATCHES, NEW_TOKENS, TOKENS, VALID, X_VALID


class MLP(nnx.Module):
    def __init__(self, rngs, dtype=None):
        self.first = nnx.Linear(64, 128, rngs=rngs, dtype=dtype)
        self.last = nnx.Linear(128, 10, rngs=rngs, dtype=dtype)

    def __call__(self, x):
        return self.last(nnx.relu(self.first(x)))


def loss(model, batch):
    return optax.softmax_cross_entropy_with_integer_labels(model(batch[0]), batch[1]).mean()


@nnx.jit
def step(model, optimizer, batch):
    value, grads = nnx.value_and_grad(loss)(model, batch)
    optimizer.update(model, grads)
    return value


@nnx.jit
def correct(model, batch):
    return (model(batch[0]).argmax(-1) == batch[1]).sum()


def accuracy(model):
    return sum(int(correct(model, batch)) for batch in VALID) / sum(len(y) for _, y in VALID)


def own_layer(folder):
    class Scale(nnx.Module):
        def __init__(self, size):
            self.scale = nnx.Param(jnp.ones(size))

        def __call__(self, x):
            return x * self.scale[...]

    rngs = nnx.Rngs(0)
    model = nnx.Sequential(nnx.Linear(64, 128, rngs=rngs), Scale(128), nnx.relu, nnx.Linear(128, 10, rngs=rngs))
    return model(X_VALID).shape


def validation(folder):
    model = MLP(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    for epoch in range(5):
        losses = [step(model, optimizer, batch) for batch in BATCHES]
        result = accuracy(model)
        print(f"epoch {epoch + 1}  loss {np.mean(losses):.4g}  eval_accuracy {result:.4g}")
    return result


def best_and_resume(folder):
    options = ocp.CheckpointManagerOptions(max_to_keep=1, best_fn=lambda figures: figures["accuracy"])
    for epochs in (2, 5):
        model = MLP(nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
        with (
            ocp.CheckpointManager(f"{folder}/last", options=ocp.CheckpointManagerOptions(max_to_keep=1)) as last,
            ocp.CheckpointManager(f"{folder}/best", options=options) as best,
        ):
            start = 0
            if last.latest_step() is not None:
                start = last.latest_step()
                saved = last.restore(start, args=ocp.args.StandardRestore(nnx.state((model, optimizer))))
                nnx.update((model, optimizer), saved)
            for epoch in range(start, epochs):
                for batch in BATCHES:
                    step(model, optimizer, batch)
                state = nnx.state((model, optimizer))
                last.save(epoch + 1, args=ocp.args.StandardSave(state))
                best.save(epoch + 1, args=ocp.args.StandardSave(state), metrics={"accuracy": accuracy(model)})
            best.wait_until_finished()
            nnx.update((model, optimizer), best.restore(best.best_step(), args=ocp.args.StandardRestore(state)))
    return accuracy(model)


def mixed_precision(folder):
    model, scale = MLP(nnx.Rngs(0), dtype=jnp.float16), DynamicScale()
    optimizer = nnx.Optimizer(model, optax.apply_if_finite(optax.adam(1e-3), 1000), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer, batch, scale):
        graph, params = nnx.split(model)
        half_loss = scale.value_and_grad(lambda params: loss(nnx.merge(graph, params), batch).astype(jnp.float32))
        scale, _, value, grads = half_loss(params)
        optimizer.update(model, grads)
        return value, scale

    for _ in range(5):
        losses = []
        for batch in BATCHES:
            value, scale = step(model, optimizer, batch, scale)
            losses.append(value)
    return float(np.mean(losses))


def two_optimizers(folder):
    model = MLP(nnx.Rngs(0))

    def labels(params):
        return jax.tree_util.tree_map_with_path(lambda path, _: "sgd" if path[0].key == "first" else "adam", params)

    tx = optax.partition({"sgd": optax.sgd(1e-2, 0.9), "adam": optax.adam(1e-3)}, labels)
    optimizer = nnx.Optimizer(model, tx, wrt=nnx.Param)
    for _ in range(5):
        losses = [step(model, optimizer, batch) for batch in BATCHES]
    return float(np.mean(losses))


def lora(folder):
    model = MLP(nnx.Rngs(0))
    model.first = nnx.LoRA(64, 4, 128, base_module=model.first, rngs=nnx.Rngs(1))
    model.last = nnx.LoRA(128, 4, 10, base_module=model.last, rngs=nnx.Rngs(2))
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.LoRAParam)

    @nnx.jit
    def step(model, optimizer, batch):
        value, grads = nnx.value_and_grad(loss, argnums=nnx.DiffState(0, nnx.LoRAParam))(model, batch)
        optimizer.update(model, grads)
        return value

    for _ in range(5):
        losses = [step(model, optimizer, batch) for batch in BATCHES]
    first = model.first
    merged = first.base_module.kernel[...] + first.lora_a[...] @ first.lora_b[...]
    return float(np.mean(losses)), merged.shape


def fsdp(folder):
    mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))

    def shard(path, leaf):
        split = "first" in jax.tree_util.keystr(path) and "kernel" in jax.tree_util.keystr(path)
        return NamedSharding(mesh, P("data") if split else P())

    model = MLP(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    state = nnx.state((model, optimizer))
    nnx.update((model, optimizer), jax.device_put(state, jax.tree_util.tree_map_with_path(shard, state)))
    for _ in range(5):
        losses = [step(model, optimizer, jax.device_put(b, NamedSharding(mesh, P("data")))) for b in BATCHES]
    return float(np.mean(losses)), model.first.kernel[...].addressable_shards[0].data.shape


def ema(folder):
    model = MLP(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    average = optax.ema(0.999, debias=True)
    graph, params = nnx.split(model)
    state = average.init(params)
    update = jax.jit(average.update)
    for _ in range(5):
        for batch in BATCHES:
            step(model, optimizer, batch)
            averaged, state = update(nnx.state(model), state)
        print(accuracy(model), accuracy(nnx.merge(graph, averaged)))
    return accuracy(nnx.merge(graph, averaged))


def log_figures(folder):
    model = MLP(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer, batch):
        value, grads = nnx.value_and_grad(loss)(model, batch)
        optimizer.update(model, grads)
        return value, optax.global_norm(grads)

    with open(f"{folder}/log.csv", "w") as table, open(f"{folder}/log.jsonl", "w") as lines:
        writer = csv.DictWriter(table, ["epoch", "loss", "grad_norm"])
        writer.writeheader()
        for epoch in range(5):
            values = np.mean([step(model, optimizer, batch) for batch in BATCHES], axis=0)
            row = {"epoch": epoch + 1, "loss": float(values[0]), "grad_norm": float(values[1])}
            writer.writerow(row)
            lines.write(json.dumps(row) + "\n")
            print(row)
    return len(open(f"{folder}/log.csv").readlines())


def surgery(folder):
    model = MLP(nnx.Rngs(0))
    model.last = nnx.Linear(128, 3, rngs=nnx.Rngs(1))
    return model(X_VALID).shape


class Block(nnx.Module):
    def __init__(self, config, rngs):
        size, epsilon, self.heads = config["n_embd"], config["layer_norm_epsilon"], config["n_head"]
        self.ln_1 = nnx.LayerNorm(size, epsilon=epsilon, rngs=rngs)
        self.attn = nnx.Dict(c_attn=nnx.Linear(size, 3 * size, rngs=rngs), c_proj=nnx.Linear(size, size, rngs=rngs))
        self.ln_2 = nnx.LayerNorm(size, epsilon=epsilon, rngs=rngs)
        self.mlp = nnx.Dict(c_fc=nnx.Linear(size, 4 * size, rngs=rngs), c_proj=nnx.Linear(4 * size, size, rngs=rngs))

    def __call__(self, x):
        qkv = self.attn.c_attn(self.ln_1(x)).reshape(*x.shape[:2], 3, self.heads, -1)
        y = jax.nn.dot_product_attention(*jnp.moveaxis(qkv, 2, 0), is_causal=True)
        x = x + self.attn.c_proj(y.reshape(x.shape))
        return x + self.mlp.c_proj(nnx.gelu(self.mlp.c_fc(self.ln_2(x))))


class GPT2(nnx.Module):
    def __init__(self, config, rngs):
        size = config["n_embd"]
        self.wte = nnx.Embed(config["vocab_size"], size, rngs=rngs)
        self.wpe = nnx.Embed(config["n_positions"], size, rngs=rngs)
        self.h = nnx.List([Block(config, rngs) for _ in range(config["n_layer"])])
        self.ln_f = nnx.LayerNorm(size, epsilon=config["layer_norm_epsilon"], rngs=rngs)

    def __call__(self, tokens):
        x = self.wte(tokens) + self.wpe(jnp.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return self.wte.attend(self.ln_f(x))


def load_gpt2(folder):
    with open(f"{folder}/config.json") as file:
        model = GPT2(json.load(file), nnx.Rngs(0))
    tensors = load_file(f"{folder}/model.safetensors")

    def tensor(path, _):
        name = ".".join(["transformer", *map(str, path)])
        return tensors[re.sub(r"\.(kernel|scale|embedding)$", ".weight", name)]

    nnx.update(model, nnx.map_state(tensor, nnx.state(model)))
    return model


def load_weights(folder):
    return load_gpt2(folder)(TOKENS)


def generate(folder):
    model, length = load_gpt2(folder), TOKENS.shape[1]
    tokens = jnp.pad(TOKENS, ((0, 0), (0, NEW_TOKENS)))
    for n in range(length, length + NEW_TOKENS):
        tokens = tokens.at[:, n].set(model(tokens)[:, n - 1].argmax(-1))
    return tokens
