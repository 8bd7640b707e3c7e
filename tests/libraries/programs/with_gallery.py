"""What JAX's own pages teach, without a library: sparse matrices, Taylor series, export, references."""

import jax
import jax.numpy as jnp
from common import show
from jax import export, lax
from jax.experimental import jet, sparse
from jax.experimental.sparse.linalg import lobpcg_standard

key = jax.random.key(0)
dense, v = jnp.array([[0, 1.0, 2], [3, 0, 0]]), jnp.arange(1.0, 4.0)

# --- sparse matrices
m = sparse.BCOO.fromdense(dense)
batched = sparse.BCOO.fromdense(dense, n_batch=1)
show("sparsify", sparse.sparsify(lambda m, v: jnp.sin(m @ v) + (m * 2 @ v))(m, v), m.indices, m.data, m.nse)
show("product", (m @ m.T).todense(), m.sum(0).todense(), m.reshape(3, 2).todense())
show("slices", sparse.bcoo_slice(m, start_indices=(0, 1), limit_indices=(2, 3)).todense(), m.sum_duplicates().indices)
show("joined", sparse.bcoo_concatenate([m, m], dimension=0).todense(), batched.data, batched.indices)
show("mapped", jax.vmap(lambda m, v: m @ v, (0, None))(batched, v))
show("sparse gradient", sparse.grad(lambda m: (m @ v).sum() ** 2)(m).todense(), sparse.jacfwd(lambda v: m @ v)(v))
rows = sparse.BCSR.fromdense(jnp.vstack([dense, jnp.array([0, 0, 4.0])]))
show("rows", rows @ v, rows.data, rows.indices, rows.indptr, sparse.BCSR.from_bcoo(rows.to_bcoo()).indptr)
show("random", sparse.random_bcoo(key, (4, 4), nse=3).todense(), sparse.COO.fromdense(jnp.eye(2)) @ jnp.ones(2))
values, vectors, _ = lobpcg_standard(jnp.diag(jnp.arange(1.0, 31.0)), jax.random.normal(key, (30, 2)), m=50)
show("lobpcg", values, jnp.abs(vectors[-1, 0]))

# --- Taylor series
ones = jnp.ones(2)
show("series", jet.jet(lambda x: jnp.sin(x) * jnp.exp(x), (jnp.float32(0.5),), ((1.0, 0.0, 0.0, 0.0),)))
show("products", jet.jet(lambda x, y: x @ y, (jnp.eye(2), ones), ((jnp.ones((2, 2)), jnp.zeros((2, 2))), (ones, ones))))
show("softmax", jet.jet(jax.nn.softmax, (v,), ((v * 0.1, v),)))

# --- export
b, c = export.symbolic_shape("b, c", constraints=["b >= 2"])
summed = export.export(jax.jit(lambda x: jnp.sin(x).sum(0) + x.shape[0]))(jax.ShapeDtypeStruct((b, c), jnp.float32))
restored = export.deserialize(summed.serialize(vjp_order=1))
show("export", restored.call(jnp.ones((3, 2))), restored.call(jnp.arange(8.0).reshape(2, 4)))
show("export, gradient", jax.grad(lambda x: restored.call(x).sum())(jnp.ones((3, 2))))


def steps(x, n):
    total = lax.fori_loop(0, n, lambda i, c: c + x.mean(), 0.0)
    return (
        total,
        jnp.reshape(x, (-1, 2)),
        jnp.concatenate([x, x[::-1]]),
        jnp.sort(x),
        jnp.arange(x.shape[0]),
        jnp.pad(x, 1),
    )


(half,) = export.symbolic_shape("half")
sizes = (jax.ShapeDtypeStruct((2 * half,), jnp.float32), jax.ShapeDtypeStruct((), jnp.int32))
show("export, loops", export.export(jax.jit(steps))(*sizes).call(jnp.arange(4.0), jnp.int32(3)))


# --- references
def doubled(x):
    ref = jax.new_ref(x)
    ref[0] = 5.0
    ref[1:] += 2.0

    def body(i, _):
        ref[i] = ref[i] * 2
        return ()

    lax.fori_loop(0, 3, body, ())
    return jax.freeze(ref)


show("references", doubled(v), jax.jit(doubled)(v), jax.grad(lambda x: doubled(x).sum())(v), jax.vmap(doubled)(dense))
