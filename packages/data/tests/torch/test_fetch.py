"""Loaders without workers give the batches of PyTorch, whichever way they are made."""

from collections import namedtuple

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

import phlox
import phlox_data as data

Pair = namedtuple("Pair", "x y")
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(23, 3, 2)).astype(np.float32)


class Made(Dataset):
    """Examples that a function makes of their numbers."""

    def __init__(self, make):
        self.make = make

    def __len__(self):
        return len(X)

    def __getitem__(self, number):
        return self.make(number)


EXAMPLES = {
    "array and number": lambda n: (X[n], n),
    "list": lambda n: [X[n], float(n), n % 2 == 0],
    "dict": lambda n: {"x": X[n], "y": np.int16(n), "z": np.float64(n)},
    "nested": lambda n: (X[n], {"y": [n, X[n].astype(np.float64)]}),
    "named tuple": lambda n: Pair(X[n], n),
    "tensors": lambda n: (torch.from_numpy(X[n]), torch.tensor(n)),
    "tensor and number": lambda n: (torch.from_numpy(X[n]), n),
    "arrays without axes": lambda n: (np.array(n), X[n]),
    "bytes": lambda n: (X[n].astype(np.uint8), np.bool_(n % 3)),
    "half": lambda n: X[n].astype(np.float16),
    "complex": lambda n: X[n] * np.complex64(1j),
    "array alone": lambda n: X[n],
    "number alone": lambda n: n,
    "strided": lambda n: X[n].T[::-1].copy().T,
    "empty": lambda n: np.zeros((0, 4), np.int32),
}


def same(mine, theirs):
    """Asserts that batches are those of PyTorch, in the same containers."""
    theirs = phlox.tree.map(lambda x: x.numpy(), theirs)
    assert phlox.tree.structure(mine) == phlox.tree.structure(theirs)
    for a, b in zip(phlox.tree.leaves(mine), phlox.tree.leaves(theirs), strict=True):
        assert a.dtype == phlox.dtypes.canonicalize_dtype(b.dtype)
        np.testing.assert_array_equal(a, b.astype(a.dtype))


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_any_kind(name):
    loader = DataLoader(Made(EXAMPLES[name]), 5)
    for mine, theirs in zip(data.from_torch(loader), loader, strict=True):
        same(mine, theirs)


@pytest.mark.parametrize(
    "tensors",
    [
        (torch.from_numpy(X), torch.arange(23)),
        (torch.from_numpy(X).requires_grad_(),),
        (torch.from_numpy(X).permute(0, 2, 1)[:, ::2], torch.arange(23, dtype=torch.uint8)),
    ],
)
@pytest.mark.parametrize("options", [{}, {"drop_last": True}, {"shuffle": True}, {"batch_size": None}])
def test_datasets_of_tensors(tensors, options):
    def loader():
        seeded = torch.Generator().manual_seed(7)
        return DataLoader(TensorDataset(*tensors), **{"batch_size": 5, "generator": seeded, **options})

    if options == {"batch_size": None}:  # single examples are PyTorch's own affair
        mine = next(iter(data.from_torch(DataLoader(TensorDataset(torch.zeros(2, 4)), batch_size=None))))
        assert mine[0].shape == (4,)
        return
    with torch.no_grad():
        for mine, theirs in zip(data.from_torch(loader()), loader(), strict=True):
            same(mine, phlox.tree.map(torch.Tensor.detach, theirs))


def test_numbers_from_the_end_and_of_other_types():
    tensor = torch.arange(6.0).to(torch.bfloat16)
    sampler = [[-1, 0], [np.int64(2), torch.tensor(3)]]
    batches = data.from_torch(DataLoader(TensorDataset(tensor), batch_sampler=sampler))
    assert [batch[0].tolist() for batch in batches] == [[5, 0], [2, 3]]
    with pytest.raises(IndexError):
        list(data.from_torch(DataLoader(TensorDataset(tensor), batch_sampler=[[6]])))


def test_the_batches_are_copies():
    tensor = torch.arange(8.0)
    batches = list(data.from_torch(DataLoader(TensorDataset(tensor), 4)))
    tensor.zero_()
    assert [batch[0].tolist() for batch in batches] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_batches_that_torch_has_taken_keep_their_values():
    tensor = torch.arange(64 * 500.0).reshape(64, 500)
    taken = [torch.from_dlpack(batch[0])[1:] for batch in data.from_torch(DataLoader(TensorDataset(tensor), 4))]
    for number, rows in enumerate(taken):
        torch.testing.assert_close(rows, tensor[4 * number + 1 : 4 * number + 4])


def test_a_registered_function_may_return_the_same_memory_again(monkeypatch):
    """`default_collate` calls it, so batches of it are copied like those of any function of a user."""
    written = torch.zeros(2, 64)  # torch's memory is aligned as XLA wants it

    class Own(tuple):
        pass

    def stack(batch, *, collate_fn_map=None):
        written[:] = torch.from_numpy(np.stack([row[0] for row in batch]))
        return written

    functions = torch.utils.data._utils.collate.default_collate_fn_map
    monkeypatch.setitem(functions, Own, stack)
    made = Made(lambda n: Own((np.full(64, X[n, 0, 0]),)))
    batches = list(data.from_torch(DataLoader(made, 2, drop_last=True)))
    for number, batch in enumerate(batches):
        np.testing.assert_array_equal(batch[:, 5], X[2 * number : 2 * number + 2, 0, 0])


def test_the_loader_is_not_changed():
    loader = DataLoader(TensorDataset(torch.arange(4.0)), 2)
    collate = loader.collate_fn
    list(data.from_torch(loader))
    assert loader.collate_fn is collate
    assert [type(batch[0]) for batch in loader] == [torch.Tensor] * 2


def test_a_subclass_of_the_dataset_and_an_own_collate_function_are_called():
    class Doubled(TensorDataset):
        def __getitem__(self, number):
            return tuple(2 * x for x in super().__getitem__(number))

    (batch,) = data.from_torch(DataLoader(Doubled(torch.arange(3.0)), 3))
    assert batch[0].tolist() == [0, 2, 4]
    (batch,) = data.from_torch(DataLoader(TensorDataset(torch.arange(3.0)), 3, collate_fn=lambda rows: np.ones(3)))
    assert batch.tolist() == [1, 1, 1]


def test_errors_of_pytorch_stay():
    ragged = DataLoader(Made(lambda n: np.zeros(n)), 3)
    with pytest.raises(RuntimeError) as theirs:
        next(iter(ragged))
    with pytest.raises(RuntimeError) as mine:
        next(iter(data.from_torch(ragged)))
    assert str(mine.value) == str(theirs.value)
