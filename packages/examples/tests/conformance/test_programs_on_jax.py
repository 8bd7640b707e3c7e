"""Programs beside the same programs in jax and optax: the same numbers come out. The networks of the others have twins
in test_network_programs.py."""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
import optax

import phlox
import phlox_data
from example_runs import results, run
from phlox_examples import data_parallel, digits, per_example_gradients, selu_mlp


def mlp(params, x, activation):
    layers = [params["layers"][str(number)] for number in range(len(params["layers"]))]
    for layer in layers[:-1]:
        x = activation(x @ layer["weight"] + layer["bias"])
    return x @ layers[-1]["weight"] + layers[-1]["bias"]


def cross_entropy(scores, labels):
    return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()


def trained(params, loss, tx, batches):
    """The losses of the steps, in jax."""

    @jax.jit
    def step(number, params, state, batch):
        value, grads = jax.value_and_grad(loss)(params, batch, number)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    params = jax.tree.map(jnp.asarray, phlox.tree.map(np.asarray, params))
    state, losses = tx.init(params), []
    for number, batch in enumerate(batches):
        params, state, value = step(number, params, state, {name: np.asarray(x) for name, x in batch.items()})
        losses.append(float(value))
    return params, losses


def test_selu_mlp(tmp_path):
    run("selu-mlp", "--widths", 32, 32, "--epochs", 2, "--half-life", 1, "--seed", 3, "--out", tmp_path)
    found = results(tmp_path)["epochs"]

    params_key, noise_key = phlox.random.split(phlox.random.key(3))
    noise_key = jax.random.wrap_key_data(np.asarray(phlox.random.key_data(noise_key)))
    data = digits.load(3)
    batches = phlox_data.batches(data.train, 64, seed=3, last="drop")

    def loss(params, batch, number):
        noise = jax.random.normal(jax.random.fold_in(noise_key, number), batch["image"].shape)
        return cross_entropy(mlp(params, batch["image"] + selu_mlp.NOISE * noise, jax.nn.selu), batch["label"])

    start = selu_mlp.network([32, 32]).init(params_key)
    tx = optax.adam(optax.exponential_decay(0.002, 22, 0.5))
    params, losses = trained(start, loss, tx, [*batches.epoch(0), *batches.epoch(1)])
    np.testing.assert_allclose([row["loss"] for row in found], np.reshape(losses, (2, 22)).mean(1), rtol=1e-3)
    scores = mlp(params, data.test["image"], jax.nn.selu)
    np.testing.assert_allclose(found[-1]["test_loss"], cross_entropy(scores, data.test["label"]), rtol=1e-3)


def test_data_parallel(tmp_path):
    run("data-parallel", "--widths", 16, "--epochs", 1, "--devices", 4, "--out", tmp_path)
    found = [step["all_devices"] for step in results(tmp_path, "data-parallel")["losses"]]
    options = argparse.Namespace(widths=[16], learning_rate=0.002, seed=0)
    batches = phlox_data.batches(digits.load(0).train, 64, seed=0, last="drop")
    with jax.enable_x64(True):
        _, start = data_parallel.make_step(options)  # 64 bits are on since the program ran
        tx = optax.adam(0.002)
        _, losses = trained(
            start.params,
            lambda params, batch, number: cross_entropy(mlp(params, batch["image"], jax.nn.selu), batch["label"]),
            tx,
            batches.epoch(0),
        )
    np.testing.assert_allclose(found, losses, rtol=1e-5)


def test_per_example_gradients():
    params = per_example_gradients.model.init(phlox.random.key(0))
    train = digits.load(0).train
    images, labels = train["image"][:50], train["label"][:50]
    ours = np.asarray(per_example_gradients.norms(params, images, labels))

    def loss(params, image, label):
        return -jax.nn.log_softmax(mlp(params, image, jax.nn.relu))[label]

    params = jax.tree.map(jnp.asarray, phlox.tree.map(np.asarray, params))
    gradients = jax.vmap(jax.grad(loss), (None, 0, 0))(params, images, labels)
    np.testing.assert_allclose(ours, jax.vmap(optax.tree.norm)(gradients), rtol=1e-4)
    # And one example by itself, without vmap.
    alone = jax.grad(loss)(params, images[7], labels[7])
    np.testing.assert_allclose(ours[7], optax.tree.norm(alone), rtol=1e-4)
