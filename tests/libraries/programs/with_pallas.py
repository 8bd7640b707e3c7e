"""Pallas: kernels of its documentation, and of what libraries of language models do, in interpret mode."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from common import show
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu, triton as plgpu

rng = np.random.RandomState(0)
call = functools.partial(pl.pallas_call, interpret=True)
f32 = jnp.float32


def normal(*shape):
    return jnp.asarray(rng.randn(*shape), f32)


def like(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


# adding vectors
def add_kernel(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...]


x, y = normal(16), normal(16)
show("add", call(add_kernel, out_shape=like(x))(x, y))
blocks = pl.BlockSpec((4,), lambda i: (i,))
show("add blocks", call(add_kernel, out_shape=like(x), grid=(4,), in_specs=[blocks, blocks], out_specs=blocks)(x, y))
show(
    "add edges",
    call(add_kernel, out_shape=like(x[:10]), grid=(3,), in_specs=[blocks, blocks], out_specs=blocks)(x[:10], y[:10]),
)


def iota_kernel(o_ref):
    i = pl.program_id(0)
    o_ref[i] = i * pl.num_programs(0)


show("iota", call(iota_kernel, out_shape=jax.ShapeDtypeStruct((8,), jnp.int32), grid=(8,))())


# product of matrices, in blocks, with an accumulator in scratch memory
def matmul_kernel(x_ref, y_ref, o_ref, acc_ref, *, steps, activation):
    @pl.when(pl.program_id(2) == 0)
    def _():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    acc_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=f32)

    @pl.when(pl.program_id(2) == steps - 1)
    def _():
        o_ref[...] = activation(acc_ref[...]).astype(o_ref.dtype)


def matmul(x, y, bm=8, bk=4, bn=8, activation=lambda x: x):
    m, k = x.shape
    _, n = y.shape
    return call(
        functools.partial(matmul_kernel, steps=k // bk, activation=activation),
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=0,
            in_specs=[pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)), pl.BlockSpec((bk, bn), lambda i, j, k: (k, j))],
            out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
            scratch_shapes=[pltpu.VMEM((bm, bn), f32)],
            grid=(m // bm, n // bn, k // bk),
        ),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(x, y)


a, b = normal(16, 12), normal(12, 24)
show("matmul", matmul(a, b))
show("matmul relu", jax.jit(functools.partial(matmul, activation=jax.nn.relu))(a, b))
show("matmul vmap", jax.vmap(matmul, (0, None))(jnp.stack([a, 2 * a]), b))


# softmax and layer normalization by rows
def softmax_kernel(x_ref, o_ref):
    row = x_ref[...]
    e = jnp.exp(row - row.max(axis=-1, keepdims=True))
    o_ref[...] = e / e.sum(axis=-1, keepdims=True)


rows = pl.BlockSpec((2, 12), lambda i: (i, 0))
show("softmax", call(softmax_kernel, out_shape=like(a), grid=(8,), in_specs=[rows], out_specs=rows)(a))


def layer_norm_kernel(x_ref, w_ref, b_ref, o_ref, mean_ref, rstd_ref, *, eps=1e-5, block=4):
    n = x_ref.shape[0]

    def mean_body(i, acc):
        return acc + x_ref[pl.ds(i * block, block)]

    mean = jax.lax.fori_loop(0, pl.cdiv(n, block), mean_body, jnp.zeros(block)).sum() / n

    def var_body(i, acc):
        return acc + (x_ref[pl.ds(i * block, block)] - mean) ** 2

    rstd = 1 / jnp.sqrt(jax.lax.fori_loop(0, pl.cdiv(n, block), var_body, jnp.zeros(block)).sum() / n + eps)
    mean_ref[...], rstd_ref[...] = mean, rstd

    @pl.loop(0, pl.cdiv(n, block))
    def _(i):
        s = pl.ds(i * block, block)
        o_ref[s] = (x_ref[s] - mean) * rstd * w_ref[s] + b_ref[s]


w, c = normal(12), normal(12)
whole = pl.BlockSpec((12,), lambda i: (0,))
row, one = pl.BlockSpec((None, 12), lambda i: (i, 0)), pl.BlockSpec((None,), lambda i: (i,))
outs = call(
    layer_norm_kernel,
    out_shape=[like(a), jax.ShapeDtypeStruct((16,), f32), jax.ShapeDtypeStruct((16,), f32)],
    grid=(16,),
    in_specs=[row, whole, whole],
    out_specs=[row, one, one],
)(a, w, c)
show("layer norm", *outs)


# flash attention: blocks of queries, a loop over blocks of keys
def attention_kernel(q_ref, k_ref, v_ref, o_ref, l_ref, *, block_k, causal):
    seq, dim = k_ref.shape
    block_q = q_ref.shape[0]
    start = pl.program_id(2) * block_q
    q = q_ref[...] / np.sqrt(dim)

    def body(j, carry):
        acc, m_prev, l_prev = carry
        part = pl.ds(j * block_k, block_k)
        k, v = k_ref[part, :], v_ref[part, :]
        s = q @ k.T
        if causal:
            mask = start + jnp.arange(block_q)[:, None] >= j * block_k + jnp.arange(block_k)[None]
            s = jnp.where(mask, s, -1e30)
        m = jnp.maximum(m_prev, s.max(axis=1))
        p = jnp.exp(s - m[:, None])
        scale = jnp.exp(m_prev - m)
        return acc * scale[:, None] + p @ v, m, l_prev * scale + p.sum(axis=1)

    first = jnp.zeros((block_q, dim)), jnp.full(block_q, -jnp.inf), jnp.zeros(block_q)
    upper = pl.cdiv(start + block_q, block_k) if causal else pl.cdiv(seq, block_k)
    acc, m, total = jax.lax.fori_loop(0, upper, body, first)
    o_ref[...] = (acc / total[:, None]).astype(o_ref.dtype)
    l_ref[...] = m + jnp.log(total)


def attention(q, k, v, causal=True, block_q=4, block_k=2):
    batch, seq, heads, dim = q.shape
    return call(
        functools.partial(attention_kernel, block_k=block_k, causal=causal),
        grid=(batch, heads, seq // block_q),
        in_specs=[
            pl.BlockSpec((None, block_q, None, dim), lambda b, h, i: (b, i, h, 0)),
            pl.BlockSpec((None, seq, None, dim), lambda b, h, i: (b, 0, h, 0)),
            pl.BlockSpec((pl.squeezed, seq, pl.squeezed, dim), lambda b, h, i: (b, 0, h, 0)),
        ],
        out_specs=[
            pl.BlockSpec((None, block_q, None, dim), lambda b, h, i: (b, i, h, 0)),
            pl.BlockSpec((None, None, block_q), lambda b, h, i: (b, h, i)),
        ],
        out_shape=[like(q), jax.ShapeDtypeStruct((batch, heads, seq), f32)],
        compiler_params=plgpu.CompilerParams(num_warps=4, num_stages=2),
    )(q, k, v)


q, k, v = normal(2, 8, 2, 4), normal(2, 8, 2, 4), normal(2, 8, 2, 4)
show("attention causal", *attention(q, k, v))
show("attention full", *jax.jit(functools.partial(attention, causal=False))(q, k, v))


# memory of an input that an output continues; windows that overlap
def accumulate_kernel(x_ref, o_ref):
    o_ref[...] += 2 * x_ref[...]


show(
    "alias",
    call(lambda x_ref, y_ref, o_ref: accumulate_kernel(x_ref, o_ref), out_shape=like(x), input_output_aliases={1: 0})(
        x, y
    ),
)


def sum_kernel(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += x_ref[...]


show(
    "sum", call(sum_kernel, out_shape=jax.ShapeDtypeStruct((12,), f32), grid=(16,), in_specs=[row], out_specs=whole)(a)
)
window = pl.BlockSpec((pl.Element(4), pl.Element(12)), lambda i: (2 * i, 0))
show(
    "window",
    call(
        lambda x_ref, o_ref: o_ref.__setitem__(..., x_ref[...].sum(0)),
        out_shape=jax.ShapeDtypeStruct((7, 12), f32),
        grid=(7,),
        in_specs=[window],
        out_specs=pl.BlockSpec((None, 12), lambda i: (i, 0)),
    )(a),
)


# blocks chosen by data that index maps read
def gather_kernel(idx_ref, x_ref, o_ref):
    o_ref[...] = x_ref[...] + idx_ref[pl.program_id(0)].astype(f32)


indices = jnp.array([3, 0, 7, 7, 1], jnp.int32)
spec = pltpu.PrefetchScalarGridSpec(
    num_scalar_prefetch=1,
    grid=(5,),
    in_specs=[pl.BlockSpec((2, 12), lambda i, idx: (idx[i], 0))],
    out_specs=pl.BlockSpec((2, 12), lambda i, idx: (i, 0)),
)
show("prefetch", call(gather_kernel, out_shape=jax.ShapeDtypeStruct((10, 12), f32), grid_spec=spec)(indices, a))


# loads and stores with masks, strides, memory of a scope, a tree of outputs
def masked_kernel(x_ref, o_ref):
    i = pl.program_id(0)
    idx = pl.ds(i * 4, 4)
    mask = i * 4 + jnp.arange(4) < 10
    value = plgpu.load(x_ref.at[idx], mask=mask, other=0.0)
    plgpu.store(o_ref.at[idx], value * 2, mask=mask)


show("mask", call(masked_kernel, out_shape=like(x[:10]), grid=(3,))(x[:10]))


def tree_kernel(x_ref, o_ref):
    def scoped(scratch, total):
        scratch[...] = x_ref[pl.ds(0, 8, stride=2)]
        total[...] = jnp.zeros_like(total)

        @pl.loop(0, 8, step=2)
        def _(i):
            total[...] += scratch[pl.ds(i, 2)]

        return total[...]

    o_ref["total"][...] = pl.run_scoped(scoped, pltpu.VMEM((8,), f32), total=pltpu.VMEM((2,), f32))
    o_ref["last"][0] = pl.loop(0, 5, init_carry=1)(lambda i, carry: carry + i)
    o_ref["last"][1] = pl.cdiv(x_ref.shape[0], 5)


shapes = {"total": jax.ShapeDtypeStruct((2,), f32), "last": jax.ShapeDtypeStruct((2,), jnp.int32)}
tree = call(tree_kernel, out_shape=shapes)(x)
show("tree", tree["total"], tree["last"])


def scratch_kernel(x_ref, o_ref, count):
    @pl.when(pl.program_id(0) == 0)
    def _():
        count[0] = 0

    count[0] += 1
    o_ref[...] = x_ref[...] * count[0]


show(
    "scratch",
    call(
        scratch_kernel,
        out_shape=like(a),
        grid=(8,),
        in_specs=[rows],
        out_specs=rows,
        scratch_shapes=[pltpu.SMEM((1,), jnp.int32)],
    )(a),
)
show(
    "dynamic grid",
    jax.jit(
        lambda n: call(
            lambda o_ref: o_ref.__setitem__(pl.program_id(0), 1),
            out_shape=jax.ShapeDtypeStruct((6,), jnp.int32),
            input_output_aliases={},
            grid=(n,),
        )()[:3]
    )(3),
)
sine = call(lambda x_ref, o_ref: o_ref.__setitem__(..., jnp.sin(x_ref[...]) ** 2), out_shape=like(x))
show("derivative", *jax.jvp(sine, (x,), (y,)))
show("helpers", pl.next_power_of_2(9), *pl.strides_from_shape((2, 3, 4)), pl.align_to(10, 8))
