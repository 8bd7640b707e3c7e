"""The tasks of phlox_tasks.py with Keras on JAX."""

import json
import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
from safetensors.numpy import load_file
from task_data import NEW_TOKENS, TOKENS, X_VALID, Y_VALID, X, Y

LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def mlp():
    keras.utils.set_random_seed(0)
    return keras.Sequential([keras.Input((64,)), keras.layers.Dense(128, "relu"), keras.layers.Dense(10)])


def own_layer(folder):
    class Scale(keras.layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight(shape=shape[-1:], initializer="ones")

        def call(self, x):
            return x * self.scale

    layers = [keras.layers.Dense(128), Scale(), keras.layers.ReLU(), keras.layers.Dense(10)]
    return keras.Sequential(layers)(X_VALID).shape


def validation(folder):
    model = mlp()
    model.compile(keras.optimizers.Adam(1e-3), LOSS, metrics=["accuracy"])
    fitted = model.fit(X, Y, 64, epochs=5, validation_data=(X_VALID, Y_VALID), verbose=2)
    return fitted.history["val_accuracy"][-1]


def best_and_resume(folder):
    for epochs in (2, 5):
        model = mlp()
        model.compile(keras.optimizers.Adam(1e-3), LOSS, metrics=["accuracy"])
        best = keras.callbacks.ModelCheckpoint(f"{folder}/best.keras", "val_accuracy", save_best_only=True)
        backup = keras.callbacks.BackupAndRestore(f"{folder}/last", delete_checkpoint=False)
        valid = (X_VALID, Y_VALID)
        model.fit(X, Y, 64, epochs=epochs, validation_data=valid, callbacks=[best, backup], verbose=2)
    model = keras.models.load_model(f"{folder}/best.keras")
    return model.evaluate(X_VALID, Y_VALID, return_dict=True)["accuracy"]


def mixed_precision(folder):
    keras.mixed_precision.set_global_policy("mixed_float16")
    model = mlp()
    model.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(1e-3)), LOSS)
    history = model.fit(X, Y, 64, epochs=5, verbose=2).history
    keras.mixed_precision.set_global_policy("float32")
    return history["loss"][-1]


def two_optimizers(folder):
    model = mlp()
    first = {f"{model.layers[0].path}/.*": keras.optimizers.SGD(1e-2, 0.9)}
    by_path = keras.optimizers.OptimizerMap(keras.optimizers.Adam(1e-3), first)
    model.compile(keras.optimizers.MultiOptimizer(by_path), LOSS)
    return model.fit(X, Y, 64, epochs=5, verbose=2).history["loss"][-1]


def lora(folder):
    model = mlp()
    for layer in model.layers:
        layer.enable_lora(4)
        layer.bias.trainable = False
    model.compile(keras.optimizers.Adam(1e-2), LOSS)
    history = model.fit(X, Y, 64, epochs=5, verbose=2).history
    return history["loss"][-1], model.layers[0].kernel.shape


def fsdp(folder):
    mesh = keras.distribution.DeviceMesh((8,), ["data"], keras.distribution.list_devices())
    layout = keras.distribution.LayoutMap(mesh)
    layout[".*dense.*kernel"] = ("data", None)
    keras.distribution.set_distribution(keras.distribution.ModelParallel(layout_map=layout, batch_dim_name="data"))
    model = mlp()
    model.compile(keras.optimizers.Adam(1e-3), LOSS)
    history = model.fit(X, Y, 64, epochs=5, verbose=2).history
    keras.distribution.set_distribution(None)
    return history["loss"][-1], model.layers[0].kernel.value.addressable_shards[0].data.shape


def ema(folder):
    model = mlp()
    optimizer = keras.optimizers.Adam(1e-3, use_ema=True, ema_momentum=0.999)
    model.compile(optimizer, LOSS, metrics=["accuracy"])
    swap = keras.callbacks.SwapEMAWeights(swap_on_epoch=True)
    valid = (X_VALID, Y_VALID)
    fitted = model.fit(X, Y, 64, epochs=5, validation_data=valid, callbacks=[swap], verbose=2)
    return fitted.history["val_accuracy"][-1]


def log_figures(folder):
    class JsonLines(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            with open(f"{folder}/log.jsonl", "a") as file:
                file.write(f'{{"epoch": {epoch + 1}, "loss": {logs["loss"]}}}\n')

    model = mlp()
    model.compile(keras.optimizers.Adam(1e-3), LOSS)
    log = [keras.callbacks.CSVLogger(f"{folder}/log.csv"), JsonLines()]
    model.fit(X, Y, 64, epochs=5, callbacks=log, verbose=2)
    return len(open(f"{folder}/log.csv").readlines())


def surgery(folder):
    old = mlp()
    model = keras.Sequential([*old.layers[:-1], keras.layers.Dense(3)])
    return model(X_VALID).shape


def load_gpt2(folder):
    with open(f"{folder}/config.json") as file:
        config = json.load(file)
    size, heads, epsilon = config["n_embd"], config["n_head"], config["layer_norm_epsilon"]
    tokens = keras.Input((None,), dtype="int32")
    wte = keras.layers.ReversibleEmbedding(config["vocab_size"], size, name="wte")
    positions = keras.ops.cumsum(keras.ops.ones_like(tokens), 1) - 1
    x = wte(tokens) + keras.layers.Embedding(config["n_positions"], size, name="wpe")(positions)
    for n in range(config["n_layer"]):
        y = keras.layers.LayerNormalization(epsilon=epsilon, name=f"h.{n}.ln_1")(x)
        y = keras.layers.Dense(3 * size, name=f"h.{n}.attn.c_attn")(y)
        qkv = keras.layers.Reshape((-1, 3, heads, size // heads))(y)
        y = keras.ops.dot_product_attention(*keras.ops.unstack(qkv, 3, 2), is_causal=True)
        x = x + keras.layers.Dense(size, name=f"h.{n}.attn.c_proj")(keras.layers.Reshape((-1, size))(y))
        y = keras.layers.LayerNormalization(epsilon=epsilon, name=f"h.{n}.ln_2")(x)
        y = keras.activations.gelu(keras.layers.Dense(4 * size, name=f"h.{n}.mlp.c_fc")(y), approximate=True)
        x = x + keras.layers.Dense(size, name=f"h.{n}.mlp.c_proj")(y)
    x = keras.layers.LayerNormalization(epsilon=epsilon, name="ln_f")(x)
    model = keras.Model(tokens, wte(x, reverse=True))
    tensors = load_file(f"{folder}/model.safetensors")
    for layer in model.layers:
        names = [f"transformer.{layer.name}.{kind}" for kind in ("weight", "bias")]
        layer.set_weights([tensors[name] for name in names if name in tensors])
    return model


def load_weights(folder):
    return load_gpt2(folder)(TOKENS)


def generate(folder):
    model, length = load_gpt2(folder), TOKENS.shape[1]
    tokens = np.pad(TOKENS, ((0, 0), (0, NEW_TOKENS)))
    for n in range(length, length + NEW_TOKENS):
        tokens[:, n] = keras.ops.argmax(model(tokens)[:, n - 1], -1)
    return tokens
