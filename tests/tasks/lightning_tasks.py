"""The tasks of phlox_tasks.py with Lightning and PyTorch."""

import json

import lightning as L
import torch
from lightning.pytorch.callbacks import EMAWeightAveraging, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.plugins import MixedPrecision
from lightning.pytorch.strategies import ModelParallelStrategy
from lightning.pytorch.utilities import grad_norm
from safetensors.torch import load_file
from task_data import NEW_TOKENS, TOKENS, X_VALID, Y_VALID, X, Y
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F
from torch.nn.utils import parametrize
from torch.utils.data import DataLoader, TensorDataset


def loader(x, y, size):
    return DataLoader(TensorDataset(torch.tensor(x), torch.tensor(y, dtype=torch.long)), batch_size=size)


TRAIN, VALID = loader(X, Y, 64), loader(X_VALID, Y_VALID, len(Y_VALID))


class Classifier(L.LightningModule):
    def __init__(self, lr=1e-3):
        super().__init__()
        torch.manual_seed(0)
        self.lr, self.layers = lr, nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))

    def training_step(self, batch, index):
        loss = F.cross_entropy(self.layers(batch[0]), batch[1])
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        self.log("accuracy", (self.layers(batch[0]).argmax(-1) == batch[1]).float().mean(), prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), self.lr)


def own_layer(folder):
    class Scale(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(size))

        def forward(self, x):
            return x * self.scale

    model = nn.Sequential(nn.Linear(64, 128), Scale(128), nn.ReLU(), nn.Linear(128, 10))
    return model(torch.tensor(X_VALID)).shape


def validation(folder):
    trainer = L.Trainer(max_epochs=5)
    trainer.fit(Classifier(), TRAIN, VALID)
    return trainer.callback_metrics["accuracy"]


def best_and_resume(folder):
    for epochs in (2, 5):
        best = ModelCheckpoint(folder, "best", monitor="accuracy", mode="max", save_last=True)
        trainer = L.Trainer(max_epochs=epochs, callbacks=[best])
        trainer.fit(Classifier(), TRAIN, VALID, ckpt_path="last")
    return trainer.validate(Classifier(), VALID, ckpt_path=best.best_model_path)[0]["accuracy"]


def mixed_precision(folder):
    half = MixedPrecision("16-mixed", "cpu", torch.amp.GradScaler("cpu"))  # precision="16-mixed" on a GPU
    trainer = L.Trainer(max_epochs=5, plugins=[half])
    trainer.fit(Classifier(), TRAIN)
    return trainer.callback_metrics["loss"]


def two_optimizers(folder):
    class ByPath(Classifier):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False  # as Lightning asks for several optimizers

        def configure_optimizers(self):
            first, rest = self.layers[0].parameters(), self.layers[2].parameters()
            return torch.optim.SGD(first, 1e-2, 0.9), torch.optim.Adam(rest, 1e-3)

        def training_step(self, batch, index):
            self.zero_grad()
            self.manual_backward(super().training_step(batch, index))
            for optimizer in self.optimizers():
                optimizer.step()

    trainer = L.Trainer(max_epochs=5)
    trainer.fit(ByPath(), TRAIN)
    return trainer.callback_metrics["loss"]


def lora(folder):
    class Adapted(nn.Module):
        def __init__(self, outs, ins, rank):
            super().__init__()
            self.a = nn.Parameter(torch.randn(rank, ins) / ins**0.5)
            self.b = nn.Parameter(torch.zeros(outs, rank))

        def forward(self, weight):
            return weight + self.b @ self.a

    model = Classifier(lr=1e-2).requires_grad_(False)
    for layer in (model.layers[0], model.layers[2]):
        parametrize.register_parametrization(layer, "weight", Adapted(*layer.weight.shape, rank=4))
    trainer = L.Trainer(max_epochs=5)
    trainer.fit(model, TRAIN)
    return trainer.callback_metrics["loss"], model.layers[0].weight.T.shape


def fsdp(folder):
    class Sharded(Classifier):
        def configure_model(self):
            fully_shard(self.layers, mesh=self.device_mesh["data_parallel"])

    model, strategy = Sharded(), ModelParallelStrategy(data_parallel_size=8, tensor_parallel_size=1)
    trainer = L.Trainer(max_epochs=5, devices=8, strategy=strategy)
    trainer.fit(model, loader(X, Y, 64 // 8))
    return trainer.callback_metrics["loss"], model.layers[0].weight.to_local().T.shape


def ema(folder):
    trainer = L.Trainer(max_epochs=5, callbacks=[EMAWeightAveraging(decay=0.999)])
    trainer.fit(Classifier(), TRAIN, VALID)
    return trainer.callback_metrics["accuracy"]


def log_figures(folder):
    class JsonLines(L.Callback):
        def on_train_epoch_end(self, trainer, module):
            row = {name: value.item() for name, value in trainer.callback_metrics.items()}
            with open(f"{folder}/log.jsonl", "a") as file:
                file.write(json.dumps({"epoch": trainer.current_epoch + 1, **row}) + "\n")

    class WithNorms(Classifier):
        def on_before_optimizer_step(self, optimizer):
            norm = grad_norm(self, 2)["grad_2.0_norm_total"]
            self.log("grad_norm", norm, on_step=False, on_epoch=True)

    csv = CSVLogger(folder, name="", version="")
    L.Trainer(max_epochs=5, logger=csv, callbacks=[JsonLines()]).fit(WithNorms(), TRAIN)
    return len(open(f"{folder}/metrics.csv").readlines())


def surgery(folder):
    model = Classifier()
    model.layers[-1] = nn.Linear(128, 3)
    return model.layers(torch.tensor(X_VALID)).shape


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        size, epsilon, self.heads = config["n_embd"], config["layer_norm_epsilon"], config["n_head"]
        self.ln_1, self.ln_2 = nn.LayerNorm(size, epsilon), nn.LayerNorm(size, epsilon)
        self.attn = nn.ModuleDict({"c_attn": nn.Linear(size, 3 * size), "c_proj": nn.Linear(size, size)})
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(size, 4 * size), "c_proj": nn.Linear(4 * size, size)})

    def forward(self, x):
        qkv = self.attn["c_attn"](self.ln_1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(*qkv, is_causal=True)
        x = x + self.attn["c_proj"](y.transpose(1, 2).flatten(2))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class GPT2(L.LightningModule):
    def __init__(self, config):
        super().__init__()
        self.wte = nn.Embedding(config["vocab_size"], config["n_embd"])
        self.wpe = nn.Embedding(config["n_positions"], config["n_embd"])
        self.h = nn.ModuleList(Block(config) for _ in range(config["n_layer"]))
        self.ln_f = nn.LayerNorm(config["n_embd"], config["layer_norm_epsilon"])

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.h:
            x = block(x)
        return self.ln_f(x) @ self.wte.weight.T


def load_gpt2(folder):
    with open(f"{folder}/config.json") as file:
        model = GPT2(json.load(file))
    tensors = {name.removeprefix("transformer."): x for name, x in load_file(f"{folder}/model.safetensors").items()}
    model.load_state_dict({name: x.T if ".c_" in name else x for name, x in tensors.items()})
    return model.eval()


@torch.no_grad()
def load_weights(folder):
    return load_gpt2(folder)(torch.tensor(TOKENS))


@torch.no_grad()
def generate(folder):
    model, tokens = load_gpt2(folder), torch.tensor(TOKENS)
    for _ in range(NEW_TOKENS):
        tokens = torch.cat([tokens, model(tokens)[:, -1:].argmax(-1)], dim=1)
    return tokens
