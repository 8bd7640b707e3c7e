"""Partial results: arrays that are the sum of what the devices hold, ``f32[4]{U:x}``, by ``P(unreduced={"x"})``.

Each program runs at once and compiled. Its values, and those of its gradient, are those of the same program without a
mesh. The types of its results are written out; JAX 0.12 must have the same where it takes the program. Earlier versions
of JAX have no partial results.
"""

import jax
import jax.numpy
import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from conformance.partial_results import JAX_HAS_THEM, A, B, in_judges, mesh, product, reduced, split, value
from phlox import P, lax
from phlox.errors import ShapeError, ShardingTypeError, UnsupportedError


class Whole:
    """phlox as a program without a mesh sees it."""

    def __getattr__(self, name):
        return getattr(phlox, name)

    @staticmethod
    def reshard(x, spec):
        return x


# --- operations on partial results ----------------------------------------------------------------------

# Programs of a partial result `u` and an array `r`, reduced along the same axis; the type of their result.
LINEAR = {
    "itself": (lambda m, u, r: u, "float32[4@x,4]{U:y}"),
    "negated": (lambda m, u, r: -u, "float32[4@x,4]{U:y}"),
    "added": (lambda m, u, r: u + u, "float32[4@x,4]{U:y}"),
    "subtracted": (lambda m, u, r: u - (-u), "float32[4@x,4]{U:y}"),
    "times a reduced factor": (lambda m, u, r: u * r, "float32[4@x,4]{U:y}"),
    "a reduced factor times it": (lambda m, u, r: r * u, "float32[4@x,4]{U:y}"),
    "by a reduced divisor": (lambda m, u, r: u / r, "float32[4@x,4]{U:y}"),
    "times a number": (lambda m, u, r: u * 2.0, "float32[4@x,4]{U:y}"),
    "mean": (lambda m, u, r: u.mean(1), "float32[4@x]{U:y}"),
    "transposed": (lambda m, u, r: u.T, "float32[4,4@x]{U:y}"),
    "reshaped": (lambda m, u, r: u.reshape(4, 2, 2), "float32[4@x,2,2]{U:y}"),
    "broadcast": (lambda m, u, r: m.numpy.broadcast_to(u[..., None], (4, 4, 3)), "float32[4@x,4,3]{U:y}"),
    "joined": (lambda m, u, r: m.numpy.concatenate([u, -u], 1), "float32[4@x,8]{U:y}"),
    "stacked": (lambda m, u, r: m.numpy.stack([u, -u]), "float32[2,4@x,4]{U:y}"),
    "padded": (lambda m, u, r: m.numpy.pad(u, ((0, 0), (1, 2))), "float32[4@x,7]{U:y}"),
    "padded with a number": (
        lambda m, u, r: m.numpy.pad(u, ((0, 0), (1, 0)), constant_values=3.0),
        "float32[4@x,5]{U:y}",
    ),
    "summed": (lambda m, u, r: u.sum(), "float32[]{U:y}"),
    "summed along an axis": (lambda m, u, r: u.sum(1), "float32[4@x]{U:y}"),
    "running sums": (lambda m, u, r: m.numpy.cumsum(u, 1), "float32[4@x,4]{U:y}"),
    "sliced": (lambda m, u, r: u[:, 1:3], "float32[4@x,2]{U:y}"),
    "reversed": (lambda m, u, r: m.lax.rev(u, (1,)), "float32[4@x,4]{U:y}"),
    "gathered": (lambda m, u, r: u[:, np.array([0, 2, 2])], "float32[4@x,3]{U:y}"),
    "written": (lambda m, u, r: m.lax.dynamic_update_slice(u, u[:, :2] * 3.0, (0, 1)), "float32[4@x,4]{U:y}"),
    "scattered": (lambda m, u, r: u.at[:, 1].add(u[:, 0]), "float32[4@x,4]{U:y}"),
    "selected": (lambda m, u, r: m.numpy.where(r > 2.5, u, 0.0), "float32[4@x,4]{U:y}"),
    "carried": (
        lambda m, u, r: m.lax.scan(lambda c, _: (c * 0.5 + u, None), u, None, length=3)[0],
        "float32[4@x,4]{U:y}",
    ),
    "scanned": (
        lambda m, u, r: m.lax.scan(lambda c, x: (c - x, c), u[:, 0], m.numpy.moveaxis(u, 1, 0))[1],
        "float32[4,4@x]{U:y}",
    ),
    "branches": (lambda m, u, r: m.lax.cond(r.sum() > 0, lambda u: -u, lambda u: u * 2.0, u), "float32[4@x,4]{U:y}"),
    "a compiled function": (lambda m, u, r: m.jit(lambda v: v * 3.0 + u)(u), "float32[4@x,4]{U:y}"),
    "checkpointed": (lambda m, u, r: m.checkpoint(lambda v: v * 3.0)(u), "float32[4@x,4]{U:y}"),
    "mapped": (lambda m, u, r: m.vmap(lambda v: v * 3.0, in_axes=1, out_axes=1)(u), "float32[4@x,4]{U:y}"),
    "mapped over a split axis": (lambda m, u, r: m.vmap(lambda v: -v)(u), "float32[4@x,4]{U:y}"),
    "complex": (lambda m, u, r: m.numpy.real(m.lax.complex(u, u)), "float32[4@x,4]{U:y}"),
    "combined": (lambda m, u, r: m.reshard(u, m.P("x", None)), "float32[4@x,4]"),
    "combined and split": (lambda m, u, r: m.reshard(u, m.P("x", "y")), "float32[4@x,4@y]"),
    "combined whole": (lambda m, u, r: m.reshard(u, m.P()), "float32[4,4]"),
    "gathered along the other axis": (
        lambda m, u, r: m.reshard(u, m.P(None, None, unreduced={"y"})),
        "float32[4,4]{U:y}",
    ),
    "unreduced along both": (
        lambda m, u, r: m.reshard(u, m.P(None, None, unreduced={"x", "y"})),
        "float32[4,4]{U:(x,y)}",
    ),
    "unreduced along the other": (
        lambda m, u, r: m.reshard(u, m.P("y", None, unreduced={"x"})),
        "float32[4@y,4]{U:x}",
    ),
    "unreduced again": (
        lambda m, u, r: m.reshard(m.numpy.sin(m.reshard(u, m.P("x"))), m.P("x", None, unreduced={"y"})),
        "float32[4@x,4]{U:y}",
    ),
}


NOT_IN_JAX = {
    "broadcast": "it is twice the result",
    "stacked": "it is twice the result",
    "padded with a number": "each device pads with it",
    "unreduced along the other": "the compiler ends the process",
}


def program(run, m, a, b, r):
    return run(m, product(m, a, b), r)


def loss(run, m):
    """A number that depends on all elements of the result, in a way that is not linear."""

    def compute(a, b, r):
        out = program(run, m, a, b, r)
        if m in (phlox, jax):
            out = m.reshard(out, m.P(*m.typeof(out).sharding.spec.partitions))
        return (m.numpy.sin(out) * out).sum()

    return compute


@pytest.mark.parametrize("name", LINEAR)
def test_operations(name):
    run, type_text = LINEAR[name]

    def compiled(m):
        out = m.jit(lambda a, b, r: program(run, m, a, b, r))(*split(m), reduced(m, B, "y"))
        assert str(m.typeof(out)) == type_text, m
        return value(m, out)

    whole = Whole()
    expected = np.asarray(run(whole, jnp.matmul(A, B), jnp.asarray(B)))
    for out in in_judges(compiled, jax_too=name not in NOT_IN_JAX):
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)
    with phlox.set_mesh(mesh(phlox)):
        at_once = program(run, phlox, *split(phlox), reduced(phlox, B, "y"))
        assert str(phlox.typeof(at_once)) == type_text
        np.testing.assert_allclose(value(phlox, at_once), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", LINEAR)
def test_gradients(name):
    run, _ = LINEAR[name]

    def gradient(m):
        cotangents = m.jit(m.grad(loss(run, m), (0, 1)))(*split(m), reduced(m, B, "y"))
        assert [str(m.typeof(ct)) for ct in cotangents] == ["float32[4@x,4@y]", "float32[4@y,4]"]
        return [np.asarray(ct) for ct in cotangents]

    def of_whole(a, b):
        out = run(Whole(), a @ b, jnp.asarray(B))
        return (jnp.sin(out) * out).sum()

    expected = phlox.grad(of_whole, (0, 1))(jnp.asarray(A), jnp.asarray(B))
    for cotangents in in_judges(gradient, jax_too=name not in NOT_IN_JAX):
        for ct, right in zip(cotangents, expected, strict=True):
            np.testing.assert_allclose(ct, right, rtol=1e-3, atol=1e-3)


REFUSED = {
    "not linear": (lambda m, u, r: m.numpy.sin(u), "non-linear"),
    "two unreduced factors": (lambda m, u, r: u * u, "one unreduced factor"),
    "an unreduced divisor": (lambda m, u, r: 1.0 / u, "divisor"),
    "a number is added": (lambda m, u, r: u + 1.0, "communication"),
    "a whole array is added": (lambda m, u, r: u + m.reshard(m.numpy.ones((4, 4)), m.P("x")), "communication"),
    "a factor that is not reduced": (lambda m, u, r: u * m.reshard(m.numpy.ones((4, 4)), m.P("x")), "not reduced"),
    "unreduced along others": (
        lambda m, u, r: u + m.reshard(m.numpy.ones((4, 4)), m.P(None, None, unreduced={"x"})),
        "different axes",
    ),
    "compared": (lambda m, u, r: u > 0, "non-linear"),
    "its maximum": (lambda m, u, r: u.max(1), "non-linear"),
    "sorted": (lambda m, u, r: m.numpy.sort(u, 1), "non-linear"),
    "a product": (lambda m, u, r: m.numpy.matmul(u, m.numpy.ones((4, 4))), "non-linear"),
    "reduced meets whole": (lambda m, u, r: r + m.numpy.ones((4, 4)), "reduced along"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    run, why = REFUSED[name]
    for m in (phlox, jax) if JAX_HAS_THEM else (phlox,):
        with m.set_mesh(mesh(m)):
            args = *split(m), reduced(m, B, "y")
            for call in (lambda *xs: program(run, m, *xs), m.jit(lambda *xs: program(run, m, *xs))):
                with pytest.raises(*[ShardingTypeError] if m is phlox else [Exception]) as caught:
                    call(*args)
                assert m is jax or why in str(caught.value)


def test_rounding_is_not_linear():
    # JAX rounds each part, and the sum of these is another one.
    with phlox.set_mesh(mesh(phlox)), pytest.raises(ShardingTypeError, match="rounds"):
        product(phlox, *split(phlox)).astype(np.int32)


def test_a_sum_is_no_maximum():
    # JAX's compiler ends the process.
    spec = P("x", None, unreduced={"y"}, unreduced_kind=phlox.sharding.UnreducedKind.max)
    with phlox.set_mesh(mesh(phlox)), pytest.raises(ShardingTypeError, match="no max"):
        phlox.reshard(product(phlox, *split(phlox)), spec)


# --- sums over what is split ----------------------------------------------------------------------------

SUMS = {
    "matmul": (lambda m, a, b: m.numpy.matmul(a, b, out_sharding=m.P("x", None, unreduced={"y"})), A @ B),
    "dot": (lambda m, a, b: m.numpy.dot(a, b, out_sharding=m.P("x", None, unreduced={"y"})), A @ B),
    "tensordot": (lambda m, a, b: m.numpy.tensordot(a, b, 1, out_sharding=m.P("x", None, unreduced={"y"})), A @ B),
    "einsum": (
        lambda m, a, b: m.numpy.einsum("ij,jk->ki", a, b, out_sharding=m.P(None, "x", unreduced={"y"})),
        (A @ B).T,
    ),
    "einsum of one": (lambda m, a, b: m.numpy.einsum("ij->i", a, out_sharding=m.P("x", unreduced={"y"})), A.sum(1)),
    "dot_general": (
        lambda m, a, b: m.lax.dot_general(a, b, (((1,), (0,)), ((), ())), out_sharding=m.P("x", None, unreduced={"y"})),
        A @ B,
    ),
    "lax.dot": (lambda m, a, b: m.lax.dot(a, b, out_sharding=m.P("x", None, unreduced={"y"})), A @ B),
    "reduce_sum": (lambda m, a, b: m.lax.reduce_sum(a, (0,), out_sharding=m.P("y", unreduced={"x"})), A.sum(0)),
    "sum of all": (lambda m, a, b: m.lax.reduce_sum(a, (0, 1), out_sharding=m.P(unreduced={"x", "y"})), A.sum()),
    "mapped": (
        lambda m, a, b: m.vmap(lambda v: m.numpy.dot(v, b, out_sharding=m.P(None, unreduced={"y"})))(a),
        A @ B,
    ),
    "mapped sum": (
        lambda m, a, b: m.vmap(lambda v: m.lax.reduce_sum(v, (0,), out_sharding=m.P(unreduced={"y"})))(a),
        A.sum(1),
    ),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_over_what_is_split(name):
    run, expected = SUMS[name]

    def outs(m):
        args = split(m)
        outs = run(m, *args), m.jit(lambda a, b: run(m, a, b))(*args)
        types = {str(m.typeof(out)) for out in outs}
        assert len(types) == 1 and "{U:" in min(types)
        return types, [value(m, out) for out in outs]

    results = in_judges(outs)
    assert all(types == results[0][0] for types, _ in results)
    for out in [out for _, outs in results for out in outs]:
        np.testing.assert_array_equal(out, expected)


def test_each_device_holds_its_sum():
    with phlox.set_mesh(mesh(phlox)):
        u = product(phlox, *split(phlox))
        parts = [np.asarray(s.data) for s in u.addressable_shards]
        halves = [A[i : i + 2, j : j + 2] @ B[j : j + 2] for i in (0, 2) for j in (0, 2)]
        np.testing.assert_array_equal(parts, halves)


def test_maxima_of_parts():
    if not hasattr(phlox.sharding, "UnreducedKind") or not JAX_HAS_THEM:  # jaxlib adds up before 0.12
        return
    for m in (phlox, jax):
        with m.set_mesh(mesh(m)):
            spec = m.P("x", unreduced={"y"}, unreduced_kind=m.sharding.UnreducedKind.max)
            out = m.jit(lambda a, m=m, spec=spec: m.lax.reduce_max(a, (1,), out_sharding=spec))(split(m)[0])
            assert str(m.typeof(out)) == "float32[4@x]{U_max:y}"
            np.testing.assert_array_equal(value(m, out), A.max(1))


@pytest.mark.parametrize(
    "run",
    [
        lambda m, a, b: m.numpy.matmul(a, b, out_sharding=m.P(None, None, unreduced={"x"})),
        lambda m, a, b: m.numpy.matmul(a, b, out_sharding=m.P(None, None, unreduced={"x", "y"})),
        lambda m, a, b: m.numpy.matmul(a, m.numpy.ones((4, 4)), out_sharding=m.P("x", None, unreduced={"y"})),
        lambda m, a, b: m.numpy.matmul(a, reduced(m, B, "y"), out_sharding=m.P("x", None, unreduced={"y"})),
        # products of sums: those of the parts are not the parts of the product
        lambda m, a, b: m.numpy.einsum("i,j->", b[:, 0], b[:, 1], out_sharding=m.P(unreduced={"y"})),
        lambda m, a, b: m.numpy.einsum("ij,kl->il", a, b, out_sharding=m.P("x", None, unreduced={"y"})),
        lambda m, a, b: m.numpy.einsum("ij,kj->ikj", a, a, out_sharding=m.P("x", None, None, unreduced={"y"})),
        lambda m, a, b: m.lax.reduce_sum(a, (0,), out_sharding=m.P(None, unreduced={"y"})),
        lambda m, a, b: m.lax.reduce_max(a, (0,), out_sharding=m.P("y", unreduced={"x"})),
    ],
)
def test_no_sums_over_what_is_split(run):
    for m in (phlox, jax) if JAX_HAS_THEM else (phlox,):
        with m.set_mesh(mesh(m)):
            for call in (lambda a, b: run(m, a, b), m.jit(lambda a, b: run(m, a, b))):
                with pytest.raises(*[ShardingTypeError] if m is phlox else [Exception]):
                    call(*split(m))


# --- arrays whose cotangents are partial results --------------------------------------------------------

ROWS, WEIGHTS = A[:, :2] / 4, np.arange(6, dtype=np.float32).reshape(2, 3) / 5


def rows(m):
    return m.reshard(m.numpy.asarray(ROWS), m.P("x", None))


# Programs of a reduced array, and the same of a whole one.
REDUCED = {
    "matmul": (lambda m, w: m.numpy.matmul(rows(m), w, out_sharding=m.P("x", None)), lambda w: ROWS @ w),
    "einsum": (
        lambda m, w: m.numpy.einsum("bi,ij->jb", rows(m), w, out_sharding=m.P(None, "x")),
        lambda w: (ROWS @ w).T,
    ),
    "of a function": (
        lambda m, w: m.numpy.matmul(rows(m), m.numpy.tanh(w) * 2.0, out_sharding=m.P("x", None)),
        lambda w: ROWS @ (jnp.tanh(w) * 2.0),
    ),
    "rows": (
        lambda m, w: w.at[m.reshard(m.numpy.array([0, 1, 1, 0]), m.P("x"))].get(out_sharding=m.P("x", None)),
        lambda w: w[np.array([0, 1, 1, 0])],
    ),
    "scanned": (
        lambda m, w: m.lax.scan(
            lambda c, _: (c + m.numpy.matmul(rows(m), w, out_sharding=m.P("x", None)), None),
            m.reshard(m.numpy.zeros((4, 3)), m.P("x", None)),
            None,
            length=2,
        )[0],
        lambda w: 2 * ROWS @ w,
    ),
    "checkpointed": (
        lambda m, w: m.checkpoint(lambda w: m.numpy.matmul(rows(m), m.numpy.tanh(w), out_sharding=m.P("x", None)))(w),
        lambda w: ROWS @ jnp.tanh(w),
    ),
}


@pytest.mark.parametrize("name", REDUCED)
def test_cotangents_of_reduced_arrays(name):
    run, of_whole = REDUCED[name]

    def gradients(m):
        gradient = m.grad(lambda w: (run(m, w) ** 2).sum())
        w = reduced(m, WEIGHTS, "x")
        assert str(m.typeof(w)) == "float32[2,3]{R:x}"
        cotangents = gradient(w), m.jit(gradient)(w)
        assert {str(m.typeof(ct)) for ct in cotangents} == {"float32[2,3]{U:x}"}
        return [value(m, ct) for ct in cotangents]

    expected = phlox.grad(lambda w: (of_whole(w) ** 2).sum())(jnp.asarray(WEIGHTS))
    for ct in [ct for cts in in_judges(gradients) for ct in cts]:
        np.testing.assert_allclose(ct, expected, rtol=1e-5)


def test_cotangents_over_two_axes():
    whole = phlox.grad(lambda w: ((A @ w) ** 2).sum())(jnp.asarray(B))
    with phlox.set_mesh(mesh(phlox)):
        both = phlox.reshard(jnp.asarray(B), P(None, None, reduced={"x", "y"}))
        x = split(phlox)[0]
        for spec in (P("x", None), P("x", "y")):
            ct = phlox.grad(lambda w, spec=spec: (jnp.matmul(x, w, out_sharding=spec) ** 2).sum())(both)
            assert str(phlox.typeof(ct)) == "float32[4,4]{U:(x,y)}"
            np.testing.assert_array_equal(value(phlox, ct), whole)
        # A sum over "x" of a factor that is reduced along "y".
        columns, rows = phlox.reshard(A, P(None, "x")), phlox.reshard(B, P("x", None, reduced={"y"}))

        def square(w):
            u = jnp.matmul(columns, w, out_sharding=P(None, None, unreduced={"x"}))
            return (phlox.reshard(u, P()) ** 2).sum()

        ct = phlox.grad(square)(rows)
        assert str(phlox.typeof(ct)) == "float32[4@x,4]{U:y}"
        np.testing.assert_array_equal(value(phlox, ct), whole)


def test_tangents_have_the_type_of_their_primal_and_cotangents_the_other():
    def types(m):
        a, b = split(m)
        u, tangent = m.jvp(lambda a: product(m, a, b), (a,), (a,))
        _, pullback = m.vjp(lambda a: product(m, a, b), a)
        (back,) = pullback(m.reshard(m.numpy.ones((4, 4)), m.P("x", None, reduced={"y"})))
        (linear,) = m.linear_transpose(lambda u: m.reshard(u, m.P("x", None)), u)(m.reshard(u, m.P("x", None)))
        return [str(m.typeof(x)) for x in (u, tangent, back, linear)], [np.asarray(back), value(m, linear)]

    for names, values in in_judges(types):
        assert names == ["float32[4@x,4]{U:y}"] * 2 + ["float32[4@x,4@y]", "float32[4@x,4]{R:y}"]
        np.testing.assert_array_equal(values[0], np.ones((4, 4)) @ B.T)
        np.testing.assert_array_equal(values[1], A @ B)


# --- where they come from and go to ---------------------------------------------------------------------


def test_arrays_become_partial_results():
    ones = np.ones((4, 4), np.float32)
    over, spec = mesh(phlox), P("x", None, unreduced={"y"})
    with phlox.set_mesh(over):
        for u in (
            phlox.reshard(ones, spec),
            phlox.device_put(ones, spec),
            phlox.device_put(jnp.asarray(ones), phlox.NamedSharding(over, spec)),
            phlox.jit(lambda x: x, out_shardings=spec)(ones),
            phlox.jit(lambda x: phlox.reshard(x, spec))(ones),
            jnp.ones((4, 4), out_sharding=spec),
            jnp.ones_like(phlox.device_put(ones, spec)),
            phlox.jit(lambda u: u, in_shardings=spec)(phlox.device_put(ones, spec)),
            phlox.device_put(phlox.device_put(ones, spec), spec),
        ):
            assert str(phlox.typeof(u)) == "float32[4@x,4]{U:y}" and u.sharding.spec == spec
            # The first device of each row holds the array, the other one zeros.
            assert [float(np.asarray(s.data).sum()) for s in u.addressable_shards] == [8, 0, 8, 0]
            for back in (phlox.device_put(u, P("x")), phlox.jit(lambda u: u, out_shardings=P("x"))(u)):
                assert str(phlox.typeof(back)) == "float32[4@x,4]"
                np.testing.assert_array_equal(back, ones)


def test_devices_keep_their_parts_of_split_arrays_as_partial_results():
    """Each device holds its own part and zeros, so that none sends anything."""
    first = np.arange(4) < 2
    left, right, top, bottom = A * first, A * ~first, A * first[:, None], A * ~first[:, None]
    nothing = np.zeros_like(A)
    cases = (
        (("x", "y"), ("x", None), "y", [left[:2], right[:2], left[2:], right[2:]]),
        (
            ("x", "y"),
            (None, None),
            "xy",
            [x * half for half in (first[:, None], ~first[:, None]) for x in (left, right)],
        ),
        ((None, "y"), (None, None), "y", [left, right, left, right]),
        ((None, "y"), (None, None), "xy", [left, right, nothing, nothing]),
        (("y", None), (None, "x"), "y", [top[:, :2], bottom[:, :2], top[:, 2:], bottom[:, 2:]]),
    )
    for source, target, axes, parts in cases:

        def run(m, source=source, target=target, axes=axes):
            spec, x = m.P(*target, unreduced={*axes}), m.device_put(A, m.P(*source))
            compiled = m.jit(lambda x: m.reshard(x, spec))
            results = [m.device_put(x, spec), compiled(x)]
            text = compiled.lower(x).compile().as_text()
            return [[np.asarray(s.data) for s in u.addressable_shards] for u in results], text, value(m, results[0])

        for results, text, total in in_judges(run):
            np.testing.assert_array_equal(results, [parts, parts])
            # Splitting over another axis sends parts.
            assert target == (None, "x") or not any(f"{name}(" in text for name in ("all-gather", "all-reduce"))
            np.testing.assert_array_equal(total, A)


def test_partial_results_move_to_other_devices():
    with phlox.set_mesh(mesh(phlox)):
        u = product(phlox, *split(phlox))
        for device in (phlox.devices()[1], phlox.devices()[7]):
            one = phlox.device_put(u, device)
            assert one.devices() == {device}
            np.testing.assert_array_equal(one, A @ B)
        back = phlox.device_put(one, P(None, "x", unreduced={"y"}))
        assert str(phlox.typeof(back)) == "float32[4,4@x]{U:y}"
        np.testing.assert_array_equal(value(phlox, back), A @ B)


def test_nan_in_partial_results_is_found():
    with phlox.set_mesh(mesh(phlox)):
        a, b = split(phlox)
        with phlox.debug_nans(True):
            np.testing.assert_array_equal(value(phlox, -product(phlox, a, b)), -(A @ B))
            with pytest.raises(FloatingPointError, match="nan"):
                product(phlox, a, b) * phlox.reshard(jnp.full((4, 4), np.nan), P("x", None, reduced={"y"}))


def test_partial_results_are_not_read():
    with phlox.set_mesh(mesh(phlox)):
        u = product(phlox, *split(phlox))
        assert not u.is_fully_replicated and u.is_fully_addressable
        assert u.sharding.replicated_axes == frozenset() and u.sharding.shard_shape((4, 4)) == (2, 4)
        assert "unreduced" in repr(u) and "[" not in repr(u).replace("float32[4,4]", "")
        for read in (np.asarray, phlox.device_get, lambda u: float(u.sum())):
            with pytest.raises(UnsupportedError, match="reshard"):
                read(u)


def test_specs():
    for over, spec in (
        (mesh(phlox), P(unreduced={"z"})),
        (mesh(phlox), P(reduced={"z"})),
        (mesh(phlox, "AA"), P(unreduced={"x"})),
        (mesh(phlox, "EA"), P(reduced={"y"})),
    ):
        with pytest.raises(ShapeError):
            phlox.NamedSharding(over, spec)
    for options in ({"unreduced": {"x"}}, {"reduced": {"x"}}):
        with pytest.raises(ValueError):
            P("x", **options)


def test_types_are_printed():
    with phlox.set_mesh(mesh(phlox)):
        u = phlox.eval_shape(lambda a, b: product(phlox, a, b), *split(phlox))
        assert u.sharding.spec == P("x", None, unreduced={"y"})
        text = str(phlox.make_jaxpr(lambda u: -u)(product(phlox, *split(phlox))))
        assert "a:f32[4@x,4]{U:y}" in text and "b:f32[4@x,4]{U:y} = neg a" in text
        struct = phlox.ShapeDtypeStruct((4,), np.float32, sharding=phlox.NamedSharding(mesh(phlox), P(reduced={"x"})))
        assert str(phlox.typeof(struct)) == "float32[4]{R:x}"


def test_auto_axes_take_their_sum():
    def run(m):
        u = product(m, *split(m))
        return value(m, m.sharding.auto_axes(m.numpy.sin, out_sharding=m.P("x", None))(u))

    for out in in_judges(run):
        np.testing.assert_allclose(out, np.sin(A @ B), rtol=1e-5, atol=1e-5)


def test_on_one_device():
    one = phlox.make_mesh((1, 1), ("x", "y"), (phlox.sharding.AxisType.Explicit,) * 2)
    with phlox.set_mesh(one):
        u = product(phlox, *split(phlox))
        assert str(phlox.typeof(-u)) == "float32[4@x,4]{U:y}"
        summed = phlox.shard_map(
            lambda u: lax.psum(u, "y"), in_specs=P("x", None, unreduced={"y"}), out_specs=P("x", None)
        )
        np.testing.assert_array_equal(summed(u), A @ B)
        np.testing.assert_array_equal(u, A @ B)
