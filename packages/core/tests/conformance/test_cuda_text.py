"""Programs as they are written for NVIDIA GPUs, which need no GPU: the routines that they call are those of jax."""

import re

import jax
import numpy as np
import pytest

import phlox
from judge import array, rng
from phlox._xla import callbacks, cuda_calls, forms, lapack
from phlox._xla.analysis import portable


@pytest.fixture
def for_cuda(monkeypatch):
    """Lowering rules see a GPU, and routines of the plugin need not be there."""
    for module in (callbacks, cuda_calls, lapack):
        monkeypatch.setattr(module, "platform_of", lambda f: "cuda")
    monkeypatch.setattr(forms, "cpu_only", lambda f: False)
    monkeypatch.setattr(cuda_calls, "_load_hybrid", lambda: None)


def random(*shape, dtype="float32"):
    return array(rng("cuda", shape, dtype), shape, dtype)


SQUARE, TALL, STACK = random(5, 5), random(6, 4), random(2, 4, 40)
COMPLEX, LARGE = random(3, 3, dtype="complex64"), random(2, 1100)
DIAGONAL, ROWS = random(9), random(9, 2)

FUNCTIONS = {
    "cholesky": (lambda m, x: m.numpy.linalg.cholesky(x), SQUARE),
    "lu": (lambda m, x: m.lax.linalg.lu(x), STACK),
    "solve": (lambda m, x: m.numpy.linalg.solve(x, x), COMPLEX),
    "triangular solve": (lambda m, x: m.scipy.linalg.solve_triangular(x, x), SQUARE),
    "qr": (lambda m, x: m.numpy.linalg.qr(x), TALL),
    "qr complete": (lambda m, x: m.numpy.linalg.qr(x, "complete"), TALL),
    "qr with pivots": (lambda m, x: m.scipy.linalg.qr(x, pivoting=True), TALL),
    "eigh": (lambda m, x: m.lax.linalg.eigh(x, symmetrize_input=False), COMPLEX),
    "svd": (lambda m, x: m.lax.linalg.svd(x, full_matrices=False), TALL),
    "svd of wide matrices": (lambda m, x: m.lax.linalg.svd(x, full_matrices=False), STACK),
    "svd, full": (lambda m, x: m.lax.linalg.svd(x, full_matrices=True), TALL),
    "svd, values": (lambda m, x: m.lax.linalg.svd(x, compute_uv=False), TALL),
    "svd, large": (lambda m, x: m.lax.linalg.svd(x, full_matrices=False), LARGE),
    "svd, QR": (lambda m, x: m.lax.linalg.svd(x, algorithm=m.lax.linalg.SvdAlgorithm.QR), TALL),
    "svd, QR, values": (
        lambda m, x: m.lax.linalg.svd(x, compute_uv=False, algorithm=m.lax.linalg.SvdAlgorithm.QR),
        STACK,
    ),
    "svd, polar": (lambda m, x: m.lax.linalg.svd(x, algorithm=m.lax.linalg.SvdAlgorithm.POLAR), COMPLEX),
    "tridiagonal": (lambda m, x: m.lax.linalg.tridiagonal(x), SQUARE),
    "tridiagonal solve": (lambda m, x: m.lax.linalg.tridiagonal_solve(x, x, x, ROWS), DIAGONAL),
}


def calls(text):
    """The targets of custom calls with their attributes."""
    found = re.findall(r"custom_call @(\w+)\(.*?mhlo.backend_config = (\{[^}]*\})", text)
    return sorted((target, sorted(re.split(r", ?", config.strip("{}")))) for target, config in found)


@pytest.mark.whole
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_routines_are_those_of_jax(name, for_cuda):
    f, x = FUNCTIONS[name]
    mine = phlox.jit(lambda x: f(phlox, x)).lower(x).as_text()
    theirs = jax.jit(lambda x: f(jax, x)).trace(x).lower(lowering_platforms=("cuda",)).as_text()
    assert calls(mine) == calls(theirs)
    portable(mine)  # raises if the text is no valid module


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_eigenvectors_of_general_matrices_are_computed_by_a_hybrid_routine(dtype, for_cuda):
    """jax calls cuSOLVER where it is new enough, which only a machine with a GPU tells."""
    text = phlox.jit(phlox.numpy.linalg.eig).lower(random(4, 4, dtype=dtype)).as_text()
    ((target, attributes),) = calls(text)
    assert target == ("cuhybrid_eig_real" if dtype == "float32" else "cuhybrid_eig_comp")
    assert attributes == ["left = false", 'magma = "auto"', "right = true"]
    portable(text)


def test_callbacks_have_the_target_for_gpus(for_cuda):
    like = phlox.ShapeDtypeStruct((5, 5), np.float32)
    text = phlox.jit(lambda x: phlox.pure_callback(np.sin, like, x)).lower(SQUARE).as_text()
    assert [target for target, _ in calls(text)] == ["xla_ffi_python_gpu_callback"]


@pytest.mark.parametrize("size", [1, 2])
def test_small_tridiagonal_systems_are_extended_to_three_equations(size, for_cuda):
    d = random(size)
    text = phlox.jit(lambda d: phlox.lax.linalg.tridiagonal_solve(d, d, d, d[:, None])).lower(d).as_text()
    assert [target for target, _ in calls(text)] == ["cusparse_gtsv2_ffi"]
    assert "tensor<3x1xf32>" in text


def test_sorts_have_the_comparison_of_jax(for_cuda):
    """XLA recognizes it, and calls a radix sort."""
    x = random(10)
    texts = [
        phlox.jit(phlox.numpy.sort).lower(x).as_text(),
        jax.jit(jax.numpy.sort).trace(x).lower(lowering_platforms=("cuda",)).as_text(),
    ]
    tests = [re.findall(r"stablehlo.compare NE, (%\w+), (%\w+),", text) for text in texts]
    for pairs, text in zip(tests, texts, strict=True):
        arguments = re.search(r"\^bb0\((%\w+): tensor<f32>, (%\w+): tensor<f32>\)", text).groups()
        assert [first for first, _ in pairs] == list(arguments)


def test_routines_that_only_lapack_has_are_refused(for_cuda):
    with pytest.raises(phlox.errors.UnsupportedError, match="there for CPUs only") as raised:
        phlox.jit(lambda x: phlox.scipy.linalg.schur(x)).lower(SQUARE)
    assert "device_put" in str(raised.value)
