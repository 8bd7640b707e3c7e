"""``phlox.experimental.rnn``: LSTMs of several layers on padded sequences, as in ``jax.experimental.rnn``.

It is a part of phlox-compat.
"""

from typing import TYPE_CHECKING

from .._base.doors import enter

if TYPE_CHECKING:
    from phlox_compat.experimental.rnn import *  # noqa: F403

enter(__name__)
