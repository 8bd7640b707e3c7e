"""`fit`: its figures, how it ends, and that a training that was stopped goes on as if it had not been."""

import io
import json
import signal

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
import phlox_data
import phlox_optim as optim
from phlox.errors import ArgumentError
from phlox_optim import logging, metrics
from phlox_optim.checkpoint import CheckpointManager
from phlox_optim.errors import SkippedStepsError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)).astype("f4")
Y = X @ np.array([1.0, -2.0, 0.5], "f4")


def loss(params, batch, *, key):
    x, y = batch
    noise = 0.01 * phlox.random.normal(key, y.shape)
    error = x @ params["w"] + params["b"] - y + noise
    return jnp.mean(error**2), {"far": metrics.mean(jnp.abs(error) > 1), "signs": metrics.confusion(
        jnp.stack([error, -error], -1), (y > 0).astype(int))}  # fmt: skip


STEP = optim.make_step(loss, optim.adam(0.05), ema=0.9)


def start():
    return STEP.init({"w": jnp.zeros(3), "b": jnp.zeros(())}, key=phlox.random.key(1))


def batches():
    return phlox_data.batches((X, Y), batch_size=8, seed=0)


def same(first, second):
    phlox.tree.map(np.testing.assert_array_equal, phlox.tree.map(as_words, first), phlox.tree.map(as_words, second))


def as_words(leaf):
    return phlox.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, phlox.dtypes.prng_key) else leaf


def rows(history):
    return json.loads(json.dumps(history, default=lambda array: np.asarray(array).tolist()))


class Stop(Exception):
    pass


def stopping(at):
    """A step that fails before the batch `at`, counted over the whole of training."""

    def step(train, batch):
        if int(train.step) == at:
            raise Stop
        return STEP(train, batch)

    return step


def test_history():
    done = optim.fit(start(), STEP, batches(), epochs=3, progress=False)
    assert done.ended == "all epochs"
    assert [(row["epoch"], row["step"]) for row in done.history] == [(1, 5), (2, 10), (3, 15)]
    train = start()
    for row, epoch in zip(done.history, range(3), strict=True):
        losses = []
        for batch in batches().epoch(epoch):
            train, figures = STEP(train, batch)
            losses.append(float(figures["loss"].value()))
        np.testing.assert_allclose(row["loss"], np.mean(losses), rtol=1e-6)
        assert row["signs"].sum() == 40
    same(done.state, train)


@pytest.mark.parametrize(
    "form", [lambda: [(X[:8], Y[:8])] * 4, lambda: lambda epoch: iter([(X[epoch:8], Y[epoch:8])] * 3), batches]
)
@pytest.mark.parametrize("at", [1, 7, 8])
def test_going_on_is_the_same_as_not_stopping(tmp_path, form, at):
    whole = optim.fit(start(), STEP, form(), epochs=4, progress=False)
    for epochs in (3, 4):  # the second time with more epochs than were asked for at first
        with CheckpointManager(tmp_path, max_to_keep=2) as checkpoints:
            options = {"checkpoints": checkpoints, "save_every": 2, "epochs": epochs, "progress": False}
            if epochs == 3:
                with pytest.raises(Stop):
                    optim.fit(start(), stopping(at), form(), **options)
            done = optim.fit(start(), STEP, form(), **options)
    same(done.state, whole.state)
    assert rows(done.history) == rows(whole.history)


@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_checkpoints_may_be_a_folder(tmp_path, kind):
    folder = tmp_path / "last"
    for epochs in (1, 3):
        options = {"epochs": epochs, "checkpoints": kind(folder), "best": optim.Best("loss"), "progress": False}
        done = optim.fit(start(), STEP, batches(), **options)
        with CheckpointManager(folder) as checkpoints:
            assert checkpoints.all_steps() == [int(done.state.step)]
    whole = optim.fit(start(), STEP, batches(), epochs=3, best=optim.Best("loss"), progress=False)
    assert rows(done.history) == rows(whole.history)
    same(done.state, whole.state)
    same(done.best, whole.best)


def test_ctrl_c_saves_and_ends(tmp_path):
    def step(train, batch):
        if int(train.step) == 6:
            signal.raise_signal(signal.SIGINT)
        return STEP(train, batch)

    usual = signal.getsignal(signal.SIGINT)
    with CheckpointManager(tmp_path) as checkpoints:
        options = {"epochs": 3, "checkpoints": checkpoints, "progress": False}
        done = optim.fit(start(), step, batches(), **options)
        assert (done.ended, int(done.state.step), len(done.history)) == ("interrupted", 7, 1)
        assert checkpoints.all_steps() == [5, 7]
        assert signal.getsignal(signal.SIGINT) is usual
        done = optim.fit(start(), STEP, batches(), **options)
    same(done.state, optim.fit(start(), STEP, batches(), epochs=3, progress=False).state)


def test_ctrl_c_twice_interrupts():
    def step(train, batch):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        optim.fit(start(), step, batches(), epochs=1, progress=False)


def test_evaluation_and_early_stopping():
    def measure(params, batch):
        x, y = batch
        return {"error": metrics.mean((x @ params["w"] + params["b"] - y) ** 2)}

    evaluate = optim.make_evaluation(measure, phlox_data.batches((X, Y), batch_size=7, last="keep"))
    done = optim.fit(start(), STEP, batches(), epochs=2, evaluate=evaluate, progress=False)
    for figure, params in (("eval_error", done.state.params), ("eval_ema_error", done.state.ema)):
        expected = np.mean((X @ np.asarray(params["w"]) + np.asarray(params["b"]) - Y) ** 2)
        np.testing.assert_allclose(done.history[-1][figure], expected, rtol=1e-5)
    assert done.history[-1]["eval_error"] != done.history[-1]["eval_ema_error"]
    stops = optim.EarlyStopping("eval_ema_error", patience=2, min_delta=1e9)
    done = optim.fit(start(), STEP, batches(), epochs=9, evaluate=evaluate, early_stopping=stops, progress=False)
    assert (done.ended, len(done.history)) == ("early stopping", 3)


def test_the_average_follows_a_short_training():
    """An average with a decay of 0.999 shows a model of 24 steps, and not the initial one."""
    import phlox_nn as nn

    rng = np.random.default_rng(1)
    centers, labels = rng.normal(size=(4, 8)), rng.integers(0, 4, 512)
    points = (centers[labels] + 0.6 * rng.normal(size=(512, 8))).astype("f4")
    model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm(32, momentum=0.5), nn.relu, nn.Linear(32, 4))

    def scores(params, batch, state, train=False):
        y, state = model.apply(params, batch[0], state=state, train=train)
        losses = optim.softmax_cross_entropy_with_integer_labels(y, batch[1])
        return losses.mean(), {"accuracy": metrics.accuracy(y, batch[1]), "state": state}

    def measure(params, batch, *, state):
        mean, figures = scores(params, batch, state)
        return {"loss": mean, "accuracy": figures["accuracy"]}

    step = optim.make_step(
        lambda params, batch, state: scores(params, batch, state, True),
        optim.adam(1e-2),
        ema=0.999,
        skip_nonfinite=True,
    )
    first = step.init(model.init(phlox.random.key(0)), state=model.init_state())
    evaluate = optim.make_evaluation(measure, [(points, labels)])
    before = evaluate(first)["eval_accuracy"]
    done = optim.fit(
        first,
        step,
        phlox_data.batches((points, labels), batch_size=64, seed=0),
        epochs=3,
        evaluate=evaluate,
        progress=False,
    )
    row = done.history[-1]
    assert before < 0.6 < 0.95 < min(row["eval_accuracy"], row["eval_ema_accuracy"])
    # With the variables of the latest step its loss would be another.
    mixed = done.state.replace(ema_state=done.state.state)
    assert evaluate(mixed)["eval_ema_loss"] != row["eval_ema_loss"]


@pytest.mark.parametrize("weighted", [True, False])
def test_figures_are_means_over_examples(weighted):
    """Over batches of 16, 16 and 8 examples, of which some are masked."""
    mask = np.arange(40) % 7 < 3 if weighted else np.ones(40, bool)

    def measure(params, batch):
        errors = (batch["x"] @ params - batch["y"]) ** 2
        if not weighted:
            return {"error": errors.mean()}
        return {"error": metrics.mean(errors, batch["mask"])}

    def loss(params, batch):
        figures = measure(params, batch)
        return figures["error"], figures

    data = {"x": X, "y": Y, "mask": mask}
    parts = [{name: x[i : i + 16] for name, x in data.items()} for i in (0, 16, 32)]
    step, params = optim.make_step(loss, optim.sgd(0.0)), jnp.array([0.3, -1.0, 2.0])
    evaluate = optim.make_evaluation(measure, parts)
    row = optim.fit(step.init(params), step, parts, epochs=1, evaluate=evaluate, progress=False).history[0]
    expected = np.mean(((X @ np.asarray(params) - Y) ** 2)[mask])
    for name in ("loss", "error", "eval_error"):
        np.testing.assert_allclose(row[name], expected, rtol=1e-5, err_msg=name)

    def own(train, batch):
        return train.replace(step=train.step + 1), {"error": measure(train.params, batch)["error"]}

    row = optim.fit(step.init(params), own, parts, epochs=1, progress=False).history[0]
    np.testing.assert_allclose(row["error"], expected, rtol=1e-5)


def test_skipped_steps_are_counted_and_end_training(tmp_path):
    bad = (np.full_like(X[:8], np.nan), Y[:8])

    def plain(params, batch):
        return jnp.mean((batch[0] @ params["w"] - batch[1]) ** 2)

    options = {"ema": 0.99, "loss_scale": optim.LossScale(), "dtype": jnp.bfloat16, "max_skips": 8}
    step = optim.make_step(plain, optim.sgd(0.05), **options)
    first, order = step.init({"w": jnp.zeros(3)}), [(X[:8], Y[:8]), bad, bad, (X[8:16], Y[8:16])]
    whole = optim.fit(step.init({"w": jnp.zeros(3)}), step, order, epochs=2, progress=False)
    assert [(row["skipped"], row["scale"]) for row in whole.history] == [(2, 2.0**15)] * 2
    assert whole.state.skipped == (4, 0)
    with CheckpointManager(tmp_path) as checkpoints:
        optim.fit(first, step, order, epochs=1, checkpoints=checkpoints, progress=False)
        again = step.init({"w": jnp.zeros(3)})
        done = optim.fit(again, step, order, epochs=2, checkpoints=checkpoints, progress=False)
        same(done.state, whole.state)
        with pytest.raises(SkippedStepsError, match=r"the last 8 steps .to step 16. were skipped.*the batch at .0."):
            optim.fit(again, step, [bad] * 20, epochs=3, checkpoints=checkpoints, progress=False)


@pytest.mark.parametrize(
    ("values", "options", "stops"),
    [
        ([3, 2, 1], {"patience": 1}, False),
        ([3, 2, 2], {"patience": 1}, True),
        ([3, 2, 2.5, 1], {"patience": 2}, False),
        ([3, 2, 1.95], {"patience": 1, "min_delta": 0.1}, True),
        ([1, 2, 3], {"patience": 1, "mode": "max"}, False),
        ([float("nan"), float("nan")], {"patience": 2}, True),
        ([1.0, float("nan")], {"patience": 2}, False),
        ([], {"patience": 1}, False),
    ],
)
def test_early_stopping(values, options, stops):
    assert optim.EarlyStopping("x", **options)([{"x": value} for value in values]) is stops


def test_early_stopping_of_a_figure_that_is_not_there():
    with pytest.raises(ArgumentError, match="'test_loss', which is not among") as excinfo:
        optim.fit(start(), STEP, batches(), epochs=2, early_stopping=optim.EarlyStopping("test_loss"), progress=False)
    assert "loss" in str(excinfo.value)


def test_logs(tmp_path, capsys):
    from optim_events import scalars

    seen = []
    with logging.TensorBoard(tmp_path / "events") as board:
        logs = [
            logging.JsonLines(tmp_path / "a" / "log.jsonl"),
            board,
            lambda step, row: seen.append((step, row["loss"])),
        ]
        done = optim.fit(start(), STEP, batches(), epochs=2, log=logs)
    lines = [json.loads(line) for line in (tmp_path / "a" / "log.jsonl").read_text().splitlines()]
    assert lines == rows(done.history)
    assert seen == [(row["step"], row["loss"]) for row in done.history]
    found = scalars(tmp_path / "events")
    assert found["loss"] == [(row["step"], pytest.approx(row["loss"])) for row in done.history]
    assert "signs" not in found
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2
    assert printed[1].startswith("epoch 2  step 10") and f"loss {done.history[1]['loss']:.4g}" in printed[1]
    assert "signs" not in printed[1]


def test_epochs_without_batches():
    with pytest.raises(ArgumentError, match="epoch 2 had no batches"):
        optim.fit(start(), STEP, iter([(X, Y)]), epochs=2, progress=False)
    with pytest.raises(ArgumentError, match="no batches to evaluate"):
        optim.make_evaluation(lambda params, batch: {}, [])(start())


def test_the_bar_in_a_terminal(monkeypatch):
    from rich.console import Console
    from rich.progress import Progress

    from phlox_optim import _progress

    out = io.StringIO()
    monkeypatch.setattr(_progress.sys.stdout, "isatty", lambda: True, raising=False)
    console = Console(file=out, force_terminal=True, width=100)
    monkeypatch.setattr("rich.progress.get_console", lambda: console)
    assert Progress().console is console
    optim.fit(start(), STEP, batches(), epochs=2)
    text = out.getvalue()
    assert "epoch 1 of 2" in text and "/5" in text and "epoch 2  step 10" in text


def test_a_state_without_a_number_of_steps_is_saved(tmp_path):
    def add(state, batch):
        return {"n": state["n"] + 1}, {"loss": float(state["n"])}

    whole = optim.fit({"n": 0}, add, [1.0] * 3, epochs=3, progress=False)
    optim.fit({"n": 0}, add, [1.0] * 3, epochs=2, progress=False, checkpoints=tmp_path / "steps", save_every=2)
    rest = optim.fit({"n": 0}, add, [1.0] * 3, epochs=3, progress=False, checkpoints=tmp_path / "steps")
    assert rest.state == whole.state == {"n": 9} and rest.history == whole.history
