"""Training steps: each option against the same computation written out, and what is refused."""

import numpy as np
import optax
import pytest

import phlox
import phlox.numpy as jnp
import phlox_optim as optim
from phlox.errors import ArgumentError, ShapeError
from phlox_optim import metrics

BATCH = 8


def loss(params, batch):
    x, y = batch
    scores = jnp.tanh(x @ params["w"]) @ params["v"]
    return jnp.mean((scores - y) ** 2), {"size": jnp.abs(scores).mean()}


def draw(seed=0):
    rng = np.random.default_rng(seed)
    params = {"w": rng.normal(size=(3, 5)).astype("f4"), "v": rng.normal(size=5).astype("f4")}
    batches = [(rng.normal(size=(BATCH, 3)).astype("f4"), rng.normal(size=BATCH).astype("f4")) for _ in range(5)]
    return params, batches


def by_hand(params, batches, tx, clip=None):
    """The same training with optax on jax."""
    import jax

    def plain(params, batch):
        x, y = batch
        return jax.numpy.mean((jax.numpy.tanh(x @ params["w"]) @ params["v"] - y) ** 2)

    tx = tx if clip is None else optax.chain(optax.clip_by_global_norm(clip), tx)
    state, found = tx.init(params), []
    for batch in batches:
        value, grads = jax.value_and_grad(plain)(params, batch)
        updates, state = tx.update(grads, state, params)
        params = optax.apply_updates(params, updates)
        found.append((float(value), float(optax.tree.norm(grads))))
    return params, found


def run(step, params, batches, **start):
    train, rows = step.init(params, **start), []
    for batch in batches:
        train, figures = step(train, batch)
        rows.append(metrics.values(figures))
    return train, rows


def assert_close(found, expected, tolerance=1e-5):
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(
    "options",
    [{"grad_norm": True}, {"clip": 0.5}, {"accumulate": 4, "grad_norm": True}, {"accumulate": 2, "clip": 0.1}],
)
def test_against_optax_on_jax(options):
    params, batches = draw()
    train, rows = run(optim.make_step(loss, optim.adamw(0.05), **options), params, batches)
    expected, figures = by_hand(params, batches, optax.adamw(0.05), options.get("clip"))
    assert_close(train.params, expected)
    np.testing.assert_allclose([(row["loss"], row["grad_norm"]) for row in rows], figures, rtol=1e-5)
    assert train.step == len(batches)
    assert set(rows[0]) == {"loss", "grad_norm", "size"}
    _, rows = run(optim.make_step(loss, optim.adamw(0.05)), params, batches[:1])
    assert set(rows[0]) == {"loss", "size"}


def test_ema():
    params, batches = draw()
    step = optim.make_step(loss, optim.sgd(0.1), ema=0.9)
    train, average = step.init(params), params
    for batch in batches:
        train, _ = step(train, batch)
        average = {name: 0.9 * average[name] + 0.1 * np.asarray(train.params[name]) for name in average}
    assert_close(train.ema, average)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_mixed_precision(dtype):
    params, batches = draw()
    seen = []

    def watched(params, batch):
        seen.append((params["w"].dtype, batch[0].dtype, batch[2].dtype))
        return loss(params, batch[:2])

    batches = [(*batch, np.arange(BATCH)) for batch in batches]
    train, rows = run(optim.make_step(watched, optim.sgd(0.05), dtype=dtype), params, batches)
    assert set(seen) == {(np.dtype(dtype), np.dtype(dtype), np.dtype(np.int32))}
    assert {leaf.dtype for leaf in phlox.tree.leaves(train.params)} == {np.dtype(np.float32)}
    expected, figures = by_hand(params, [batch[:2] for batch in batches], optax.sgd(0.05))
    assert_close(train.params, expected, 0.05)
    np.testing.assert_allclose([row["loss"] for row in rows], [value for value, _ in figures], rtol=0.05)


def test_loss_scale_keeps_small_gradients_and_leaves_infinite_steps_out():
    def tiny(params, batch):
        return jnp.sum(params["x"] * batch).astype(jnp.float16) * jnp.float16(2.0**-14)

    batches = [np.full(2, 2.0**-13, "f4")] * 8  # products of them vanish in float16, unless scaled
    params = {"x": np.ones(2, "f4")}
    plain, _ = run(optim.make_step(tiny, optim.sgd(1.0), dtype=jnp.float16), params, batches)
    assert_close(plain.params, params, 0)
    scale = optim.LossScale(initial=2.0**18, period=3)
    step = optim.make_step(tiny, optim.sgd(2.0**10), dtype=jnp.float16, loss_scale=scale)
    train, rows = run(step, params, batches)
    skipped = [row["skipped"] for row in rows]
    assert 0 < sum(skipped) < len(batches), "some scales are too high for float16"
    # Halved by each step that is left out, doubled by three in a row that are not.
    value, good = 2.0**18, 0
    for left_out in skipped:
        value, good = (value / 2, 0) if left_out else (value * 2, 0) if good == 2 else (value, good + 1)
    assert (train.scale[0], train.scale[1], train.step) == (value, good, len(batches))
    moved = 2.0**-17 * (len(batches) - sum(skipped))
    np.testing.assert_allclose(1 - np.asarray(train.params["x"], np.float64), moved, rtol=0.01)


def test_steps_that_are_not_finite_change_nothing():
    params, batches = draw()
    bad = (np.full_like(batches[1][0], np.nan), batches[1][1])
    step = optim.make_step(loss, optim.adam(0.1), skip_nonfinite=True, ema=0.9)
    good, _ = run(step, params, [batches[0], batches[2]])
    train, rows = run(step, params, [batches[0], bad, batches[2]])
    assert [row["skipped"] for row in rows] == [0, 1, 0]
    assert train.step == 3
    for part in ("params", "opt_state", "ema"):
        phlox.tree.map(np.testing.assert_array_equal, getattr(train, part), getattr(good, part))
    total = metrics.merge(step(step.init(params), batches[0])[1], step(step.init(params), bad)[1])
    assert np.isfinite(metrics.values(total)["loss"])


def test_state_and_keys():
    def counting(params, batch, *, state, key):
        noise = phlox.random.normal(key, (2,))
        state = {"count": state["count"] + 1, "last": noise}
        return jnp.sum((params - noise) ** 2), {"state": state}

    key = phlox.random.key(3)
    start = {"count": jnp.int32(0), "last": jnp.zeros(2)}
    train, _ = run(optim.make_step(counting, optim.sgd(0.0)), jnp.zeros(2), [None] * 3, state=start, key=key)
    assert train.state["count"] == 3
    np.testing.assert_array_equal(train.state["last"], phlox.random.normal(phlox.random.fold_in(key, 2), (2,)))
    step = optim.make_step(counting, optim.sgd(0.0), accumulate=2)
    train, _ = step(step.init(jnp.zeros(2), state=start, key=key), jnp.zeros(4))
    assert train.state["count"] == 2
    second = phlox.random.fold_in(phlox.random.fold_in(key, 0), 1)
    np.testing.assert_array_equal(train.state["last"], phlox.random.normal(second, (2,)))


def test_the_callers_arrays_stay():
    params = {"w": jnp.ones((3, 5)), "v": jnp.ones(5)}
    key = phlox.random.key(0)
    step = optim.make_step(loss, optim.chain(optim.adam(0.1), optim.ema(0.9)), ema=0.9)
    first = step.init(params, key=key)
    train, _ = step(first, draw()[1][0])
    assert not any(leaf.is_deleted() for leaf in [*params.values(), key])
    assert first.params["w"].is_deleted(), "the state given is used again"
    assert train.key is not None


def test_over_devices():
    params, _ = draw()
    x, y = np.random.default_rng(2).normal(size=(8, 4, 3)).astype("f4"), np.ones((8, 4), "f4")
    step = optim.make_step(loss, optim.adam(0.1), axis_name="data")
    start = phlox.tree.map(lambda leaf: jnp.stack([leaf] * 8), step.init(params))
    train, figures = phlox.pmap(step.function, axis_name="data")(start, (x, y))
    alone = optim.make_step(loss, optim.adam(0.1))
    whole = x.reshape(32, 3), y.reshape(32)
    expected, row = alone(alone.init(params), whole)
    for device in (0, 7):
        assert_close(phlox.tree.map(lambda leaf: leaf[device], train.params), expected.params)
    np.testing.assert_allclose(figures["loss"].value()[0], row["loss"].value(), rtol=1e-6)
    # Arrays that are sharded need no axis.
    mesh = phlox.sharding.Mesh(np.array(phlox.devices()), ("data",))
    sharded = phlox.device_put(whole, phlox.sharding.NamedSharding(mesh, phlox.sharding.PartitionSpec("data")))
    replicated = phlox.device_put(
        alone.init(params), phlox.sharding.NamedSharding(mesh, phlox.sharding.PartitionSpec())
    )
    found, row = alone(replicated, sharded)
    assert_close(found.params, expected.params)


def test_optimizers_that_look_at_the_loss():
    step = optim.make_step(
        lambda p, b: jnp.sum(p**2), optim.chain(optim.sgd(0.1), optim.contrib.reduce_on_plateau(patience=1))
    )
    train, _ = run(step, jnp.ones(2), [None] * 3)
    assert train.step == 3


def test_a_step_is_traced_once():
    traces = []

    def watched(params, batch):
        traces.append(None)
        return loss(params, batch)

    params, batches = draw()
    run(
        optim.make_step(watched, optim.adam(0.1), skip_nonfinite=True, ema=0.9, loss_scale=optim.LossScale()),
        params,
        batches,
    )
    assert len(traces) == 1


def with_loss(returned, **parameters):
    def given(params, batch):
        return returned

    def stateful(params, batch, *, state):
        return returned

    return stateful if parameters else given


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s(jnp.ones(3)), ShapeError, r"the loss is f32\[3\], not a scalar"),
        (lambda s: s((jnp.float32(1), [2])), ArgumentError, "a scalar and a list"),
        (lambda s: s((jnp.float32(1), {"loss": 1.0})), ArgumentError, "a figure named 'loss'"),
        (lambda s: s((jnp.float32(1), {"x": jnp.ones(2)})), ArgumentError, r"figure 'x' is f32\[2\]"),
        (lambda s: s(jnp.float32(1), state={}), ArgumentError, "takes state and returned none"),
    ],
)
def test_losses_that_are_refused(call, error, message):
    def attempt(returned, **state):
        step = optim.make_step(with_loss(returned, **state), optim.sgd(0.1))
        step(step.init(jnp.ones(3), **state), jnp.ones(4))

    with pytest.raises(error, match=message):
        call(attempt)


def test_options_that_are_refused():
    with pytest.raises(ArgumentError, match="accumulate is 0"):
        optim.make_step(loss, optim.sgd(0.1), accumulate=0)
    with pytest.raises(ArgumentError, match=r"ema is 1\.5"):
        optim.make_step(loss, optim.sgd(0.1), ema=1.5)
    with pytest.raises(ArgumentError, match="the loss takes key, and init got none"):
        optim.make_step(lambda params, batch, key: 0.0, optim.sgd(0.1)).init(jnp.ones(3))
    step = optim.make_step(loss, optim.sgd(0.1), accumulate=3)
    with pytest.raises(
        ShapeError, match=r"leaf \[0\] is f32\[8,3\], whose first axis cannot be cut into 3 equal parts"
    ):
        step(step.init(draw()[0]), draw()[1][0])
