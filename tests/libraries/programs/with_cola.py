"""cola: linear operators with structure."""

import cola
import jax
import jax.numpy as jnp
from common import show

dense = jnp.eye(6) * 3 + jnp.reshape(jnp.sin(jnp.arange(36.0)), (6, 6)) / 8
A = cola.ops.Dense(dense)
b = jnp.arange(1.0, 7)
show("product", A @ b, (A.T @ b), (2 * A) @ b, (A @ A) @ b)
show("solve", cola.inv(A) @ b)
symmetric = cola.PSD(cola.ops.Dense(dense @ dense.T))
show("logdet", cola.logdet(symmetric), cola.trace(symmetric), cola.diag(symmetric))
show("cg", cola.linalg.inv(symmetric, cola.linalg.CG(tol=1e-6, max_iters=50)) @ b)
show("eig", jnp.sort(cola.linalg.eig(symmetric, k=6)[0].real))
show("gradient", jax.grad(lambda d: cola.logdet(cola.PSD(cola.ops.Dense(d @ d.T))))(dense))
