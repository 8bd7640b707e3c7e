"""The input pipeline: the digits, shuffled and batched by one of several libraries.

With each library the order of an epoch is a function of the seed and the epoch's number, so that a training that was
stopped can be continued exactly.
"""

from __future__ import annotations

import os
from typing import Any

import phlox_data as data


def feed(loader: str, train: dict[str, Any], batch_size: int, seed: int, folder: str) -> data.Batches:
    """Batches of `train`, as dicts like it, made by the library `loader`; `folder` is for files of TFDS.

    Raises `phlox_data.MissingExtraError` if the library is not installed.
    """
    if loader == "torch":
        return _from_torch(train, batch_size, seed)
    if loader == "tf":
        return _from_tf(train, batch_size, seed)
    if loader == "tfds":
        # Written to files once for each seed, which determines the training set.
        splits = data.local_tfds(os.path.join(folder, "tfds"), f"digits_{seed}", {"train": train})
        return data.from_tfds(splits["train"], batch_size, seed=seed, last="drop")
    return data.batches(train, batch_size, seed=seed, last="drop")


def _from_torch(train: dict[str, Any], batch_size: int, seed: int) -> data.Batches:
    torch = data.require("torch")
    pictures = [{"image": image, "label": label} for image, label in zip(train["image"], train["label"], strict=True)]

    def loader(epoch: int) -> Any:
        order = torch.Generator().manual_seed(seed + epoch)
        return torch.utils.data.DataLoader(
            pictures, batch_size, shuffle=True, generator=order, drop_last=True, collate_fn=data.collate
        )

    return data.from_torch(loader)


def _from_tf(train: dict[str, Any], batch_size: int, seed: int) -> data.Batches:
    # Suppresses TensorFlow's messages about the CPU at import.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    tf = data.require("tensorflow")
    pictures = tf.data.Dataset.from_tensor_slices(train)
    count = len(train["label"])
    return data.from_tf(lambda epoch: pictures.shuffle(count, seed=seed + epoch).batch(batch_size, drop_remainder=True))
