"""What programs compute does not depend on how their arguments lie: the results on eight devices, over meshes of one,
two and three axes, with arguments that are whole, split over one axis, over several, or along several of their own, are
those of one device."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from judge import FACTOR
from phlox import P, lax

_random = np.random.default_rng(0)


def _floats(*shape):
    return _random.standard_normal(shape).astype(np.float32)


A, SQUARE = _floats(16, 8, 4), _floats(16, 16)
POSITIVE = (lambda a: a @ a.transpose(0, 2, 1) + 3 * np.eye(8, dtype=np.float32))(_floats(16, 8, 8))
WHERE = _random.integers(0, 16, (8,)).astype(np.int32)


def train(w, x):
    def loss(w):
        return (jnp.tanh(x @ w["a"]) @ w["b"] - x.sum(1)).var()

    for _ in range(2):
        w = phlox.tree.map(lambda p, g: p - 0.1 * g, w, phlox.grad(loss)(w))
    return w, loss(w)


PROGRAMS = {
    "matmul": (lambda a, b: a @ b, SQUARE, _floats(16, 8)),
    "einsum": (lambda a, b: jnp.einsum("bij,bjk->bik", a, b), A, _floats(16, 4, 8)),
    "conv": (lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME"), _floats(8, 3, 16, 16), _floats(8, 3, 3, 3)),
    "reductions": (lambda a: (a.sum(0), a.sum(), a.max((0, 2)), jnp.argmax(a, 0), jnp.cumsum(a, 0)), A),
    "order statistics": (lambda a: (jnp.sort(a, 0), jnp.argsort(a, 1), lax.top_k(a, 2), jnp.median(a, 0)), A),
    "gather": (lambda a, i: (a[i], a[:, i % 8], jnp.take(a, i % 4, -1), a[0], a[-1]), A, WHERE),
    "scatter": (lambda a, i: (a.at[i].add(1.0), a.at[:, i % 8].set(2.0), a.at[i].max(0)), A, WHERE),
    "scan": (lambda a: lax.scan(lambda c, x: (c * 0.9 + x, c.sum()), a[0] * 0, a), A),
    "fft": (lambda a: (jnp.fft.fft(a, axis=0), jnp.fft.rfft(a, axis=1), jnp.fft.fft2(a), jnp.fft.ifft(a, axis=1)), A),
    "cholesky": (lambda a: (jnp.linalg.cholesky(a), jnp.linalg.solve(a, a[:, :, :1])), POSITIVE),
    "decompositions": (lambda a: (jnp.linalg.svd(a)[1], jnp.linalg.eigvalsh(a), jnp.linalg.qr(a)[1]), POSITIVE),
    "random": (lambda a: phlox.random.normal(phlox.random.key(3), a.shape) * a, A),
    "moves": (lambda a: (jnp.roll(a, 3, 0), jnp.pad(a, 1), jnp.flip(a, 0), jnp.concatenate([a, a]), a.T), A),
    "reshape": (lambda a: (a.reshape(8, 16, 4), a.ravel(), a.reshape(4, 4, 32)), A),
    "slices": (
        lambda a: (lax.dynamic_slice(a, (3, 1, 0), (5, 4, 2)), lax.dynamic_update_slice(a, a[:2], (5, 0, 0)), a[1::3]),
        A,
    ),
    "uneven": (lambda a: (jnp.sin(a[:13]).sum(0), jnp.sort(a[:5], 0), a[1:12] @ a[0].T), A),
    "loops": (
        lambda a: lax.while_loop(lambda c: c[1].sum() < 1e3, lambda c: (c[0] + 1, c[1] * 1.5), (0, jnp.abs(a))),
        A,
    ),
    "branches": (lambda a: lax.cond(a.sum() > 0, lambda x: x + 1, lambda x: x - 1, a), A),
    "windows": (lambda a: lax.reduce_window(a, -np.inf, lax.max, (2, 2, 1), (1, 1, 1), "SAME"), A),
    "sizes": (lambda a: (jnp.unique(a.astype(int), size=7), jnp.nonzero(a > 0, size=20), jnp.histogram(a, 10)), A),
    "segments": (lambda a: phlox.ops.segment_sum(a, jnp.arange(16) // 2, 8), A),
    "associative_scan": (lambda a: lax.associative_scan(jnp.add, a), A),
    "triangular_solve": (lambda a: lax.linalg.triangular_solve(a, a, left_side=True, lower=True), POSITIVE),
    "permutation": (lambda a: phlox.random.permutation(phlox.random.key(0), a), A),
    "vmap": (lambda a: phlox.vmap(phlox.grad(lambda x: jnp.linalg.norm(x @ x.T)))(a), A),
    "train step": (lambda a, b, x: train({"a": a, "b": b}, x), SQUARE, _floats(16), _floats(32, 16)),
}

MESHES = {"8": ((8,), "x"), "4x2": ((4, 2), "xy"), "2x2x2": ((2, 2, 2), "xyz")}


def _specs(names, ndim):
    """Ways to lay out an array: whole, split over one mesh axis, over two, along two axes of its own, over all."""
    x, *rest = names
    found = [P(x), P(tuple(names)), P()]
    if ndim > 1:
        found += [P(None, x), P(rest[0], x) if rest else P(None, x)]
    if rest:
        found += [P(rest[0]), P(None, (rest[0], x)) if ndim > 1 else P((rest[0], x))]
    if len(rest) > 1 and ndim > 2:
        found += [P(*names)]
    return found


def _fits(mesh, spec, shape):
    try:
        phlox.NamedSharding(mesh, spec).shard_shape(shape)
    except phlox.errors.ShapeError:
        return False
    return True


CASES = [(program, mesh) for program in PROGRAMS for mesh in MESHES]


@pytest.mark.parametrize(("name", "shape"), CASES, ids=lambda part: part)
def test_like_one_device(name, shape):
    fun, *args = PROGRAMS[name]
    alone = phlox.jit(fun)(*args)
    sizes, names = MESHES[shape]
    mesh = phlox.make_mesh(sizes, tuple(names), axis_types=(phlox.sharding.AxisType.Auto,) * len(names))
    ways = [_specs(names, a.ndim) for a in args]
    count = max(map(len, ways))
    # A third of the ways by default, another third for each program: compiling takes nearly all of the time.
    start = sum(map(ord, name)) % 3 if FACTOR < 3 else 0
    step = 3 if FACTOR < 3 else 1
    for turn in range(start, count, step):
        specs = [each[(turn + i) % len(each)] for i, each in enumerate(ways)]
        specs = [s if _fits(mesh, s, a.shape) else P() for s, a in zip(specs, args, strict=True)]
        given = [phlox.device_put(a, phlox.NamedSharding(mesh, s)) for a, s in zip(args, specs, strict=True)]
        found = phlox.jit(fun)(*given)
        for ours, whole in zip(phlox.tree.leaves(found), phlox.tree.leaves(alone), strict=True):
            assert (ours.shape, ours.dtype) == (whole.shape, whole.dtype)
            np.testing.assert_allclose(ours, whole, rtol=2e-4, atol=2e-4, err_msg=f"{name}, {specs}")
