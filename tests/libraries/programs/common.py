"""What the programs share: data, and lines of results that `run` compares."""

import json

import jax
import jax.numpy as jnp
import numpy as np


def data(rows=32):
    """Points of the plane, and a smooth function of them."""
    x = np.linspace(-1, 1, 2 * rows, dtype=np.float32).reshape(rows, 2)
    return jnp.asarray(x), jnp.asarray(np.sin(3 * x).sum(1, keepdims=True))


def show(name, *values):
    """Prints the numbers in a tree."""
    leaves = [np.asarray(jax.random.key_data(v) if _is_key(v) else v) for v in jax.tree.leaves(values)]
    flat = [np.abs(v).ravel() if np.iscomplexobj(v) else v.astype(np.float64).ravel() for v in leaves]
    numbers = np.concatenate(flat) if flat else np.zeros(0)
    print("RESULT", name, json.dumps([*map(float, numbers[:60]), float(np.abs(numbers).sum())]), flush=True)


def _is_key(x):
    return isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
