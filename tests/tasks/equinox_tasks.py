"""The tasks of phlox_tasks.py with equinox and optax."""

import csv
import json
import os

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding, PartitionSpec as P
from safetensors.numpy import load_file
from task_data import BATCHES, NEW_TOKENS, TOKENS, VALID, X_VALID

KEY = jax.random.key(0)


def mlp():
    return eqx.nn.MLP(64, 10, 128, 1, key=KEY)


@eqx.filter_value_and_grad
def loss(model, batch):
    return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(batch[0]), batch[1]).mean()


def make_step(tx):
    @eqx.filter_jit
    def step(model, state, batch):
        value, grads = loss(model, batch)
        updates, state = tx.update(grads, state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, updates), state, value

    return step


@eqx.filter_jit
def correct(model, batch):
    return (jax.vmap(model)(batch[0]).argmax(-1) == batch[1]).sum()


def accuracy(model):
    return sum(int(correct(model, batch)) for batch in VALID) / sum(len(y) for _, y in VALID)


def own_layer(folder):
    class Scale(eqx.Module):
        scale: jax.Array

        def __init__(self, size):
            self.scale = jnp.ones(size)

        def __call__(self, x, *, key=None):
            return x * self.scale

    first, last = jax.random.split(KEY)
    layers = [
        eqx.nn.Linear(64, 128, key=first),
        Scale(128),
        eqx.nn.Lambda(jax.nn.relu),
        eqx.nn.Linear(128, 10, key=last),
    ]
    return jax.vmap(eqx.nn.Sequential(layers))(X_VALID).shape


def validation(folder):
    model, tx = mlp(), optax.adam(1e-3)
    step, state = make_step(tx), tx.init(eqx.filter(model, eqx.is_array))
    for epoch in range(5):
        losses = []
        for batch in BATCHES:
            model, state, value = step(model, state, batch)
            losses.append(value)
        result = accuracy(model)
        print(f"epoch {epoch + 1}  loss {np.mean(losses):.4g}  eval_accuracy {result:.4g}")
    return result


def best_and_resume(folder):
    last, best, note = f"{folder}/last.eqx", f"{folder}/best.eqx", f"{folder}/note.json"
    for epochs in (2, 5):
        model, tx = mlp(), optax.adam(1e-3)
        step, state = make_step(tx), tx.init(eqx.filter(model, eqx.is_array))
        start, highest = 0, 0.0
        if os.path.exists(note):
            with open(note) as file:
                start, highest = json.load(file)
            model, state = eqx.tree_deserialise_leaves(last, (model, state))
        for epoch in range(start, epochs):
            for batch in BATCHES:
                model, state, _ = step(model, state, batch)
            if accuracy(model) > highest:
                highest = accuracy(model)
                eqx.tree_serialise_leaves(best, model)
            eqx.tree_serialise_leaves(f"{last}.new", (model, state))
            os.replace(f"{last}.new", last)
            with open(note, "w") as file:
                json.dump([epoch + 1, highest], file)
    return accuracy(eqx.tree_deserialise_leaves(best, model))


def mixed_precision(folder):
    model, tx = mlp(), optax.apply_if_finite(optax.adam(1e-3), 1000)
    state = tx.init(eqx.filter(model, eqx.is_array))

    def half(tree):
        return jax.tree.map(lambda x: x.astype(jnp.float16) if eqx.is_inexact_array(x) else x, tree)

    @eqx.filter_jit
    def step(model, state, batch, scale, good):
        def scaled(model):
            losses = optax.softmax_cross_entropy_with_integer_labels(jax.vmap(half(model))(half(batch[0])), batch[1])
            return losses.mean().astype(jnp.float32) * scale

        value, grads = eqx.filter_value_and_grad(scaled)(model)
        updates, state = tx.update(jax.tree.map(lambda g: g / scale, grads), state)
        good = jnp.where(state.last_finite, good + 1, 0)
        new_scale = jnp.where(good == 0, scale / 2, jnp.where(good % 2000 == 0, scale * 2, scale))
        return eqx.apply_updates(model, updates), state, value / scale, new_scale, good

    scale, good = jnp.float32(2**15), jnp.int32(0)
    for _ in range(5):
        losses = []
        for batch in BATCHES:
            model, state, value, scale, good = step(model, state, batch, scale, good)
            losses.append(value)
    return float(np.mean(losses))


def two_optimizers(folder):
    model = mlp()

    def labels(params):
        return jax.tree_util.tree_map_with_path(
            lambda path, _: "sgd" if jax.tree_util.keystr(path).startswith(".layers[0]") else "adam", params
        )

    tx = optax.partition({"sgd": optax.sgd(1e-2, 0.9), "adam": optax.adam(1e-3)}, labels)
    step, state = make_step(tx), tx.init(eqx.filter(model, eqx.is_array))
    for _ in range(5):
        losses = []
        for batch in BATCHES:
            model, state, value = step(model, state, batch)
            losses.append(value)
    return float(np.mean(losses))


def lora(folder):
    class Adapted(eqx.Module):
        layer: eqx.nn.Linear
        a: jax.Array
        b: jax.Array

        def __init__(self, layer, rank, key):
            self.layer = layer
            self.a = jax.random.normal(key, (rank, layer.in_features)) / layer.in_features**0.5
            self.b = jnp.zeros((layer.out_features, rank))

        def __call__(self, x, *, key=None):
            return self.layer(x) + self.b @ (self.a @ x)

    model, tx = mlp(), optax.adam(1e-2)
    layers = tuple(Adapted(layer, 4, key) for layer, key in zip(model.layers, jax.random.split(KEY), strict=True))
    model = eqx.tree_at(lambda m: m.layers, model, layers)
    adapters = eqx.tree_at(
        lambda m: [x for layer in m.layers for x in (layer.a, layer.b)],
        jax.tree.map(lambda _: False, model),
        [True] * 4,
    )
    learnt, frozen = eqx.partition(model, adapters)
    state = tx.init(learnt)

    @eqx.filter_jit
    def step(learnt, state, batch):
        def own_loss(learnt):
            scores = jax.vmap(eqx.combine(learnt, frozen))(batch[0])
            return optax.softmax_cross_entropy_with_integer_labels(scores, batch[1]).mean()

        value, grads = eqx.filter_value_and_grad(own_loss)(learnt)
        updates, state = tx.update(grads, state)
        return eqx.apply_updates(learnt, updates), state, value

    for _ in range(5):
        losses = []
        for batch in BATCHES:
            learnt, state, value = step(learnt, state, batch)
            losses.append(value)
    first = eqx.combine(learnt, frozen).layers[0]
    return float(np.mean(losses)), (first.layer.weight + first.b @ first.a).T.shape


def fsdp(folder):
    mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    model, tx = mlp(), optax.adam(1e-3)
    step, state = make_step(tx), tx.init(eqx.filter(model, eqx.is_array))

    def shard(path, leaf):
        split = ".layers[0].weight" in jax.tree_util.keystr(path)
        return NamedSharding(mesh, P(None, "data") if split else P())

    arrays, rest = eqx.partition((model, state), eqx.is_array)
    arrays = jax.device_put(arrays, jax.tree_util.tree_map_with_path(shard, arrays))
    model, state = eqx.combine(arrays, rest)
    for _ in range(5):
        losses = []
        for batch in BATCHES:
            model, state, value = step(model, state, jax.device_put(batch, NamedSharding(mesh, P("data"))))
            losses.append(value)
    return float(np.mean(losses)), model.layers[0].weight.addressable_shards[0].data.T.shape


def ema(folder):
    model, tx = mlp(), optax.adam(1e-3)
    step, state = make_step(tx), tx.init(eqx.filter(model, eqx.is_array))
    average = optax.ema(0.999, debias=True)
    average_state = average.init(eqx.filter(model, eqx.is_array))
    update = eqx.filter_jit(average.update)
    for _ in range(5):
        for batch in BATCHES:
            model, state, _ = step(model, state, batch)
            arrays, rest = eqx.partition(model, eqx.is_array)
            averaged, average_state = update(arrays, average_state)
        print(accuracy(model), accuracy(eqx.combine(averaged, rest)))
    return accuracy(eqx.combine(averaged, rest))


def log_figures(folder):
    model, tx = mlp(), optax.adam(1e-3)
    state = tx.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def step(model, state, batch):
        value, grads = loss(model, batch)
        updates, state = tx.update(grads, state)
        return eqx.apply_updates(model, updates), state, (value, optax.global_norm(grads))

    with open(f"{folder}/log.csv", "w") as table, open(f"{folder}/log.jsonl", "w") as lines:
        writer = csv.DictWriter(table, ["epoch", "loss", "grad_norm"])
        writer.writeheader()
        for epoch in range(5):
            values = []
            for batch in BATCHES:
                model, state, figures = step(model, state, batch)
                values.append(figures)
            row = dict(zip(["epoch", "loss", "grad_norm"], [epoch + 1, *np.mean(values, axis=0).tolist()], strict=True))
            writer.writerow(row)
            lines.write(json.dumps(row) + "\n")
            print(row)
    return len(open(f"{folder}/log.csv").readlines())


def surgery(folder):
    model = eqx.tree_at(lambda m: m.layers[-1], mlp(), eqx.nn.Linear(128, 3, key=jax.random.key(1)))
    return jax.vmap(model)(X_VALID).shape


class Block(eqx.Module):
    ln_1: eqx.nn.LayerNorm
    attn: dict[str, eqx.nn.Linear]
    ln_2: eqx.nn.LayerNorm
    mlp: dict[str, eqx.nn.Linear]
    heads: int = eqx.field(static=True)

    def __init__(self, config):
        size, epsilon, self.heads = config["n_embd"], config["layer_norm_epsilon"], config["n_head"]
        self.ln_1 = eqx.nn.LayerNorm(size, epsilon)
        self.attn = {"c_attn": eqx.nn.Linear(size, 3 * size, key=KEY), "c_proj": eqx.nn.Linear(size, size, key=KEY)}
        self.ln_2 = eqx.nn.LayerNorm(size, epsilon)
        self.mlp = {"c_fc": eqx.nn.Linear(size, 4 * size, key=KEY), "c_proj": eqx.nn.Linear(4 * size, size, key=KEY)}

    def __call__(self, x):
        qkv = jax.vmap(lambda row: self.attn["c_attn"](self.ln_1(row)))(x).reshape(len(x), 3, self.heads, -1)
        y = jax.nn.dot_product_attention(*jnp.moveaxis(qkv, 1, 0), is_causal=True)
        x = x + jax.vmap(self.attn["c_proj"])(y.reshape(x.shape))
        return x + jax.vmap(lambda row: self.mlp["c_proj"](jax.nn.gelu(self.mlp["c_fc"](self.ln_2(row)))))(x)


class GPT2(eqx.Module):
    wte: eqx.nn.Embedding
    wpe: eqx.nn.Embedding
    h: list[Block]
    ln_f: eqx.nn.LayerNorm

    def __init__(self, config):
        self.wte = eqx.nn.Embedding(config["vocab_size"], config["n_embd"], key=KEY)
        self.wpe = eqx.nn.Embedding(config["n_positions"], config["n_embd"], key=KEY)
        self.h = [Block(config) for _ in range(config["n_layer"])]
        self.ln_f = eqx.nn.LayerNorm(config["n_embd"], config["layer_norm_epsilon"])

    def __call__(self, tokens):
        x = self.wte.weight[tokens] + self.wpe.weight[: len(tokens)]
        for block in self.h:
            x = block(x)
        return jax.vmap(self.ln_f)(x) @ self.wte.weight.T


def load_gpt2(folder):
    with open(f"{folder}/config.json") as file:
        model = GPT2(json.load(file))
    tensors = load_file(f"{folder}/model.safetensors")

    def tensor(path, _):
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        value = jnp.asarray(tensors[f"transformer.{name}"])
        return value.T if ".c_" in name else value

    return jax.tree_util.tree_map_with_path(tensor, model)


def load_weights(folder):
    return jax.vmap(load_gpt2(folder))(TOKENS)


def generate(folder):
    model, length = jax.vmap(load_gpt2(folder)), TOKENS.shape[1]
    tokens = jnp.pad(TOKENS, ((0, 0), (0, NEW_TOKENS)))
    for n in range(length, length + NEW_TOKENS):
        tokens = tokens.at[:, n].set(model(tokens)[:, n - 1].argmax(-1))
    return tokens
