"""Training steps: each option against the same computation written out, and what is refused."""

import numpy as np
import optax
import pytest

import phlox
import phlox.numpy as jnp
import phlox_optim as optim
from phlox.errors import ArgumentError, DtypeError, ShapeError
from phlox_optim import metrics
from phlox_optim.errors import SkippedStepsError

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
    assert set(rows[0]) == {"loss", "learning_rate", "grad_norm", "size"}
    _, rows = run(optim.make_step(loss, optim.adamw(0.05)), params, batches[:1])
    assert set(rows[0]) == {"loss", "learning_rate", "size"}


def averaged(values, limit):
    """The moving average of arrays, from the formula of the documentation."""
    average = 0
    for n, value in enumerate(values):
        decay = min(limit, n / (n + 9))
        average = decay * average + (1 - decay) * value
    return average


@pytest.mark.parametrize("limit", [0.3, 0.999])
def test_ema(limit):
    params, batches = draw()
    step = optim.make_step(loss, optim.sgd(0.1), ema=limit)
    train, seen = step.init(params), []
    for number, batch in enumerate(batches):
        train, _ = step(train, batch)
        seen.append(phlox.tree.map(np.asarray, train.params))
        assert number or phlox.tree.all(phlox.tree.map(np.allclose, train.ema, train.params)), "not the initial ones"
    assert_close(train.ema, {name: averaged([row[name] for row in seen], limit) for name in params})


def test_ema_of_state_and_of_dtypes():
    def counting(params, batch, *, state):
        state = {**state, "mean": state["mean"] + 1, "count": state["count"] + 1, "on": ~state["on"]}
        return jnp.sum(params.astype(jnp.float32)), {"state": state}

    step = optim.make_step(counting, optim.sgd(2.0**-9), ema=0.999)
    start = {"mean": jnp.zeros(2), "count": jnp.int32(5), "on": jnp.bool_(False), "key": phlox.random.key(1)}
    train, _ = run(step, jnp.zeros(3, jnp.bfloat16), [None] * 4, state=start)
    np.testing.assert_allclose(train.ema_state["mean"], averaged([1.0, 2.0, 3.0, 4.0], 0.999) * np.ones(2), rtol=1e-6)
    assert (train.ema_state["count"], train.ema_state["on"]) == (9, False), "the latest, as they have no average"
    assert train.ema.dtype == jnp.float32, "bfloat16 would lose the small changes"
    np.testing.assert_allclose(train.ema, averaged(-np.arange(1, 5) / 512, 0.999) * np.ones(3), rtol=1e-5)


def test_ema_of_constants_is_constant():
    step = optim.make_step(lambda params, batch: jnp.sum(params) * 0, optim.sgd(1.0), ema=0.99)
    train, _ = run(step, jnp.array([0.1, 1 / 3, 1e8]), [None] * 30)
    np.testing.assert_array_equal(train.ema, train.params)


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


BAD = np.full(2, np.nan, "f4")
GOOD = np.ones(2, "f4")


def square(params, batch):
    return jnp.sum((params * batch) ** 2)


def overflowing(params, batch):
    """A loss that is finite, with gradients that are not where the batch is 0."""
    return jnp.sum(jnp.sqrt(params * batch))


@pytest.mark.parametrize("dtype", [None, jnp.float16])
def test_loss_scale_has_a_floor_and_a_ceiling(dtype):
    step = optim.make_step(
        overflowing, optim.sgd(0.01), dtype=dtype, loss_scale=optim.LossScale(period=1), max_skips=None
    )
    train, rows = run(step, jnp.ones(2), [0 * GOOD] * 200)
    assert (train.scale[0], train.skipped, train.step) == (1, (200, 200), 200)
    assert [row["scale"] for row in rows[:3]] == [2.0**15, 2.0**14, 2.0**13]
    before = np.asarray(train.params)
    for _ in range(60):
        train, figures = step(train, GOOD)
    assert np.abs(np.asarray(train.params) - before).min() > 0.1, "training goes on"
    assert train.scale[0] <= 2.0**24 and np.isfinite(train.params).all()
    assert metrics.values(figures)["skipped"] in (0, 1)


def test_a_loss_that_is_not_finite_leaves_the_scale():
    step = optim.make_step(square, optim.sgd(0.1), dtype=jnp.float16, loss_scale=optim.LossScale(2.0**10))
    train, _ = run(step, jnp.ones(2), [GOOD, *[BAD] * 20, GOOD])
    assert (train.scale[0], train.scale[1], train.skipped) == (2.0**10, 1, (20, 0))
    total = metrics.values(metrics.merge(*(step(step.init(jnp.ones(2)), batch)[1] for batch in (GOOD, BAD))))
    assert total["skipped"] == 1 and total["scale"] == 2.0**10


@pytest.mark.parametrize("limit", [1, 3, 20])
def test_too_many_skipped_steps_in_a_row(limit):
    step = optim.make_step(square, optim.adam(0.1), skip_nonfinite=True, max_skips=limit)
    start = step.init(GOOD)
    for batch in [GOOD, *[BAD] * (limit - 1), GOOD]:
        start, _ = step(start, batch)
    with pytest.raises(FloatingPointError, match=r"the batch, the loss, the gradients") as excinfo:
        for _ in range(2 * limit + 1):
            start, _ = step(start, BAD)
    error = excinfo.value
    assert isinstance(error, SkippedStepsError) and "max_skips=" in str(error)
    assert limit <= error.skipped <= limit + limit // 10 and error.scale is None
    assert error.step == start.step == limit + 1 + error.skipped


@pytest.mark.parametrize(
    "options",
    [{"minimum": 0.0}, {"initial": 0.0}, {"factor": 0.5}, {"period": 0}, {"maximum": np.inf}, {"maximum": 2.0}],
)
def test_loss_scales_that_are_refused(options):
    with pytest.raises(ArgumentError, match=next(iter(options))):
        optim.LossScale(**options)
    assert optim.LossScale(initial=2.0**30).maximum == 2.0**30
    assert optim.LossScale(initial=0.5).minimum == 0.5


def masked(params, batch):
    """A loss whose examples have weights, of which some are 0 and have nan for values."""
    x, y, weights = batch["x"], batch["y"], batch["weights"]
    losses = (jnp.tanh(jnp.where(weights[:, None] != 0, x, 0) @ params["w"]) @ params["v"] - y) ** 2
    return metrics.mean(losses, weights), {"size": metrics.mean(losses, weights), "number": metrics.Sum(weights.sum())}


def weighted_batch(kind="f4"):
    params, batches = draw()
    x, y = (np.concatenate(arrays) for arrays in zip(*batches[:2], strict=True))
    weights = np.array([1, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], kind)  # one part has none
    weights = weights * np.linspace(0.5, 3, 16).astype(kind) if kind == "f4" else weights
    x[weights == 0] = np.nan
    return params, {"x": x, "y": y, "weights": weights}


@pytest.mark.parametrize("kind", ["f4", "bool"])
@pytest.mark.parametrize("dtype", [None, jnp.bfloat16])
@pytest.mark.parametrize("accumulate", [2, 4, 16])
def test_accumulated_masked_losses_are_those_of_the_whole_batch(accumulate, dtype, kind):
    params, batch = weighted_batch(kind)
    expected, figures = run(optim.make_step(masked, optim.sgd(0.1), clip=0.5, dtype=dtype), params, [batch])
    train, rows = run(
        optim.make_step(masked, optim.sgd(0.1), clip=0.5, dtype=dtype, accumulate=accumulate), params, [batch]
    )
    tolerance = 1e-6 if dtype is None else 1e-2
    assert_close(train.params, {k: np.asarray(v) for k, v in expected.params.items()}, tolerance)
    assert_close(rows[0], figures[0], tolerance)

    def plain(params):
        losses = (np.float32(0) + jnp.tanh(jnp.nan_to_num(batch["x"]) @ params["w"]) @ params["v"] - batch["y"]) ** 2
        return jnp.average(losses, weights=batch["weights"].astype("f4"))

    np.testing.assert_allclose(rows[0]["loss"], plain(params), rtol=tolerance)
    if dtype is None:
        grads = phlox.grad(plain)(params)
        norm = np.sqrt(sum(np.sum(np.asarray(g) ** 2) for g in grads.values()))
        moved = {k: params[k] - 0.1 * min(1, 0.5 / norm) * np.asarray(g) for k, g in grads.items()}
        assert_close(train.params, moved, 1e-5)


def test_masked_losses_over_devices():
    params, batch = weighted_batch()
    expected, row = run(optim.make_step(masked, optim.sgd(0.1)), params, [batch])
    step = optim.make_step(masked, optim.sgd(0.1), axis_name="data", accumulate=2)
    start = phlox.tree.map(lambda leaf: jnp.stack([leaf] * 4), step.init(params))
    parts = phlox.tree.map(lambda leaf: leaf.reshape(4, 4, *leaf.shape[1:]), batch)
    train, figures = phlox.pmap(step.function, axis_name="data", devices=phlox.devices()[:4])(start, parts)
    for device in range(4):
        assert_close(phlox.tree.map(lambda leaf: leaf[device], train.params), expected.params, 1e-6)
        assert_close(metrics.values(phlox.tree.map(lambda leaf: leaf[device], figures)), row[0], 1e-6)


def test_a_batch_without_examples_changes_nothing():
    params, batch = weighted_batch()
    batch["weights"] *= 0
    for accumulate in (1, 2):
        train, rows = run(optim.make_step(masked, optim.sgd(0.1), accumulate=accumulate), params, [batch])
        assert_close(train.params, params, 0)
        assert np.isnan(rows[0]["loss"])


@pytest.mark.filterwarnings("error")
def test_scalar_losses_of_masked_batches_warn():
    def scalar(params, batch):
        mean, _ = masked(params, batch)
        return mean.value()

    params, batch = weighted_batch()
    step = optim.make_step(scalar, optim.sgd(0.1), accumulate=2)
    with pytest.raises(UserWarning, match=r"accumulate=2.*the batch has \['weights'\].*metrics.mean"):
        step(step.init(params), batch)
    run(optim.make_step(scalar, optim.sgd(0.1)), params, [batch])
    run(optim.make_step(masked, optim.sgd(0.1), accumulate=2), params, [batch])


def test_steps_that_are_not_finite_change_nothing():
    params, batches = draw()
    bad = (np.full_like(batches[1][0], np.nan), batches[1][1])
    step = optim.make_step(loss, optim.adam(0.1), skip_nonfinite=True, ema=0.9)
    good, _ = run(step, params, [batches[0], batches[2]])
    train, rows = run(step, params, [batches[0], bad, batches[2]])
    assert [row["skipped"] for row in rows] == [0, 1, 0]
    assert train.step == 3
    assert train.skipped == (1, 0)
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
        (lambda s: s(metrics.Mean(jnp.ones(3), 3)), ShapeError, r"the loss is f32\[3\], not a scalar"),
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
    with pytest.raises(ArgumentError, match="max_skips is 0"):
        optim.make_step(loss, optim.sgd(0.1), max_skips=0)
    with pytest.raises(ArgumentError, match="the loss takes key, and init got none"):
        optim.make_step(lambda params, batch, key: 0.0, optim.sgd(0.1)).init(jnp.ones(3))
    step = optim.make_step(loss, optim.sgd(0.1), accumulate=3)
    with pytest.raises(
        ShapeError, match=r"leaf \[0\] is f32\[8,3\], whose first axis cannot be cut into 3 equal parts"
    ):
        step(step.init(draw()[0]), draw()[1][0])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"clip": 0}, "clip is 0"), ({"clip": -1.0}, "clip is -1"), ({"dtype": "int32"}, "dtype is 'int32'")],
)
def test_options_that_would_undo_the_training(options, message):
    with pytest.raises(ArgumentError, match=message):
        optim.make_step(loss, optim.sgd(0.1), **options)


@pytest.mark.parametrize(
    ("result", "kind", "message"),
    [
        (lambda p: (p.sum(), {}, 1), ArgumentError, "a scalar and a dict and a int"),
        (lambda p: jnp.int32(1), DtypeError, r"the loss is i32\[\]"),
        (lambda p: p.sum() * 1j, DtypeError, r"the loss is c64\[\]"),
    ],
)
def test_results_that_are_no_loss(result, kind, message):
    step = optim.make_step(lambda params, batch: result(params), optim.sgd(0.1))
    with pytest.raises(kind, match=message):
        step(step.init(jnp.ones(2)), jnp.ones(2))


def test_python_numbers_as_parameters():
    """They have no weak types, so that the second step is not another program."""
    step = optim.make_step(lambda params, batch: params["a"] * batch.mean(), optim.adam(0.1), ema=0.9)
    train = step.init({"a": 1.0})
    assert not any(leaf.weak_type for leaf in phlox.tree.leaves((train.params, train.ema, train.opt_state)))


def test_norms_of_complex_gradients():
    step = optim.make_step(lambda params, batch: jnp.abs(params * batch).sum() ** 2, optim.sgd(0.1), grad_norm=True)
    _, figures = step(step.init(jnp.array(3 + 4j)), jnp.float32(1))
    np.testing.assert_allclose(figures["grad_norm"].value(), 10, rtol=1e-6)
