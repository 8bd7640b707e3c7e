"""`Pipeline`: examples changed, chosen and batched step by step, where no other library does it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, Literal

import numpy as np

import phlox
from phlox.errors import ArgumentError

from ._batches import whole_number
from ._examples import examples
from ._host import OnHost
from ._steps import Batch, Buffered, Filter, Iterated, Map, Mixed, Permuted, Repeat, Rows, Step, Take


class Pipeline(Iterable[Any]):
    """Examples, and the steps that change them. Made by `pipeline` and `mix`; each method returns a new pipeline.

    Nothing is computed before it is read. What an epoch has depends only on the source, the seeds and the epoch's
    number, provided that the functions given to `map` and `filter` depend only on their example. `from_iterable` makes
    `Batches` of a pipeline that ends with `batch`: these are put on devices ahead of the loop, and can be restored.

    One thread reads, single examples before `batch`; `map` can have workers of its own. Grain does better where several
    machines share the data, where storage is slow and many reads must wait at once, and where a stopped program must
    not read again what `filter`, `mix` or a shuffle in a buffer have passed: see `from_grain`.

    >>> import phlox_data as data
    >>> squares = data.pipeline(range(10)).filter(lambda x: x % 2).map(lambda x: x * x).batch(2)
    >>> [batch.tolist() for batch in data.from_iterable(squares)]
    [[1, 9], [25, 49], [81]]
    """

    def __init__(self, step: Step):
        self._step = step

    def epoch(self, number: int, start: int = 0) -> Iterator[Any]:
        """The items of one epoch, from item `start` on.

        >>> list(pipeline("abcd").shuffle(seed=0).epoch(1, start=1))
        ['a', 'd', 'c']
        """
        items = self._step.read(whole_number(number, "epoch"), whole_number(start, "start"))
        return (value for _, value in items)

    def __iter__(self) -> Iterator[Any]:
        return self.epoch(0)

    def __len__(self) -> int:
        if self._step.length is None:
            raise ArgumentError("this pipeline does not say how many items it has", instead="count them in the loop")
        return self._step.length

    def map(self, f: Callable[[Any], Any], *, workers: int = 0, processes: bool = False) -> Pipeline:
        """``f(example)`` for each example, or for each batch after `batch`.

        Args:
          f: a function of one example.
          workers: the number of threads or processes that compute examples in advance; their order is kept. With 0 the
            thread that reads computes them.
          processes: whether workers are processes, for functions of Python code that hold the interpreter's lock;
            threads are better for those that read files or compute in NumPy. Processes are started anew in each epoch,
            by a fork server: `f` must be a function of a module, its examples and results are pickled, and the
            program's own work stands under ``if __name__ == "__main__":``. They end with the loop, and with the program
            whatever ends it.

        Returns the pipeline with this step. In the loop, errors of `f` are raised as they are, with a note that names
        the step and the example.

        >>> list(pipeline([1, 2, 3]).map(lambda x: 10 * x, workers=2))
        [10, 20, 30]
        """
        if processes and not workers:
            raise ArgumentError("map: processes without workers", instead="workers=4", argument="workers")
        if processes:
            from ._workers import check_function

            check_function(f)
        return Pipeline(Map(self._step, f, whole_number(workers, "workers"), processes))

    def filter(self, f: Callable[[Any], Any]) -> Pipeline:
        """The examples for which `f` is true.

        >>> list(pipeline(range(6)).filter(lambda x: x % 3 == 0))
        [0, 3]
        """
        return Pipeline(Filter(self._step, f))

    def batch(self, size: int, *, last: Literal["keep", "drop"] = "keep") -> Pipeline:
        """Examples stacked by `collate`, `size` at a time.

        Args:
          size: the number of examples of a batch.
          last: ``"keep"`` or ``"drop"`` for the short batch at the end; `from_iterable` can pad a kept one.

        Returns the pipeline with this step.

        >>> list(pipeline({"x": np.arange(3)}).batch(2))
        [{'x': array([0, 1])}, {'x': array([2])}]
        """
        if last not in ("keep", "drop"):
            raise ArgumentError(
                f"last={last!r} of a pipeline",
                instead="'keep' or 'drop'; from_iterable(..., last='pad')",
                argument="last",
            )
        return Pipeline(Batch(self._step, whole_number(size, "size", 1), last == "drop"))

    def shuffle(self, seed: int, *, buffer: int | None = None) -> Pipeline:
        """The examples in an order that depends on `seed` and the epoch's number.

        Args:
          seed: a number.
          buffer: without it the order is a permutation of all examples, which needs random access: a source with
            numbered examples and no step between but `map` and `take`. With it, each next example is drawn from this
            many that were read ahead.

        Returns the pipeline with this step. Raises `ArgumentError` where there is no random access and no buffer.

        >>> list(pipeline(range(5)).shuffle(seed=0)), list(pipeline(range(5)).shuffle(seed=1, buffer=2))
        ([3, 0, 2, 1, 4], [1, 0, 3, 2, 4])
        """
        seed = whole_number(seed, "seed")
        if buffer is not None:
            return Pipeline(Buffered(self._step, seed, whole_number(buffer, "buffer", 1)))
        if not self._step.reorders or self._step.length is None:
            raise ArgumentError(
                "shuffle: the examples at this step cannot be read in any order",
                instead="shuffle(seed, buffer=10_000), or shuffle before the other steps",
                argument="buffer",
            )
        return Pipeline(Permuted(self._step, seed))

    def repeat(self, times: int | None = None) -> Pipeline:
        """The epoch `times` times, or without end; steps before see each time as an epoch of its own.

        >>> list(pipeline(range(3)).shuffle(seed=0).repeat(2))
        [2, 1, 0, 1, 0, 2]
        """
        return Pipeline(Repeat(self._step, None if times is None else whole_number(times, "times", 1)))

    def take(self, count: int) -> Pipeline:
        """The first `count` items of each epoch.

        >>> list(pipeline(range(10)).take(3))
        [0, 1, 2]
        """
        return Pipeline(Take(self._step, whole_number(count, "count")))


def pipeline(source: Any) -> Pipeline:
    """A pipeline of the examples of `source`, to be changed by `map`, `filter`, `shuffle`, `batch` and others.

    Args:
      source: one of

        - a dict or tuple of arrays, or one array, whose first axes count the examples, as for `batches`;
        - anything else with a length and numbered examples: a list, a range, a PyTorch dataset, a data source of TFDS,
          a dataset of Hugging Face;
        - any other iterable of examples that can be read again;
        - a function that gets the epoch's number and returns an iterable of examples.

    Returns a `Pipeline`. Raises `ArgumentError` for iterators, which can be read only once, and for what holds no
    examples, and the errors of `batches` for arrays of different length.

    >>> rows = pipeline((np.array([[1, 2], [3, 4]]), np.array(["a", "b"])))
    >>> [(int(x.sum()), str(text)) for x, text in rows]
    [(3, 'a'), (7, 'b')]
    """
    if callable(source) and not isinstance(source, Iterable) and not hasattr(source, "__getitem__"):
        return Pipeline(Iterated(source, None, None))
    if isinstance(source, Mapping | tuple | np.ndarray | phlox.Array):
        # Strings are as good as numbers here; whether devices take them shows when batches are put there.
        held = examples(phlox.tree.map(lambda x: OnHost(x) if isinstance(x, np.ndarray) else x, source), "source")
        return Pipeline(Rows(len(held), lambda i: held.structure.unflatten([leaf[i] for leaf in held.leaves])))
    if hasattr(source, "__len__") and hasattr(source, "__getitem__"):
        return Pipeline(Rows(len(source), source.__getitem__))
    if isinstance(source, Iterable) and not isinstance(source, Iterator):
        why = f"nothing is known of the order of a {type(source).__name__}"
        return Pipeline(Iterated(lambda _: source, len(source) if isinstance(source, Sized) else None, why))
    raise ArgumentError(
        f"pipeline: {source!r} {'can be read only once' if isinstance(source, Iterator) else 'holds no examples'}",
        instead="a list, or a function of the epoch's number that makes an iterable",
        value=source,
    )


def mix(pipelines: Sequence[Pipeline], weights: Sequence[float], seed: int) -> Pipeline:
    """A pipeline whose every next item comes from one of several, drawn by weights.

    Args:
      pipelines: what is mixed. An epoch ends when one is drawn that has no item left, so that the shares hold to the
        end; `Pipeline.repeat` keeps short ones from ending it.
      weights: one for each, in any unit.
      seed: draws the order, together with the epoch's number.

    Returns a `Pipeline`. Raises `ArgumentError` for weights that are not positive or not one for each pipeline.

    >>> few, many = pipeline(range(3)).repeat(), pipeline(range(100, 200))
    >>> list(mix([few, many], weights=[1, 3], seed=0).take(8))
    [100, 101, 0, 102, 1, 103, 104, 105]
    """
    shares = np.asarray(weights, float)
    if not pipelines or shares.shape != (len(pipelines),) or not np.all((shares > 0) & np.isfinite(shares)):
        raise ArgumentError(
            f"mix: weights={weights!r} for {len(pipelines)} pipelines",
            instead="one positive number for each",
            argument="weights",
        )
    return Pipeline(Mixed([pipeline._step for pipeline in pipelines], shares, whole_number(seed, "seed")))
