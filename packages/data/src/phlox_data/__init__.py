"""phlox_data: batches of examples, prefetched to devices.

    import phlox_data as data

    train = data.batches((images, labels), batch_size=128, seed=0)
    for epoch in range(10):
        for x, y in train.epoch(epoch):
            ...

A function for each kind of source returns `Batches`: `batches` for arrays, `from_torch`, `from_tf`, `from_tfds`,
`from_grain`, `from_huggingface`, and `from_iterable` for all others, among them a `pipeline` of this package.
"""

from phlox.extend import hide_frames, publish

from ._arrays import batches
from ._batches import Batches
from ._examples import collate
from ._extras import require
from ._grain import from_grain
from ._huggingface import from_huggingface
from ._iterable import from_iterable
from ._last import Padded
from ._local_tfds import local_tfds
from ._loop import Report
from ._packing import pack, segment_mask
from ._pipeline import Pipeline, mix, pipeline
from ._tf import from_tf
from ._tfds import from_tfds
from ._torch import from_torch
from .errors import MissingExtraError

__version__ = "0.1.0"
__all__ = [
    "Batches",
    "MissingExtraError",
    "Padded",
    "Pipeline",
    "Report",
    "batches",
    "collate",
    "from_grain",
    "from_huggingface",
    "from_iterable",
    "from_tf",
    "from_tfds",
    "from_torch",
    "local_tfds",
    "mix",
    "pack",
    "pipeline",
    "require",
    "segment_mask",
]

hide_frames(__path__[0])  # errors point at the user's loop, not into this package
publish(__name__)
