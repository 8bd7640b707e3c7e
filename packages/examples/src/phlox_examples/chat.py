"""``./train chat``: a small Llama is trained, saved in Hugging Face's form, loaded again, and talked to.

A language model becomes a partner for talks by its texts: dialogues, in which special tokens say whose turn it is,

    <user> my name is Ada . <bot> hello Ada ! <end> <user> what is my name ? <bot> your name is Ada . <end>

Only what <bot> says is learnt. To answer, the model reads the dialogue so far and writes on until <end>. It has no
other memory: the name that it tells was read again with all the rest. So that this need not take long, keys and values
of what was read are kept in a cache of static size; reading is one compiled program, and writing a token is another.

The folder has what a model on the Hugging Face hub has: ``config.json``, ``model.safetensors``, and the vocabulary in
``tokenizer.json``. `phlox_models.load` reads it as it reads those of others, and `transformers` can read it too.

The questions of the examination combine names and countries that never met in the training.
"""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

import numpy as np

import phlox
import phlox.numpy as jnp
import phlox_models
import phlox_optim as optim

from . import plots, report, results
from .errors import ProgramError
from .options import settings_of

NAME = "chat"
NAMES = (
    "Ada", "Alan", "Barbara", "Carl", "Emmy", "Euler", "Grace", "Hedy", "Isaac",
    "Jean", "Katherine", "Leo", "Marie", "Niels", "Olga", "Paul", "Rosa", "Sofia",
)  # fmt: skip
CAPITALS = {
    "Austria": "Vienna", "Chile": "Santiago", "Cuba": "Havana", "Egypt": "Cairo", "France": "Paris", "Ghana": "Accra",
    "Greece": "Athens", "India": "Delhi", "Italy": "Rome", "Japan": "Tokyo", "Kenya": "Nairobi", "Nepal": "Kathmandu",
    "Norway": "Oslo", "Peru": "Lima", "Poland": "Warsaw", "Portugal": "Lisbon", "Spain": "Madrid", "Vietnam": "Hanoi",
}  # fmt: skip
SPECIAL = ("<pad>", "<user>", "<bot>", "<end>")
LENGTH = 48  # tokens of the longest dialogue, and a few
CHUNK = 50  # steps between two examinations


def turns(name: str, country: str, order: int) -> list[tuple[str, str]]:
    """A dialogue: what the user says, and the answers. `order` is 0 or 1."""
    capital = (f"what is the capital of {country} ?", f"the capital of {country} is {CAPITALS[country]} .")
    if order:
        greeting = (f"hello ! I am {name} .", f"hello {name} !")
        return [capital, greeting, ("do you know my name ?", f"your name is {name} .")]
    greeting = (f"my name is {name} .", f"hello {name} !")
    return [greeting, capital, ("what is my name ?", f"your name is {name} .")]


class Tokenizer:
    """Words to numbers, by the vocabulary of a ``tokenizer.json``."""

    def __init__(self, vocabulary: dict[str, int]):
        self.vocabulary = vocabulary
        self.words = {number: word for word, number in vocabulary.items()}

    @classmethod
    def of_dialogues(cls) -> Tokenizer:
        """The vocabulary of all dialogues."""
        texts = (
            part for n in NAMES for c in CAPITALS for order in (0, 1) for turn in turns(n, c, order) for part in turn
        )
        words = sorted({word for text in texts for word in text.split()})
        return cls({word: number for number, word in enumerate((*SPECIAL, *words))})

    @classmethod
    def read(cls, folder: str) -> Tokenizer:
        """The vocabulary of a folder."""
        with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as file:
            return cls(json.load(file)["model"]["vocab"])

    def write(self, folder: str) -> None:
        """Writes ``tokenizer.json`` in the form of the library tokenizers."""
        special = [
            {"id": self.vocabulary[word], "content": word, "special": True, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False}
            for word in SPECIAL
        ]  # fmt: skip
        model = {"type": "WordLevel", "vocab": self.vocabulary, "unk_token": "<pad>"}
        contents: dict[str, Any] = {"version": "1.0", "added_tokens": special, "model": model}
        contents["pre_tokenizer"] = {"type": "WhitespaceSplit"}
        contents |= dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder"))
        results.write_json(os.path.join(folder, "tokenizer.json"), contents)

    def encode(self, text: str) -> list[int]:
        """The numbers of the words of a text."""
        return [self.vocabulary[word] for word in text.split()]

    def decode(self, numbers: Any) -> str:
        """The words, without special ones."""
        words = (self.words[int(number)] for number in numbers)
        return " ".join(word for word in words if word not in SPECIAL)


def dialogue(tokenizer: Tokenizer, exchanges: list[tuple[str, str]]) -> tuple[Any, Any]:
    """The tokens of a dialogue (LENGTH,), and which of them <bot> says."""
    tokens, learnt = [], []
    for question, answer in exchanges:
        question_tokens, answer_tokens = (
            tokenizer.encode(f"<user> {question} <bot>"),
            tokenizer.encode(f"{answer} <end>"),
        )
        tokens += question_tokens + answer_tokens
        learnt += [False] * len(question_tokens) + [True] * len(answer_tokens)
    rest = LENGTH - len(tokens)
    return np.array(tokens + [0] * rest, "int32"), np.array(learnt + [False] * rest)


def configuration(tokenizer: Tokenizer, options: argparse.Namespace) -> dict[str, Any]:
    """What is in ``config.json``."""
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": len(tokenizer.vocabulary),
        "hidden_size": options.features, "intermediate_size": 2 * options.features, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128, "hidden_act": "silu",
        "rms_norm_eps": 1e-6, "tie_word_embeddings": True, "bos_token_id": None,
        "eos_token_id": tokenizer.vocabulary["<end>"], "pad_token_id": tokenizer.vocabulary["<pad>"],
    }  # fmt: skip


def split(seed: int) -> tuple[list[Any], list[Any]]:
    """Combinations of name, country and order: those to learn, and those of the examination."""
    pairs = [(name, country) for name in NAMES for country in CAPITALS]
    order = np.random.default_rng(seed).permutation(len(pairs))
    cut = len(pairs) * 4 // 5
    sets = [[(*pairs[i], both) for i in part for both in (0, 1)] for part in (order[:cut], order[cut:])]
    return sets[0], sets[1]


def answers(model: Any, params: Any, tokenizer: Tokenizer, dialogues: list[Any]) -> float:
    """The share of dialogues in which all answers are right. What the model said is in what it reads next."""
    histories: list[list[int]] = [[] for _ in dialogues]
    right = np.ones(len(dialogues), bool)
    for turn in range(3):
        exchanges = [turns(*combination)[turn] for combination in dialogues]
        for history, (question, _) in zip(histories, exchanges, strict=True):
            history += tokenizer.encode(f"<user> {question} <bot>")
        texts = phlox_models.generate(model, params, [np.array(h) for h in histories], max_new_tokens=10)
        for number, (history, text, (_, answer)) in enumerate(zip(histories, texts, exchanges, strict=True)):
            reply = [int(token) for token in np.asarray(text)[len(history) :]]
            right[number] &= tokenizer.decode(reply) == answer
            history += tokenizer.encode(f"{tokenizer.decode(reply)} <end>")
    return float(right.mean())


def talk(model: Any, params: Any, tokenizer: Tokenizer, questions: list[str]) -> list[tuple[str, str]]:
    """A dialogue with these questions. Each word of an answer is shown as soon as it is known."""

    def show(new: Any) -> None:
        report.console.print(f" {tokenizer.decode(new)}", end="", highlight=False, markup=False)

    history: list[int] = []
    exchanges = []
    for question in questions:
        history += tokenizer.encode(f"<user> {question} <bot>")
        report.show(f"> {question}")
        text = phlox_models.generate(model, params, np.array(history), max_new_tokens=10, callback=show)
        report.show("")
        reply = tokenizer.decode(np.asarray(text)[len(history) :])
        history += tokenizer.encode(f"{reply} <end>")
        exchanges.append((question, reply))
    return exchanges


def train(model: Any, tokenizer: Tokenizer, options: argparse.Namespace) -> tuple[Any, list[dict[str, float]]]:
    """Trains, and examines from time to time."""
    learn, exam = split(options.seed)
    rows = [dialogue(tokenizer, turns(*combination)) for combination in learn]
    tokens, learnt = (jnp.asarray(np.stack(part)) for part in zip(*rows, strict=True))

    def loss(params: Any, batch: Any) -> Any:
        text, mask = tokens[batch], learnt[batch, 1:]
        losses = optim.softmax_cross_entropy_with_integer_labels(model.apply(params, text[:, :-1]), text[:, 1:])
        return (losses * mask).sum() / mask.sum()

    tx = optim.chain(
        optim.clip_by_global_norm(1.0), optim.adamw(optim.cosine_decay_schedule(options.learning_rate, options.steps))
    )

    @phlox.jit
    def several(carry: Any, batches: Any) -> Any:
        def step(carry: Any, batch: Any) -> Any:
            params, state = carry
            value, gradient = phlox.value_and_grad(loss)(params, batch)
            updates, state = tx.update(gradient, state, params)
            return (optim.apply_updates(params, updates), state), value

        return phlox.lax.scan(step, carry, batches)

    params = model.init(phlox.random.key(options.seed))
    carry, history = (params, tx.init(params)), []
    random = np.random.default_rng(options.seed)
    batches = random.integers(0, len(learn), (options.steps, 32)).astype("int32")
    chunk = min(CHUNK, options.steps)
    with report.progress("Training", options.steps // chunk) as shown:
        shown.row(" step", "  loss", "dialogues right")
        for number in shown.counted(range(options.steps // chunk)):
            carry, values = several(carry, batches[number * chunk : (number + 1) * chunk])
            share = answers(model, carry[0], tokenizer, exam[: options.exam])
            history.append({"step": (number + 1) * chunk, "loss": float(values.mean()), "right": share})
            if not np.isfinite(history[-1]["loss"]):
                raise ProgramError("the loss has become infinite: choose a smaller --learning-rate", status=1)
            shown.row(str(history[-1]["step"]), f"{history[-1]['loss']:.4f}", f"{share:.1%}")
    return carry[0], history


def run(options: argparse.Namespace) -> None:
    """Trains, saves, loads, examines, talks, and draws."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    tokenizer = Tokenizer.of_dialogues()
    model = phlox_models.build(configuration(tokenizer, options))
    params, history = train(model, tokenizer, options)

    # 1. The folder, and back.
    folder = os.path.join(options.out, "chat-quick-model" if options.quick else "chat-model")
    results.make_folder(folder, "--out")
    phlox_models.save(folder, model, params)
    tokenizer.write(folder)
    loaded, weights = phlox_models.load(folder)
    tokenizer = Tokenizer.read(folder)
    same = phlox.tree.map(lambda a, b: bool((np.asarray(a) == np.asarray(b)).all()), weights, params)
    if not all(phlox.tree.leaves(same)):
        raise ProgramError(f"the weights read from {folder} are not those that were saved", status=1)

    # 2. A talk that was not in the training, and the same in half the memory.
    name, country, order = split(options.seed)[1][0]
    exchanges = talk(loaded, weights, tokenizer, [question for question, _ in turns(name, country, order)])
    small, halves = phlox_models.load(folder, dtype="bfloat16")
    exam = split(options.seed)[1][: options.exam]
    in_16_bits = answers(small, halves, tokenizer, exam)

    share = history[-1]["right"]
    figure = plots.figure(f"A small Llama in talks: {share:.0%} of new dialogues have only right answers", (12, 4.8))
    left, right = figure.subplots(1, 2)
    steps = [row["step"] for row in history]
    plots.curve(left, steps, [row["loss"] for row in history], plots.BLUE, "loss (nats)")
    plots.curve(left, steps, [row["right"] for row in history], plots.ORANGE, "dialogues right")
    left.set(title="Training", xlabel="step", ylim=(-0.08, None))
    left.margins(x=0.2)
    right.axis("off")
    right.set_title("A dialogue, in which these two have never met in the training", loc="left", fontsize=11)
    for number, (question, reply) in enumerate(exchanges):
        right.text(0.0, 0.92 - 0.3 * number, question, fontsize=13, color=plots.GREY, va="top")
        right.text(0.08, 0.8 - 0.3 * number, reply or "...", fontsize=13, color=plots.BLUE, va="top")
    contents = {
        "settings": settings,
        "training": history,
        "dialogues_right": share,
        "dialogues_right_in_16_bits": in_16_bits,
        "dialogue": [list(turn) for turn in exchanges],
    }
    files = results.write(options, contents, figure)
    report.show(f"{share:.1%} of new dialogues are right. The model is in {folder}. Wrote {' and '.join(files)}.")
