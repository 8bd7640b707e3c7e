"""Programs over libraries of JAX, as their users write them, for ``./bench libraries``.

Each function imports its library, and returns a function that builds a model, computes its first result, and returns
the step: one more result of the same shapes. ``jax`` is phlox where `phlox.as_jax` was installed before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Step = Callable[[], Any]


def _points() -> tuple[Any, Any]:
    x = np.random.default_rng(0).normal(size=(128, 16)).astype(np.float32)
    return x, np.sin(x.sum(1, keepdims=True))


def flax_nnx() -> Callable[[], Step]:
    """A training step of a perceptron with `nnx.jit` and Adam."""
    import optax
    from flax import nnx

    class Model(nnx.Module):  # type: ignore[misc]
        """A perceptron with a normalization and dropout."""

        def __init__(self, rngs: Any):
            self.first = nnx.Linear(16, 128, rngs=rngs)
            self.norm = nnx.LayerNorm(128, rngs=rngs)
            self.dropout = nnx.Dropout(0.1, rngs=rngs)
            self.second = nnx.Linear(128, 1, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return self.second(self.dropout(nnx.gelu(self.norm(self.first(x)))))

    def start() -> Step:
        model = Model(nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
        batch = _points()

        @nnx.jit
        def train(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
            loss, gradients = nnx.value_and_grad(lambda model: ((model(x) - y) ** 2).mean())(model)
            optimizer.update(model, gradients)
            return loss

        def step() -> Any:
            return train(model, optimizer, *batch).block_until_ready()

        step()
        return step

    return start


def keras_fit() -> Callable[[], Step]:
    """An epoch of `fit` over 32 batches."""
    import keras

    def start() -> Step:
        keras.utils.set_random_seed(0)
        layers = [keras.layers.Dense(64, "relu"), keras.layers.BatchNormalization(), keras.layers.Dense(1)]
        model = keras.Sequential([keras.Input((16,)), *layers])
        model.compile("adam", "mse", metrics=["mae"])
        x, y = _points()
        x, y = np.tile(x, (8, 1)), np.tile(y, (8, 1))

        def step() -> Any:
            return model.fit(x, y, batch_size=32, epochs=1, verbose=0).history["loss"]

        step()
        return step

    return start


def numpyro_nuts() -> Callable[[], Step]:
    """A run of NUTS over a logistic regression, of 100 steps of warm-up and 100 samples."""
    import jax
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    def start() -> Step:
        x, y = _points()

        def model(x: Any, y: Any) -> None:
            slope = numpyro.sample("slope", dist.Normal(0, 1).expand([16]).to_event(1))
            numpyro.sample("y", dist.Bernoulli(logits=x @ slope), obs=y)

        sampler = MCMC(NUTS(model), num_warmup=100, num_samples=100, progress_bar=False)

        def step() -> Any:
            sampler.run(jax.random.PRNGKey(0), x, (y[:, 0] > 0).astype(np.float32))
            return jax.block_until_ready(sampler.get_samples())

        step()
        return step

    return start


def diffrax_gradient() -> Callable[[], Step]:
    """The gradient of the solution of a differential equation by Tsit5, whose field is a perceptron."""
    import diffrax
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    def start() -> Step:
        field = eqx.nn.MLP(4, 4, 32, 2, activation=jnp.tanh, key=jax.random.key(0))
        initial = jnp.linspace(-1, 1, 4)

        @eqx.filter_jit
        @eqx.filter_grad
        def gradient(field: Any, initial: Any) -> Any:
            solution = diffrax.diffeqsolve(
                diffrax.ODETerm(lambda t, y, field: field(y)),
                diffrax.Tsit5(),
                t0=0.0,
                t1=2.0,
                dt0=0.1,
                y0=initial,
                args=field,
                stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6),
            )
            return (solution.ys**2).sum()

        def step() -> Any:
            return jax.block_until_ready(eqx.filter(gradient(field, initial), eqx.is_array))

        step()
        return step

    return start


def equinox_step() -> Callable[[], Step]:
    """A training step of a small convolutional network with `eqx.filter_jit` and Adam."""
    import equinox as eqx
    import jax
    import optax

    def start() -> Step:
        keys = jax.random.split(jax.random.key(0), 3)
        convolution = eqx.nn.Conv1d(1, 16, 3, padding=1, key=keys[0])
        layers = [convolution, eqx.nn.Lambda(jax.nn.relu), eqx.nn.Lambda(lambda x: x.reshape(-1))]
        model = eqx.nn.Sequential([*layers, eqx.nn.MLP(256, 1, 64, 2, key=keys[1])])
        optimizer = optax.adam(1e-3)
        state = optimizer.init(eqx.filter(model, eqx.is_array))
        x, y = _points()

        @eqx.filter_jit
        def train(model: Any, state: Any, x: Any, y: Any) -> Any:
            loss, gradients = eqx.filter_value_and_grad(lambda model: ((jax.vmap(model)(x[:, None]) - y) ** 2).mean())(
                model
            )
            updates, state = optimizer.update(gradients, state)
            return eqx.apply_updates(model, updates), state, loss

        def step() -> Any:
            nonlocal model, state
            model, state, loss = train(model, state, x, y)
            return loss.block_until_ready()

        step()
        return step

    return start


_PENDULUM = """
<mujoco>
  <worldbody>
    <body pos="0 0 1">
      <joint type="hinge" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" size="0.05" fromto="0 0 0 0.5 0 0"/>
      <body pos="0.5 0 0">
        <joint type="hinge" axis="0 1 0"/>
        <geom type="sphere" size="0.1"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def mjx_step() -> Callable[[], Step]:
    """A step of MJX for 16 double pendulums."""
    import jax
    import mujoco
    from mujoco import mjx

    def start() -> Step:
        model = mjx.put_model(mujoco.MjModel.from_xml_string(_PENDULUM))
        states = jax.vmap(lambda angle: mjx.make_data(model).replace(qpos=angle))(jax.numpy.ones((16, 2)))
        advance = jax.jit(jax.vmap(lambda state: mjx.step(model, state)))

        def step() -> Any:
            nonlocal states
            states = advance(states)
            return states.qpos.block_until_ready()

        step()
        return step

    return start


#: name -> (the program, modules that it needs)
PROGRAMS: dict[str, tuple[Callable[[], Callable[[], Step]], tuple[str, ...]]] = {
    "flax nnx": (flax_nnx, ("flax", "optax")),
    "Keras fit": (keras_fit, ("keras",)),
    "numpyro NUTS": (numpyro_nuts, ("numpyro",)),
    "diffrax gradient": (diffrax_gradient, ("diffrax",)),
    "equinox": (equinox_step, ("equinox", "optax")),
    "MJX step": (mjx_step, ("mujoco",)),
}
