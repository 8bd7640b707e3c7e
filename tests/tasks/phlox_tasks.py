"""Twelve tasks with phlox_nn, phlox_optim and phlox_models. Each function is complete; its lines are counted in docs/networks.md."""

from task_data import BATCHES, NEW_TOKENS, TOKENS, VALID, X_VALID

import phlox
import phlox.numpy as jnp
import phlox_models
import phlox_nn as nn
import phlox_optim as optim
from phlox.sharding import PartitionSpec as P
from phlox_optim import logging, metrics

KEY = phlox.random.key(0)
MODEL = nn.MLP((64, 128, 10), nn.relu)


def loss_of(model):
    def loss(params, batch):
        scores = model.apply(params, batch[0])
        losses = optim.softmax_cross_entropy_with_integer_labels(scores, batch[1])
        return losses.mean(), {"accuracy": metrics.accuracy(scores, batch[1])}

    return loss


LOSS = loss_of(MODEL)
EVALUATE = optim.make_evaluation(lambda params, batch: LOSS(params, batch)[1], VALID)


def own_layer(folder):
    class Scale(nn.Layer):
        size: int

        def parameters(self):
            return {"scale": (nn.initializers.ones, (self.size,))}

        def __call__(self, x):
            return x * self.scale

    model = nn.Sequential(nn.Linear(64, 128), Scale(128), nn.relu, nn.Linear(128, 10))
    return model.apply(model.init(KEY), X_VALID).shape


def validation(folder):
    step = optim.make_step(LOSS, optim.adam(1e-3))
    done = optim.fit(step.init(MODEL.init(KEY)), step, BATCHES, epochs=5, evaluate=EVALUATE)
    return done.history[-1]["eval_accuracy"]


def best_and_resume(folder):
    step = optim.make_step(LOSS, optim.adam(1e-3))
    for epochs in (2, 5):  # the second run goes on
        train, best = step.init(MODEL.init(KEY)), optim.Best("eval_accuracy", "max")
        done = optim.fit(train, step, BATCHES, epochs=epochs, evaluate=EVALUATE, checkpoints=folder, best=best)
    return EVALUATE(done.best)["eval_accuracy"]


def mixed_precision(folder):
    step = optim.make_step(LOSS, optim.adam(1e-3), dtype=jnp.float16, loss_scale=optim.LossScale())
    return optim.fit(step.init(MODEL.init(KEY)), step, BATCHES, epochs=5).history[-1]["loss"]


def two_optimizers(folder):
    tx = optim.by_path({"layers/0": optim.sgd(1e-2, 0.9), "*": optim.adam(1e-3)})
    step = optim.make_step(LOSS, tx)
    return optim.fit(step.init(MODEL.init(KEY)), step, BATCHES, epochs=5).history[-1]["loss"]


def lora(folder):
    model = nn.LoRA(MODEL, rank=4)
    step = optim.make_step(loss_of(model), optim.adam(1e-2), freeze="layer")
    done = optim.fit(step.init(model.init(KEY)), step, BATCHES, epochs=5)
    return done.history[-1]["loss"], model.merged(done.state.params)["layers"]["0"]["weight"].shape


def fsdp(folder):
    step = optim.make_step(LOSS, optim.adam(1e-3))
    mesh, rules = phlox.make_mesh((8,), ("data",)), {"layers/0/weight": P("data")}
    done = optim.fit(step.init(MODEL.init(KEY)), step, BATCHES, epochs=5, mesh=mesh, rules=rules)
    weight = done.state.params["layers"]["0"]["weight"]
    return done.history[-1]["loss"], weight.addressable_shards[0].data.shape


def ema(folder):
    step = optim.make_step(LOSS, optim.adam(1e-3), ema=0.999)
    done = optim.fit(step.init(MODEL.init(KEY)), step, BATCHES, epochs=5, evaluate=EVALUATE)
    return done.history[-1]["eval_ema_accuracy"]


def log_figures(folder):
    step = optim.make_step(LOSS, optim.adam(1e-3), grad_norm=True)
    log = [logging.CSV(f"{folder}/log.csv"), logging.JsonLines(f"{folder}/log.jsonl")]
    optim.fit(step.init(MODEL.init(KEY)), step, BATCHES, epochs=5, log=log)
    return len(open(f"{folder}/log.csv").readlines())


def surgery(folder):
    model = nn.replace(MODEL, "layers/1", nn.Linear(128, 3))
    return model.apply(model.init(KEY, reuse=MODEL.init(KEY)), X_VALID).shape


def load_weights(folder):
    model, params = phlox_models.load(folder)
    return model.apply(params, TOKENS)


def generate(folder):
    model, params = phlox_models.load(folder)
    return phlox_models.generate(model, params, TOKENS, max_new_tokens=NEW_TOKENS)
