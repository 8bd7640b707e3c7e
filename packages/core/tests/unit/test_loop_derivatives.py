"""Derivatives in reverse of loops whose number of turns is known only when they run.

Each program is compared with the same program whose loops are scans with masks, and with central differences.
"""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import errors, grad, jit, lax, vmap
from phlox.experimental import checkify

#: turns of the scan with masks
MOST = 40


@pytest.fixture(autouse=True)
def double_precision():
    with phlox.enable_x64(True):
        yield


def masked(cond, body, start):
    """`while_loop` as a scan of `MOST` turns, each of which keeps the carry if the loop has ended."""

    def step(carry, _):
        return lax.cond(cond(carry), body, lambda c: c, carry), None

    return lax.scan(step, start, None, length=MOST)[0]


def adaptive_runge_kutta(loop, p):
    f = lambda y: jnp.stack([y[1], -p[0] * jnp.sin(y[0])])

    def turn(carry):
        t, y, h = carry
        h = jnp.minimum(h, 1.0 - t)
        k = f(y)
        half = y + h * f(y + h / 2 * k)
        error = jnp.abs(half - y - h * k).max()
        good = error < 0.02
        return jnp.where(good, t + h, t), jnp.where(good, half, y), h * jnp.where(good, 1.25, 0.5)

    return loop(lambda c: c[0] < 1.0, turn, (0.0, p, 0.1))[1].sum()


def newton(loop, p):
    turn = lambda c: (c[1], c[1] - (c[1] ** 3 - p[0]) / (3 * c[1] ** 2))
    return loop(lambda c: jnp.abs(c[0] - c[1]) > 1e-9, turn, (0.0, p[1] + 1.0))[1]


def bisection(loop, p):
    def turn(c):
        low, high = c
        middle = (low + high) / 2
        right = middle**2 < p[0]
        return jnp.where(right, middle, low), jnp.where(right, high, middle)

    low, high = loop(lambda c: c[1] - c[0] > 1e-3, turn, (0.0 * p[0], 3.0 * p[1]))
    return (low + 2 * high) * p[0]


def power_iteration(loop, p):
    a = jnp.stack([jnp.stack([2 + p[0], p[1]]), jnp.stack([p[1], 1.0])])

    def turn(c):
        _, v = c
        w = a @ v
        return v, w / jnp.sqrt((w**2).sum())

    v = loop(lambda c: jnp.abs(c[0] - c[1]).max() > 1e-4, turn, (jnp.zeros(2), jnp.ones(2)))[1]
    return v @ a @ v


def gram_schmidt(loop, p):
    a = jnp.eye(3) + p[0] * jnp.arange(9.0).reshape(3, 3) / 10 + p[1] / 7

    def turn(c):
        i, q = c
        column = a[:, i] - q @ (q.T @ a[:, i])
        return i + 1, q.at[:, i].set(column / jnp.sqrt((column**2).sum()))

    return (loop(lambda c: c[0] < 3, turn, (0, jnp.zeros((3, 3))))[1] * jnp.arange(9.0).reshape(3, 3)).sum()


def kepler(loop, p):
    step = lambda e: (e - 0.3 * p[1] * jnp.sin(e) - p[0]) / (1 - 0.3 * p[1] * jnp.cos(e))
    return loop(lambda c: jnp.abs(c[1]) > 1e-10, lambda c: (c[0] - step(c[0]), step(c[0])), (p[0], 1.0 + 0 * p[0]))[0]


def root_in_an_ode(loop, p):
    def implicit(y):
        step = lambda z: (z - y + 0.1 * p[0] * z**3) / (1 + 0.3 * p[0] * z**2)
        return loop(lambda z: jnp.abs(step(z)) > 1e-9, lambda z: z - step(z), y)

    return loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, implicit(c[1])), (0, p[1]))[1]


def beam_search(loop, p):
    weights = jnp.sin(jnp.arange(16.0).reshape(4, 4) * p[0])

    def turn(c):
        i, tokens, scores = c
        every = (scores[:, None] + weights[tokens] * p[1]).ravel()
        scores, best = lax.top_k(every, 2)
        return i + 1, (best % 4).astype(tokens.dtype), scores

    return loop(lambda c: c[0] < 6, turn, (0, jnp.array([0, 1]), p * 0.1))[2].sum()


def conjugate_gradients(loop, p):
    a = jnp.diag(jnp.arange(1.0, 5.0)) + p[0] * 0.1
    b = jnp.arange(4.0) * p[1]

    def turn(c):
        x, r, d = c
        alpha = (r @ r) / (d @ a @ d)
        new = r - alpha * (a @ d)
        return x + alpha * d, new, new + (new @ new) / (r @ r) * d

    return loop(lambda c: c[1] @ c[1] > 1e-8, turn, (jnp.zeros(4), b, b))[0].sum()


def metropolis_until_accepted(loop, p):
    def turn(c):
        key, x, _ = c
        key, one, two = phlox.random.split(key, 3)
        new = x + p[0] * phlox.random.normal(one, dtype=x.dtype)
        accepted = jnp.log(phlox.random.uniform(two)) * 0.2 < x**2 - new**2 - 1.0
        return key, jnp.where(accepted, new * p[1], x * 1.01), accepted

    return loop(lambda c: ~c[2], turn, (phlox.random.key(1), p[1], False))[1]


def event_detection(loop, p):
    turn = lambda c: (c[0] + 0.1 * c[1], c[1] - 0.1 * 9.8 * p[0])
    height, speed = loop(lambda c: c[0] > 0, turn, (p[1] * 2, 1.0))
    return height / speed


def sphere_tracing(loop, p):
    direction = jnp.stack([0.6 + 0 * p[0], 0.8 + 0 * p[0]])
    distance = lambda t: jnp.sqrt(((t * direction - jnp.stack([2.0, 2.0 * p[1]])) ** 2).sum()) - p[0]
    return loop(lambda t: distance(t) > 1e-6, lambda t: t + distance(t), 0.0 * p[0])


def bilevel(loop, p):
    inner = lambda w: (p[0] * w[0] - 1) ** 2 + (w[1] - p[1]) ** 2 + 0.1 * (w**4).sum()
    gradient = grad(inner)
    w = loop(lambda w: (gradient(w) ** 2).sum() > 1e-3, lambda w: w - 0.1 * gradient(w), jnp.zeros(2))
    return (w**2).sum()


def rnn_until_end(loop, p):
    w = jnp.sin(jnp.arange(9.0).reshape(3, 3)) * p[0]

    def turn(c):
        h, _, n = c
        h = jnp.tanh(w @ h + p[1])
        return h, jnp.argmax(h), n + 1

    return loop(lambda c: (c[1] != 2) & (c[2] < 12), turn, (p[1] * jnp.arange(3.0), 0, 0))[0].sum()


def line_search(loop, p):
    f = lambda x: (x - p[0]) ** 4 + p[1] * x**2
    slope = grad(f)(3.0)
    t = loop(lambda t: f(3.0 - t * slope) > f(3.0) - 0.3 * t * slope**2, lambda t: t * 0.6, 1.0 * p[1])
    return f(3.0 - t * slope)


def inverse_iteration(loop, p):
    a = jnp.stack([jnp.stack([2 + p[0], p[1]]), jnp.stack([p[1], 1.0])])

    def turn(c):
        w = jnp.linalg.solve(a - 0.4 * jnp.eye(2), c[1])
        return c[1], w / jnp.sqrt((w**2).sum()) * jnp.sign(w[0])

    v = loop(lambda c: jnp.abs(c[0] - c[1]).max() > 1e-5, turn, (jnp.zeros(2), jnp.ones(2)))[1]
    return v @ a @ v


def particle_in_a_box(loop, p):
    turn = lambda c: (c[0] + 0.1 * c[1], c[1] + 0.1 * jnp.stack([c[0][1], -c[0][0]]) * p[0])
    return loop(lambda c: (jnp.abs(c[0]) < 1).all(), turn, (0.1 * p, jnp.ones(2)))[0].sum()


def backtracking_in_vmap(loop, p):
    def one(x):
        return loop(lambda t: (x - t * 2 * x * p[0]) ** 2 > 0.5 * x**2, lambda t: t * 0.7, 2.0 * p[1]) * x

    return vmap(one)(jnp.array([0.5, 1.0, 3.0])).sum()


def nested(loop, p):
    inner = lambda y: loop(lambda y: y > 1.0, lambda y: y * 0.7 * jnp.cos(0.1 * y * p[0]), y)
    return loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, inner(c[1] * 3 * p[1])), (0, p[0]))[1]


def never(loop, p):
    return loop(lambda x: x > 100, lambda x: jnp.sqrt(x - 200), p[0] * p[1])


PROGRAMS = [
    adaptive_runge_kutta, newton, bisection, power_iteration, gram_schmidt, kepler, root_in_an_ode, beam_search,
    conjugate_gradients, metropolis_until_accepted, event_detection, sphere_tracing, bilevel, rnn_until_end, line_search,
    inverse_iteration, particle_in_a_box, backtracking_in_vmap, nested, never,
]  # fmt: skip
P = np.array([0.9, 1.1])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs_have_the_gradient_of_a_masked_scan(program):
    f = jit(lambda p: program(lax.while_loop, p))
    got = jit(grad(f))(P)
    np.testing.assert_allclose(got, jit(grad(lambda p: program(masked, p)))(P), rtol=1e-6, atol=1e-9)
    differences = [(f(P + h) - f(P - h)) / 2e-6 for h in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(got, differences, rtol=1e-4, atol=1e-6)


def curve(x, a, n, **how):
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, jnp.sin(c[1]) * a + 0.1), (0, x), **how)[1]


def unrolled(x, a, n):
    return lax.fori_loop(0, n, lambda i, x: jnp.sin(x) * a + 0.1, x)


@pytest.mark.parametrize("rows", [2, 3, 4, 16])
def test_any_number_of_stored_states_gives_the_same_gradient(rows):
    run = jit(grad(lambda x, a, n: curve(x, a, n, checkpoints=rows), (0, 1)))
    for n in (0, 1, 2, 3, 4, 5, 15, 16, 17, 33, 100):
        expected = jit(grad(lambda x, a, n=n: unrolled(x, a, n), (0, 1)))(0.7, 1.1)
        np.testing.assert_allclose(run(0.7, 1.1, n), expected, rtol=1e-10, atol=1e-14)


def test_second_derivatives():
    expected = phlox.hessian(unrolled, (0, 1))
    for rows, n in ((None, 6), (4, 11)):
        f = lambda x, a, n, rows=rows: curve(x, a, n, checkpoints=rows)
        want = expected(0.7, 1.1, n)
        np.testing.assert_allclose(jit(phlox.hessian(f, (0, 1)))(0.7, 1.1, n), want, rtol=1e-9)
        np.testing.assert_allclose(jit(phlox.jacrev(phlox.jacrev(f, (0, 1)), (0, 1)))(0.7, 1.1, n), want, rtol=1e-9)


def test_batches_of_loops():
    n, x = jnp.array([0, 3, 30, 9]), jnp.linspace(0.1, 1, 4)
    f = lambda x, a, n: curve(x, a, n, checkpoints=4)
    each = [grad(f, (0, 1))(x, 1.1, n) for x, n in zip(x, n, strict=True)]
    expected = [[float(one[k]) for one in each] for k in range(2)]
    np.testing.assert_allclose(jit(vmap(grad(f, (0, 1)), (0, None, 0)))(x, 1.1, n), expected, rtol=1e-12)
    of_sum = grad(lambda x: vmap(f, (0, None, 0))(x, 1.1, n).sum())
    np.testing.assert_allclose(of_sum(x), expected[0], rtol=1e-12)


def test_rows_that_have_ended_do_not_spoil_the_gradient():
    """The derivative of the root is infinite where the first row ends."""
    f = lambda x: lax.while_loop(lambda x: x > 0.5, lambda x: jnp.sqrt(jnp.maximum(x - 1.0, 0.0)), x)
    np.testing.assert_allclose(vmap(grad(f))(jnp.array([0.2, 1.04, 5.0])), [grad(f)(x) for x in (0.2, 1.04, 5.0)])


def test_inside_of_other_transformations():
    f = lambda x: curve(x, 1.1, jnp.int32(7))
    want = float(grad(lambda x: unrolled(x, 1.1, 7))(0.7))
    assert float(grad(phlox.checkpoint(f))(0.7)) == pytest.approx(want, rel=1e-12)
    in_scan = lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]
    twice = lambda x: unrolled(unrolled(x, 1.1, 7), 1.1, 7)
    assert float(grad(in_scan)(0.7)) == pytest.approx(float(grad(twice)(0.7)), rel=1e-12)
    assert float(jit(grad(lambda x: lax.cond(x > 0, f, lambda x: x, x)))(0.7)) == pytest.approx(want, rel=1e-12)
    own = phlox.custom_vjp(lambda x: 3 * x)
    own.defvjp(lambda x: (3 * x, None), lambda _, ct: (10 * ct,))
    assert float(grad(lambda x: lax.while_loop(lambda x: x < 20, own, x))(1.0)) == 1000
    assert float(phlox.linearize(f, 0.7)[1](1.0)) == pytest.approx(want, rel=1e-12)


def test_devices_that_take_different_numbers_of_turns():
    mesh = phlox.make_mesh((2,), ("i",))

    def f(x, a):
        body = lambda x: lax.while_loop(lambda c: c.sum() < 10, lambda c: c * a + 1, x)
        return phlox.shard_map(body, mesh=mesh, in_specs=phlox.P("i"), out_specs=phlox.P("i"))(x).sum()

    one = lambda x, a: lax.while_loop(lambda c: c < 10, lambda c: c * a + 1, x)
    of_x, of_a = jit(grad(f, (0, 1)))(jnp.array([0.5, 6.0]), 1.1)
    each = [grad(one, (0, 1))(x, 1.1) for x in (0.5, 6.0)]
    np.testing.assert_allclose(of_x, [g[0] for g in each])
    assert float(of_a) == pytest.approx(float(each[0][1] + each[1][1]))


def test_carries_of_all_kinds():
    def f(x, bound):
        def turn(c):
            return {"n": c["n"] + 1, "x": c["x"] * y, "key": phlox.random.split(c["key"])[0], "none": None}

        y = x + 1
        start = {"n": jnp.int8(0), "x": x, "key": phlox.random.key(0), "none": None}
        return lax.while_loop(lambda c: c["n"] < bound, turn, start)["x"]

    assert float(jit(grad(f))(1.0, jnp.int8(3))) == pytest.approx(20.0)
    assert float(grad(lambda x: lax.while_loop(lambda n: n < 3, lambda n: n + 1, 0) * x)(2.0)) == 3.0


def test_fori_loop_with_traced_bounds():
    f = lambda x, n: lax.fori_loop(0, n, lambda i, c: c * x + i, x)
    assert float(jit(grad(f))(2.0, 3)) == float(grad(lambda x: f(x, 3))(2.0)) == 33.0


def test_max_steps_ends_the_loop():
    f = lambda x, most: lax.while_loop(lambda c: c < 100, lambda c: c * x, 1.0, max_steps=most)
    assert [float(f(2.0, n)) for n in (0, 3, None)] == [1, 8, 128]
    assert [float(grad(f)(2.0, n)) for n in (0, 3, 20)] == [0, 12, 448]


def test_scan_with_checkpoints():
    xs = jnp.linspace(0, 1, 17)

    def f(a, count, reverse):
        carry, ys = lax.scan(lambda c, x: (jnp.sin(c) * a + x, c * x), 0.3, xs, reverse=reverse, checkpoints=count)
        return carry + (ys * xs).sum()

    for reverse in (False, True):
        expected = float(grad(f)(1.1, None, reverse))
        assert [float(grad(f)(1.1, n, reverse)) for n in (2, 4, 5, 17)] == pytest.approx([expected] * 4, rel=1e-12)


def test_keywords_are_checked():
    run = lambda **how: lax.while_loop(lambda x: x < 3, lambda x: x + 1, 0, **how)
    for call in (
        lambda: run(checkpoints=1),
        lambda: run(max_steps=-1),
        lambda: lax.scan(lambda c, x: (c, x), 0, X, checkpoints=0),
        lambda: lax.fori_loop(0, 3, lambda i, x: x, 0, checkpoints=1),
        lambda: lax.fixed_point(jnp.cos, 1.0, max_steps=0),
    ):
        with pytest.raises(errors.OptionError, match=r"checkpoints|max_steps"):
            call()
    with pytest.raises(errors.DtypeError, match="x0"):
        lax.fixed_point(jnp.cos, 1)


X = np.arange(4)


def test_callbacks_in_a_differentiated_loop_are_refused():
    def turn(x):
        phlox.experimental.io_callback(lambda: None, None)
        return x * 2

    with pytest.raises(errors.EffectError, match="while_loop"):
        grad(lambda x: lax.while_loop(lambda x: x < 10, turn, x))(1.0)


def test_fixed_points():
    root = lambda a: lax.fixed_point(lambda x, a: (x + a / x) / 2, 1.0, (a,))
    assert float(root(4.0)) == pytest.approx(2.0)
    assert float(grad(root)(4.0)) == pytest.approx(0.25)
    assert float(phlox.jvp(root, (4.0,), (1.0,))[1]) == pytest.approx(0.25)
    assert float(grad(grad(root))(4.0)) == pytest.approx(-1 / 32)
    np.testing.assert_allclose(jit(vmap(grad(root)))(jnp.array([1.0, 4.0])), [0.5, 0.25], rtol=1e-9)

    def layer(w, b):
        return lax.fixed_point(lambda z: {"z": jnp.tanh(w @ z["z"] + b)}, {"z": jnp.zeros(2)})["z"].sum()

    w, b = np.array([[0.3, 0.1], [-0.2, 0.4]]), np.array([0.1, 0.2])
    steps = 1e-5 * np.eye(2)
    differences = [(layer(w, b + h) - layer(w, b - h)) / 2e-5 for h in steps]
    np.testing.assert_allclose(grad(layer, 1)(w, b), differences, rtol=1e-7)


def test_gradients_of_batches_whose_ended_rows_have_infinite_derivatives():
    def until_one(x, w):
        turn = lambda c: (jnp.minimum(1.0, c[0] + 0.25), c[1] + w * jnp.sqrt(1 - c[0]))
        return lax.while_loop(lambda c: c[0] < 1, turn, (x, 0.0 * x))[1]

    def divides_by_the_counter(n, w):
        turn = lambda c: (c[0] + 1, c[1] / (4 - c[0]) + jnp.log(4.0 - c[0]) ** w)
        return lax.while_loop(lambda c: c[0] < 4, turn, (n.astype(int), n))[1]

    for loop, xs in ((until_one, jnp.array([0.0, 0.5, 0.75, 1.0])), (divides_by_the_counter, jnp.arange(5.0))):
        total = lambda xs, w, loop=loop: vmap(loop, (0, None))(xs, w).sum()
        of_xs, of_w = grad(total, (0, 1))(xs, 1.5)
        alone = [grad(loop, (0, 1))(x, 1.5) for x in xs]
        np.testing.assert_allclose(of_xs, [g[0] for g in alone], rtol=1e-9)
        np.testing.assert_allclose(of_w, sum(g[1] for g in alone), rtol=1e-9)
        pairs = lambda w, loop=loop, xs=xs: vmap(lambda w: vmap(loop, (0, None))(xs, w))(jnp.stack([w, 2 * w])).sum()
        alone = [grad(loop, 1)(x, 1.5) + 2 * grad(loop, 1)(x, 3.0) for x in xs]
        np.testing.assert_allclose(grad(pairs)(1.5), sum(alone), rtol=1e-9)


def test_checks_in_a_differentiated_loop():
    def doubled(x):
        def turn(c):
            checkify.check(c[1] < 100, "too big {}", c[1])
            return c[0] + 1, c[1] * 2

        return lax.while_loop(lambda c: c[0] < 5, turn, (0, x))[1]

    for transform in (lambda f: f, jit):
        checked = transform(checkify.checkify(grad(doubled)))
        error, gradient = checked(1.0)
        assert error.get() is None and gradient == 32.0
        assert "too big" in checked(20.0)[0].get()
    logarithms = lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.log(c[1])), (0, x))[1]
    assert "nan" in checkify.checkify(grad(logarithms), errors=checkify.float_checks)(-1.0)[0].get()
