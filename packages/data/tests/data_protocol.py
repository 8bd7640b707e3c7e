"""What all `Batches` promise, whatever their source: epochs, state and restore, nothing left behind."""

import multiprocessing
import pickle

import numpy as np

import phlox
from data_threads import ours


def values(batches):
    """Batches as nested lists of numbers, to be compared by ==."""
    return [
        phlox.tree.map(lambda x: np.asarray(x).astype("O" if np.asarray(x).dtype.kind in "OUS" else float).tolist(), b)
        for b in batches
    ]


def check(make, epochs, count="known"):
    """`make()` returns new batches of a source; `epochs` are the values of epochs 0 and 1, or None.

    Returns the values of epoch 0.
    """
    made = make()
    first, second, third = [values(made) for _ in range(3)]
    if epochs is not None:
        assert [first, second] == epochs
    assert values(make().epoch(1)) == second
    if count == "known":
        assert len(made) == len(first)
    for taken in sorted({0, 1, len(first) - 1, len(first)}):
        stopped = make()
        list(stopped)  # epoch 0
        loop = iter(stopped)
        assert values(next(loop) for _ in range(taken)) == second[:taken]
        state = pickle.loads(pickle.dumps(stopped.state()))
        del loop
        assert (state["epoch"], state["batch"]) == (1, taken)
        resumed = make()
        resumed.restore(state)
        assert resumed.state() == state or "reader" in state
        assert values(resumed) == second[taken:]
        assert resumed.state() == {"epoch": 2, "batch": 0}
        assert values(resumed) == third
    left_early(make())
    return first


def left_early(made):
    """A loop that is left after one batch leaves no thread and no process."""
    children = set(multiprocessing.active_children())
    for _ in made:
        break
    assert not ours()
    assert not set(multiprocessing.active_children()) - children
