"""What `fit` does besides steps: the best state, plateaus, limits of time, signals, evaluations, logs, usage."""

import csv
import datetime
import io
import json
import math
import signal
import sys
import time
import types

import numpy as np
import pytest
import torch

import phlox
import phlox.numpy as jnp
import phlox_optim as optim
from phlox.errors import ArgumentError
from phlox_optim import logging, metrics
from phlox_optim.checkpoint import CheckpointManager
from phlox_optim.errors import MissingExtraError

X = np.random.default_rng(0).normal(size=(40, 3)).astype("f4")
Y = X @ np.array([1.0, -2.0, 0.5], "f4")
BATCHES = [(X[n : n + 8], Y[n : n + 8]) for n in range(0, 40, 8)]


def loss(params, batch):
    x, y = batch
    return jnp.mean((x @ params["w"] - y) ** 2)


STEP = optim.make_step(loss, optim.adam(0.05))
EVALUATE = optim.make_evaluation(lambda params, batch: {"loss": loss(params, batch)}, BATCHES)


def start(step=STEP):
    return step.init({"w": jnp.zeros(3)})


def run(step=STEP, **options):
    return optim.fit(start(step), step, BATCHES, **{"epochs": 3, "progress": False, **options})


def same(first, second):
    phlox.tree.map(np.testing.assert_array_equal, first, second)


def scripted(*values):
    """An evaluation with these values of "eval_score", one after the other."""
    rest = iter(values)
    return lambda train: {"eval_score": next(rest)}


@pytest.mark.parametrize("saved", [True, False])
def test_the_best_state(tmp_path, saved):
    checkpoints = CheckpointManager(tmp_path / "c", max_to_keep=1) if saved else None
    options = {"evaluate": scripted(0.1, 0.7, math.nan, 0.7, 0.5), "best": optim.Best("eval_score", "max"), "epochs": 5}
    done = run(checkpoints=checkpoints, **options)
    assert int(done.best.step) == 10 and int(done.state.step) == 25
    same(done.best, run(epochs=2).state)
    if saved:
        checkpoints.close()
        with CheckpointManager(tmp_path / "c") as checkpoints:  # goes on, and nothing better comes
            done = run(**{**options, "epochs": 6, "evaluate": scripted(0.6)}, checkpoints=checkpoints)
        assert int(done.best.step) == 10 and int(done.state.step) == 30


def test_the_best_of_steps():
    evaluate = scripted(5.0, 1.0, 2.0, 3.0)
    done = run(evaluate=evaluate, evaluate_every=2, epochs=1, best=optim.Best("eval_score"))
    assert [row["step"] for row in done.evaluations] == [2, 4] and int(done.best.step) == 4
    assert done.history[0]["eval_score"] == 2.0


def test_evaluations_are_not_run_twice():
    calls = []
    done = run(
        evaluate=lambda train: calls.append(int(train.step)) or {"eval_n": len(calls)}, evaluate_every=5, epochs=2
    )
    assert calls == [5, 10] and [row["eval_n"] for row in done.history] == [1, 2]


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("patience", [1, 2, 3])
def test_plateaus_are_torchs(mode, patience):
    rng = np.random.default_rng(patience)
    values = np.round(rng.normal(size=30).cumsum() * 0.1, 1)
    plateau = optim.ReduceOnPlateau("x", 0.5, patience, mode=mode, minimum=0.01)
    own = [plateau([{"x": v} for v in values[: n + 1]]) for n in range(30)]
    parameter = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 1.0)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(
        parameter, mode, 0.5, patience - 1, threshold=0, min_lr=0.01, eps=0
    )
    expected = []
    for value in values:
        theirs.step(value)
        expected.append(parameter.param_groups[0]["lr"])
    np.testing.assert_allclose(own, expected)


def test_a_plateau_scales_updates_and_goes_on(tmp_path):
    step = optim.make_step(loss, optim.sgd(lambda count: 0.1 / (1 + count)))
    plateau = optim.ReduceOnPlateau("eval_score", 0.1, patience=1)
    options = {"plateau": plateau, "evaluate": lambda train: {"eval_score": 1.0}}
    whole = run(step, epochs=4, **options)
    assert float(whole.state.rate_scale) == pytest.approx(1e-3)
    rates = [
        0.1 / (1 + n) * scale for scale, n in zip([1] * 5 + [1] * 5 + [0.1] * 5 + [0.01] * 5, range(20), strict=True)
    ]
    np.testing.assert_allclose(
        [row["learning_rate"] for row in whole.history], np.reshape(rates, (4, 5)).mean(1), rtol=1e-5
    )
    with CheckpointManager(tmp_path) as checkpoints:
        run(step, epochs=2, checkpoints=checkpoints, **options)
        done = run(step, epochs=4, checkpoints=checkpoints, **options)
    same(done.state, whole.state)


def test_a_limit_of_time(tmp_path):
    def slow(train, batch):
        time.sleep(0.02)
        return STEP(train, batch)

    with CheckpointManager(tmp_path) as checkpoints:
        done = optim.fit(
            start(),
            slow,
            BATCHES,
            epochs=1000,
            max_time=datetime.timedelta(seconds=0.3),
            checkpoints=checkpoints,
            progress=False,
        )
        assert done.ended == "time limit" and 0 < int(done.state.step) < 1000
        epochs = int(done.state.step) // 5 + 1
        done = run(epochs=epochs, checkpoints=checkpoints)
    same(done.state, run(epochs=epochs).state)


def test_sigterm_saves_and_ends(tmp_path):
    def step(train, batch):
        if int(train.step) == 6:
            signal.raise_signal(signal.SIGTERM)
        return STEP(train, batch)

    with CheckpointManager(tmp_path) as checkpoints:
        done = optim.fit(start(), step, BATCHES, epochs=3, checkpoints=checkpoints, progress=False)
        assert (done.ended, int(done.state.step)) == ("interrupted", 7)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        same(run(checkpoints=checkpoints).state, run().state)


@pytest.mark.parametrize("where", ["plain", "chain", "by_path", "injected", "constant"])
def test_the_learning_rate_is_a_figure(where):
    schedule = optim.linear_schedule(0.0, 1.0, 10)
    tx = {
        "plain": lambda: optim.adamw(schedule),
        "chain": lambda: optim.chain(optim.clip(1.0), optim.adam(learning_rate=schedule)),
        "by_path": lambda: optim.by_path({"w": optim.sgd(schedule)}),
        "injected": lambda: optim.inject_hyperparams(optim.adam)(learning_rate=schedule),
        "constant": lambda: optim.sgd(0.25),
    }[where]()
    step = optim.make_step(loss, tx, grad_norm=True)
    train = start(step)
    rates = []
    for batch in BATCHES:
        train, figures = step(train, batch)
        rates.append(float(figures["learning_rate"].value()))
    np.testing.assert_allclose(rates, [0.25] * 5 if where == "constant" else np.arange(5) / 10, rtol=1e-6)
    assert "grad_norm" in figures


def test_figures_of_steps_and_usage(tmp_path):
    rows = []
    done = run(log=[lambda step, row: rows.append(row)], log_every=2, figures=("throughput", "memory"), epochs=2)
    assert [row["step"] for row in rows] == [2, 4, 5, 6, 8, 10, 10]
    train, losses = start(), []
    for batch in BATCHES * 2:
        train, figures = STEP(train, batch)
        losses.append(float(figures["loss"].value()))
    np.testing.assert_allclose([row["step_loss"] for row in rows if "step_loss" in row], losses[1::2], rtol=1e-5)
    assert all(row["examples_per_second"] == pytest.approx(8 * row["steps_per_second"]) for row in done.history)
    assert all(row["memory_bytes"] > 1e6 for row in done.history)


def test_csv(tmp_path):
    path = tmp_path / "a" / "log.csv"
    log = logging.CSV(path)
    log(1, {"loss": 0.5, "matrix": np.eye(2), "name": "x"})
    log(2, {"loss": math.nan, "eval": np.float32(2)})
    with open(path, newline="") as file:
        assert list(csv.DictReader(file)) == [
            {"step": "1", "loss": "0.5", "eval": ""},
            {"step": "2", "loss": "nan", "eval": "2.0"},
        ]
    logging.CSV(path)(3, {"eval": 1})  # a training that goes on
    assert path.read_text().splitlines()[-1] == "3,,1" and len(path.read_text().splitlines()) == 4


def test_services(monkeypatch):
    calls = []
    wandb_run = types.SimpleNamespace(
        log=lambda x, step: calls.append((step, x)), finish=lambda: calls.append("finish")
    )
    wandb = types.SimpleNamespace(init=lambda **options: calls.append(options) or wandb_run)
    mlflow = types.SimpleNamespace(
        set_experiment=lambda name: calls.append(name),
        start_run=lambda **options: calls.append(options),
        log_metrics=lambda x, step: calls.append((step, x)),
        end_run=lambda: calls.append("end"),
    )
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    with logging.WandB("digits", name="first") as log:
        log(3, {"loss": np.float32(0.5), "matrix": np.eye(2)})
    with logging.MLflow("digits", run_name="first") as log:
        log(3, {"loss": 1, "text": "x"})
    assert calls == [
        {"project": "digits", "name": "first"}, (3, {"loss": 0.5}), "finish",
        "digits", {"run_name": "first"}, (3, {"loss": 1.0}), "end",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_services_that_are_not_installed(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=f"pip install {name}"):
        {"wandb": logging.WandB, "mlflow": logging.MLflow}[name]("digits")


def test_lines_and_bars_of_a_running_epoch(monkeypatch, capsys):
    from rich.console import Console

    from phlox_optim import _progress

    monkeypatch.setattr(_progress.Progress, "interval", 0.0)
    run(progress=True, epochs=2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("epoch 1 of 2  batch 1 of 5  loss ") and "ETA" not in lines[0]
    assert "steps/s  ETA 0:0" in lines[3] and lines[5].startswith("epoch 1  step 5  loss")
    out = io.StringIO()
    monkeypatch.setattr(_progress._Bar, "interval", 0.0)
    monkeypatch.setattr(_progress.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("rich.progress.get_console", lambda: Console(file=out, force_terminal=True, width=120))

    def slow(train, batch):
        time.sleep(0.15)  # the bar is drawn ten times a second
        return STEP(train, batch)

    optim.fit(start(), slow, BATCHES, epochs=1)
    assert "compiling" in out.getvalue() and "loss " in out.getvalue().split("compiling")[-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"evaluate_every": 2}, "evaluate_every needs evaluate"),
        ({"log_every": 2}, "log_every needs log"),
        ({"epochs": 1.5}, "epochs is 1.5"),
        ({"save_every": 0}, "save_every is 0"),
        ({"figures": ("speed",)}, "figures is"),
        ({"figures": "memory"}, "figures is"),
        ({"rules": {"w": 1}}, "rules need a mesh"),
        ({"mesh": 8}, "mesh is 8"),
        ({"best": optim.Best("eval_los")}, "Best watches 'eval_los'"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ArgumentError, match=message):
        run(**options)
    with pytest.raises(ArgumentError, match="mode is 'maximum'"):
        optim.Best("x", "maximum")
    with pytest.raises(ArgumentError, match="factor is 2"):
        optim.ReduceOnPlateau("x", factor=2)


def test_the_history_is_json():
    done = run(figures=("throughput", "memory"), evaluate=EVALUATE)
    assert json.loads(json.dumps(done.history))[0]["eval_loss"] == done.history[0]["eval_loss"]
    assert isinstance(metrics.values({"a": metrics.auc(jnp.ones(2), jnp.arange(2))})["a"], float)
