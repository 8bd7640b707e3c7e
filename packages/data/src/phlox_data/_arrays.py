"""Batches of arrays in memory, or memory-mapped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._batches import Batches
from ._examples import examples
from ._host import Names, check_names
from ._indexed import Indexed
from ._last import Last, check_mode


def batches(
    source: Any,
    batch_size: int,
    *,
    seed: int | None = None,
    last: Last = "keep",
    device: Any = None,
    devices: Sequence[Any] | None = None,
    prefetch: int = 2,
    host: Names = (),
) -> Batches:
    """Batches of arrays, put on devices while the program computes with earlier ones.

    Args:
      source: a tree of arrays with first axes of one length, which counts the examples: ``(images, labels)``,
        ``{"x": x, "y": y}``. NumPy arrays (also memory-mapped ones), phlox arrays, CPU tensors.
      batch_size: the number of examples of a batch, on all devices together.
      seed: shuffles each epoch, in an order that depends only on `seed` and the epoch's number. Without it, epochs have
        the order of `source`.
      last: the treatment of a short batch at the end of an epoch. ``"keep"``: it is not changed; a jitted function is
        compiled once more for it. ``"drop"``: its examples are omitted in this epoch. ``"pad"``: all batches are
        `Padded`, a pair of batch and mask.
      device: a device or a sharding to put batches on; by default the placement of new arrays. With a `NamedSharding`
        over several processes, `batch_size` is that of all together, and each process reads the examples of its own
        devices.
      devices: several devices for `pmap`: arrays have shape ``(devices, per_device, ...)``, and each part is on its
        device. Then batches must divide evenly, a kept last one too.
      prefetch: the number of batches that a thread prepares in advance; with 0 there is no thread. The thread is paused
        while it would hide less than it costs; the loop's own thread then reads `source`.
      host: names of entries that stay on the host as NumPy arrays, such as strings: keys of dicts, fields of named
        tuples, positions in tuples. ``host=["text"]`` holds wherever ``"text"`` is a key; without it strings raise.

    Returns `Batches` of trees with the structure of `source`. Dtypes are those of `phlox.numpy.asarray`: 64-bit types
    become 32-bit unless x64 mode is on. Batches never share memory with `source`.

    Raises `ArgumentError` and `DtypeError` for a `source` that no device can hold, and `AxisSizeError` for first axes
    of different length, batches that cannot be split evenly, and examples that do not fill one batch when `last` is
    ``"drop"``.

    >>> import numpy as np
    >>> x, y = np.arange(10.0).reshape(5, 2), np.arange(5)
    >>> for inputs, labels in batches((x, y), batch_size=2, seed=0):
    ...     print(inputs.shape, labels)
    (2, 2) [3 0]
    (2, 2) [2 1]
    (1, 2) [4]
    """
    check_mode(last)
    stored = examples(source, "source", check_names(host))
    indexed = Indexed(len(stored), stored.take, batch_size, seed, last)
    return Batches(indexed, last=last, device=device, devices=devices, prefetch=prefetch)
