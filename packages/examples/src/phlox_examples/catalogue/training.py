"""The programs that train networks."""

from __future__ import annotations

import argparse

from .rows import Option, Program, positive, whole


def _training(epochs: int, quick: int, batch_size: int, learning_rate: float) -> tuple[Option, ...]:
    """The options that all trainings over epochs have."""
    return (
        Option("--epochs", whole(1), epochs, "how often to go through the training examples", quick),
        Option("--batch-size", whole(1), batch_size, "examples in a step"),
        Option("--learning-rate", positive, learning_rate, "of the optimizer", metavar="RATE"),
    )


def _uneven(options: argparse.Namespace) -> str | None:
    if options.batch_size % options.devices:
        return f"--batch-size {options.batch_size} cannot be split evenly over {options.devices} devices"
    if options.devices % options.processes:
        return f"--devices {options.devices} cannot be split evenly over {options.processes} processes"
    return None


def _uneven_features(options: argparse.Namespace) -> str | None:
    return f"--features {options.features} is no multiple of 8" if options.features % 8 else None


_WIDTHS = Option("--widths", whole(1), [128, 128, 128], "sizes of the hidden layers", [16], many=True)

PROGRAMS = (
    Program(
        "selu-mlp",
        "a SELU network learns handwritten digits; stopped, it goes on (what ./train alone does)",
        4,
        (
            *_training(30, 2, 64, 0.002),
            Option("--half-life", positive, 6.0, "epochs after which the learning rate has halved", metavar="EPOCHS"),
            _WIDTHS,
            Option(
                "--loader",
                str,
                "numpy",
                "the library that makes the batches",
                choices=("numpy", "torch", "tf", "tfds"),
                needs={"torch": "torch", "tf": "tensorflow", "tfds": "tensorflow_datasets"},
            ),
            Option(
                "--checkpoint",
                str,
                None,
                "save each epoch in DIR, and go on where an earlier run with the same settings stopped",
                metavar="DIR",
                decides=False,
            ),
        ),
        ("epochs", "test_accuracy"),
    ),
    Program(
        "data-parallel",
        "batches split over devices, or over processes, give the losses of one device",
        6,
        (
            Option("--devices", whole(1), 8, "how many; virtual ones on a CPU", 2),
            Option("--processes", whole(1), 1, "over how many processes the devices are spread"),
            *_training(10, 2, 64, 0.002),
            _WIDTHS,
        ),
        ("losses", "largest_difference", "tolerance"),
        refuses=_uneven,
    ),
    Program(
        "cnn",
        "a convolutional network reads digits, which a PyTorch DataLoader brings",
        10,
        _training(12, 1, 64, 0.001),
        ("epochs", "test_accuracy"),
        needs=("torch",),
    ),
    Program(
        "resnet",
        "shortcuts make deep networks trainable: the same network with and without them",
        35,
        (
            Option("--blocks", whole(1), 16, "how many, of two convolutions each", 2),
            *_training(8, 1, 64, 0.05),
        ),
        ("with_shortcuts", "without_shortcuts", "test_accuracy"),
    ),
    Program(
        "vit",
        "a vision transformer reads digits, and shows on which pixels its scores depend",
        25,
        _training(30, 1, 64, 0.001),
        ("epochs", "test_accuracy"),
    ),
    Program(
        "mlp-mixer",
        "digits are read without convolutions and without attention",
        20,
        _training(30, 1, 64, 0.002),
        ("epochs", "test_accuracy"),
    ),
    Program(
        "vae",
        "a plane of all digits, and new ones drawn from it",
        10,
        _training(150, 2, 64, 0.002),
        ("epochs", "lower_bound"),
    ),
    Program(
        "gpt",
        "a transformer learns Python's documentation letter by letter, and writes some",
        80,
        (
            *_training(6, 1, 64, 0.003),
            Option("--layers", whole(1), 3, "of the transformer", 1),
            Option("--pieces", whole(1), 1_000_000, "of the text to use at most, of 65 characters each", 256),
        ),
        ("epochs", "bits_per_character", "sample"),
    ),
    Program(
        "lora",
        "a network from PyTorch learns a new task by few numbers, and goes back",
        15,
        (
            *_training(20, 2, 64, 0.01),
            Option("--rank", whole(1), 4, "of the changes of each matrix"),
            Option("--torch-epochs", whole(1), 20, "of the training in PyTorch", 3),
        ),
        ("epochs", "learnt", "frozen", "accuracy_before", "test_accuracy", "accuracy_in_torch"),
        needs=("torch",),
    ),
    Program(
        "tf-digits",
        "tf.data shuffles, moves and batches digits, read in all places",
        15,
        _training(15, 1, 64, 0.002),
        ("moved", "as_they_are", "test_accuracy"),
        needs=("tensorflow",),
    ),
    Program(
        "per-example-gradients",
        "wrong labels are found by the gradients of single examples: vmap(grad)",
        5,
        (
            *_training(4, 2, 64, 0.002),
            Option("--wrong", whole(1, 1000), 100, "how many labels are made wrong"),
        ),
        ("epochs", "found", "share_found"),
    ),
    Program(
        "gpt-j",
        "a tiny GPT-J, with rotary positions and parallel branches, learns to add",
        50,
        (
            Option("--steps", whole(1), 2000, "of the training", 20),
            Option("--batch-size", whole(1), 128, "sums in a step", 32),
            Option("--learning-rate", positive, 0.003, "of the optimizer", metavar="RATE"),
            Option("--digits", whole(1, 3), 3, "of the numbers that are added", 2),
            Option("--features", whole(32, 512), 64, "of the network, 4 heads together; a multiple of 8", 32),
            Option("--layers", whole(1, 4), 2, "blocks"),
        ),
        ("training", "sums_right", "digits_right"),
        refuses=lambda options: f"--features {options.features} is no multiple of 8" if options.features % 8 else None,
    ),
    Program(
        "diffusion",
        "points become noise, and a network learns the way back; samples are judged",
        25,
        (
            Option("--steps", whole(250), 5000, "of the training", 250),
            Option("--batch-size", whole(1), 512, "points in a step", 128),
            Option("--learning-rate", positive, 0.002, "of the optimizer", metavar="RATE"),
            Option("--samples", whole(100), 4000, "that are drawn", 500),
        ),
        ("losses", "best_loss", "excess", "samples", "best_samples"),
    ),
    Program(
        "stream",
        "learning from a source that never ends and changes: rates, and what theory says",
        8,
        (Option("--batches", whole(20), 400, "of 500 items each", 40),),
        ("rates", "excess", "known_excess", "kalman", "frozen"),
    ),
    Program(
        "ppo",
        "a cart learns to balance a pole: simulation and training in one compiled program",
        15,
        (
            Option("--rounds", whole(1), 80, "of 128 steps of each cart", 2),
            Option("--carts", whole(4), 64, "that run side by side", 8),
            Option("--learning-rate", positive, 0.003, "of the optimizer at first", metavar="RATE"),
        ),
        ("rounds", "return_before", "return_after"),
    ),
    Program(
        "byol",
        "features learnt without labels; with a few labels they beat raw pixels",
        50,
        _training(150, 1, 256, 0.002),
        ("epochs", "probes"),
    ),
    Program(
        "perceiver-io",
        "any pixels of a digit are read, and any others are asked for",
        50,
        _training(40, 1, 64, 0.002),
        ("epochs", "shown", "accuracy", "error", "error_of_mean"),
    ),
    Program(
        "chat",
        "a small Llama is trained to talk, saved in Hugging Face's form, loaded and asked",
        40,
        (
            Option("--steps", whole(1), 400, "of the training", 10),
            Option("--learning-rate", positive, 0.005, "of the optimizer", metavar="RATE"),
            Option("--features", whole(32, 512), 64, "of the network, 4 heads together; a multiple of 8", 32),
            Option("--exam", whole(1, 100), 40, "dialogues of the examination", 4),
        ),
        ("training", "dialogues_right", "dialogues_right_in_16_bits", "dialogue"),
        refuses=_uneven_features,
    ),
)
