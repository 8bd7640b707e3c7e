"""Keras 3 on its jax backend: layers, a training, its operations, weights that are saved and loaded."""

import os
import tempfile

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
from common import data, show
from keras import layers, ops

keras.utils.set_random_seed(0)
x, y = (np.asarray(v) for v in data())

model = keras.Sequential([keras.Input((2,)), layers.Dense(8, activation="tanh"), layers.Dense(1)])
show("weights", [w.numpy() for w in model.weights])
show("predict", model.predict(x, verbose=0))
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="mse", metrics=["mae"])
history = model.fit(x, y, epochs=3, batch_size=8, shuffle=False, validation_split=0.25, verbose=0)
show("fit", history.history)
show("evaluate", model.evaluate(x, y, verbose=0))
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.keras")
    model.save(path)
    show("load", keras.models.load_model(path).predict(x, verbose=0))

image = np.linspace(-1, 1, 2 * 8 * 8 * 3, dtype=np.float32).reshape(2, 8, 8, 3)
for layer in (
    layers.Conv2D(4, 3, padding="same"),
    layers.DepthwiseConv2D(3),
    layers.Conv2DTranspose(4, 3, strides=2),
    layers.SeparableConv2D(4, 3),
    layers.MaxPooling2D(),
    layers.GlobalAveragePooling2D(),
    layers.BatchNormalization(),
    layers.GroupNormalization(3),
    layers.UpSampling2D(interpolation="bilinear"),
    layers.Flatten(),
):
    show(type(layer).__name__, layer(image))
text = np.linspace(-1, 1, 2 * 5 * 6, dtype=np.float32).reshape(2, 5, 6)
for layer in (
    layers.LSTM(4, return_sequences=True),
    layers.GRU(4),
    layers.SimpleRNN(3),
    layers.Bidirectional(layers.LSTM(3)),
    layers.LayerNormalization(),
    layers.Conv1D(4, 2),
    layers.TimeDistributed(layers.Dense(2)),
):
    show(type(layer).__name__, layer(text))
show("attention", layers.MultiHeadAttention(2, 4)(text, text, use_causal_mask=True))
show("embedding", layers.Embedding(10, 4)(np.array([[1, 2], [3, 4]])))
show("dropout", layers.Dropout(0.5, seed=1)(text, training=True))
show("random", keras.random.normal((3,), seed=1), keras.random.categorical(np.zeros((2, 4), "float32"), 3, seed=2))


class Custom(layers.Layer):
    def __init__(self):
        super().__init__()
        self.scale = self.add_weight(shape=(6,), initializer="ones")
        self.calls = self.add_weight(shape=(), initializer="zeros", trainable=False, dtype="int32")

    def call(self, inputs):
        self.calls.assign_add(1)
        return ops.softmax(inputs * self.scale, axis=-1)


custom = Custom()
show("custom", custom(text), custom.calls.numpy())
show(
    "ops",
    ops.einsum("bij,bkj->bik", text, text),
    ops.top_k(text, 2),
    ops.segment_sum(text[0], np.array([0, 0, 1, 1, 2]), 3),
)
show("scan", ops.scan(lambda c, v: (c + v, c * v), np.zeros(6, "float32"), text[0]))
show("while", ops.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, v * 2), (0, text)))
show("cond", ops.cond(text.sum() > 0, lambda: text, lambda: -text), ops.fori_loop(0, 3, lambda i, v: v + i, text))
show(
    "image",
    ops.image.resize(image, (4, 4)),
    ops.nn.ctc_loss(np.array([[1, 2]]), np.zeros((1, 5, 4), "float32"), np.array([2]), np.array([5])),
)
functional = keras.Input((5, 6))
hidden = layers.Add()([functional, layers.Dense(6)(functional)])
two = keras.Model(functional, [layers.GlobalMaxPooling1D()(hidden), hidden])
show("functional", two(text))
state = [v.value for v in two.trainable_variables], [v.value for v in two.non_trainable_variables]
show("stateless", two.stateless_call(*state, text))

keras.mixed_precision.set_global_policy("mixed_bfloat16")
keras.utils.set_random_seed(1)
small = keras.Model(functional, layers.Dense(1, dtype="float32")(layers.LSTM(4)(functional)))
small.compile("sgd", "mse")
history = small.fit(text, np.ones((2, 1)), epochs=2, shuffle=False, verbose=0)
show("bfloat16", history.history, [w.numpy() for w in small.weights])
