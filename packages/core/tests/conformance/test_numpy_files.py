"""phlox.numpy, arrays from files, bytes and text, and back."""

import io

import pytest

import judge
import phlox
from conformance.harness import both


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64", "bfloat16", "int4", "float8_e4m3fn"])
def test_files(dtype):
    x = judge.array(judge.rng("files", dtype), (2, 3), dtype)

    def there_and_back(m, x):
        file = io.BytesIO()
        m.numpy.save(file, m.numpy.asarray(x))
        file.seek(0)
        return m.numpy.load(file)

    both(there_and_back, x)
    file = io.BytesIO()
    phlox.numpy.savez(file, a=phlox.numpy.asarray(x))
    file.seek(0)
    assert list(phlox.numpy.load(file)) == ["a"]


def test_bytes_and_text():
    both(lambda m: m.numpy.frombuffer(bytes(range(16)), "float32", 2, 4))
    both(lambda m: m.numpy.frombuffer(bytes(range(16)), "int64"))
    both(lambda m: m.numpy.fromstring("1 2 3", "int32", sep=" "))
    both(lambda m: m.numpy.fromstring("1,2.5", sep=","))
    both(lambda m: m.numpy.fromfile("x"))
    both(lambda m: m.numpy.fromiter([1], int))
