"""phlox.scipy.signal beside jax's, and beside SciPy where jax's is another one."""

import jax
import jax.scipy.signal
import numpy as np
import pytest
import scipy.signal

import judge
import phlox
from conformance.harness import A, batches, call, gradients, row, rows, values, wide
from phlox.scipy import signal

SOME = ["float32", "complex64", "int32", "bool", "float16"]
WIDE = ["float32", "complex64", "int32"]
MODES = ("full", "same", "valid")
EVERY = [call(A(5), A(2), mode=mode) for mode in MODES] + [call(A(2), A(5), mode=mode) for mode in MODES]
MATRICES = [
    call(A(4, 5), A(2, 3)), call(A(4, 5), A(2, 2), "same"), call(A(4, 3), A(3, 3), "valid"), call(A(2, 2), A(3, 4), "same"),
    call(A(2, 2), A(3, 4), "valid"), call(A(2, 3), A(2, 3)),
]  # fmt: skip
WRONG = [call(A(3), A(3), "all"), call(A(3), A(2, 3)), call(A(2, 3), A(3, 2), "valid")]
SPECTRA = [
    call(A(12), nperseg=4), call(A(2, 9), 2.0, "hamming", 5, 2, 8), call(A(9, 2), nperseg=4, axis=0, detrend="linear"),
    call(A(11), window=[1.0, 2.0, 1.0], detrend=False, return_onesided=False),
]  # fmt: skip
PAIRS = [
    call(A(12), A(12), nperseg=4), call(A(2, 9), A(1, 7), 2.0, nperseg=5, noverlap=0), call(A(9), None, nperseg=4),
    call(A(12), A(12), nperseg=4, scaling="spectrum", average="median"),
]  # fmt: skip
WRONG_SPECTRA = [
    call(A(8), nperseg=0), call(A(8), nperseg=4, noverlap=4), call(A(8), nperseg=4, nfft=3), call(A(8), window=A(2, 2)),
    call(A(8), window=A(20)), call(A(8), window=A(3), nperseg=4), call(A(8), axis=2), call(A(8), detrend=3),
]  # fmt: skip

TABLE = [
    *rows("scipy.signal", "convolve correlate", *EVERY, call(A(2, 3, 2), A(1, 2, 2)), dtypes=SOME, tolerance=1e-4),
    *rows("scipy.signal", "convolve correlate", call(A(6), A(3), "same", method="fft"), call(A(3), A(3), method="x"),
        dtypes=WIDE, tolerance=1e-4),
    *rows("scipy.signal", "convolve correlate", *WRONG, call(A(0), A(3)), dtypes=["float32"], grad=False),
    row("scipy.signal.fftconvolve", *EVERY[:2], *MATRICES, call(A(3, 4), A(3, 2), axes=1), call(A(1, 4), A(3, 1)),
        call(A(2, 4, 3), A(2, 2, 3), "same", axes=(1,)), dtypes=WIDE, tolerance=1e-4),
    row("scipy.signal.fftconvolve", *WRONG, call([1.0], [2.0]), call(A(3, 4), A(2, 4), axes=1), call(A(3), A(3), axes=3), dtypes=["float32"],
        grad=False),
    *rows("scipy.signal", "convolve2d correlate2d", *MATRICES, dtypes=SOME, tolerance=1e-4),
    *rows("scipy.signal", "convolve2d correlate2d", call(A(3), A(3)), call(A(2, 3), A(2, 3), "all"),
        call(A(2, 3), A(2, 2), boundary="wrap"), call(A(2, 3), A(2, 2), fillvalue=1), dtypes=["float32"], grad=False),
    row("scipy.signal.detrend", call(A(2, 6)), call(A(6, 2), 0, "constant"), call(A(3, 7), bp=[2, 5]), call(A(2, 1)),
        call(A(6), type="quadratic"), call(A(6), bp=[9]), call(A(6), overwrite_data=True), dtypes=WIDE, tolerance=1e-4),
    row("scipy.signal.stft", *SPECTRA, *[call(A(10), nperseg=4, boundary=b) for b in ("even", "odd", "constant", None)],
        call(A(10), nperseg=4, padded=False), dtypes=WIDE, tolerance=1e-4),
    row("scipy.signal.welch", *SPECTRA, call(A(20), nperseg=4, average="median"), call(A(0)), call(A(10)), dtypes=WIDE,
        tolerance=1e-4),
    row("scipy.signal.csd", *PAIRS, call(A(3), A(2, 3)), call(A(2, 5), A(3, 5)), dtypes=WIDE, tolerance=1e-4),
    *rows("scipy.signal", "stft welch", *WRONG_SPECTRA, dtypes=["float32"], grad=False),
    row("scipy.signal.welch", call(A(8), scaling="x"), call(A(8), nperseg=4, average="x"), dtypes=["float32"], grad=False),
    row("scipy.signal.stft", call(A(8), nperseg=4, boundary="x"), dtypes=["float32"], grad=False),
    row("scipy.signal.istft", call(A(3, 5)), call(A(3, 5), 2.0, "hamming", 4, 1), call(A(5, 3), time_axis=0, freq_axis=1),
        call(A(4, 5), input_onesided=False), call(A(3, 4), boundary=False, nfft=6), call(A(3)), call(A(3, 5), nfft=2),
        call(A(3, 5), noverlap=4), call(A(3, 5), window=[1.0]), call(A(3, 5), time_axis=1, freq_axis=1),
        dtypes=["complex64", "float32"], tolerance=1e-4),
]  # fmt: skip

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_vmap = batches(TABLE)
test_64_bits = wide([r for r in TABLE if r.tolerance])


def signal_of(*shape, dtype="float64"):
    return judge.array(judge.rng("signal", shape), shape, dtype)


@pytest.mark.parametrize("mode", ["full", "same"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_neither_operand_is_the_larger(name, mode):
    """jax refuses; SciPy does not."""
    x, y = signal_of(2, 5, dtype="float32"), signal_of(4, 3, dtype="float32")
    judge.same_values(
        np.asarray(getattr(signal, name)(x, y, mode)), getattr(scipy.signal, name)(x, y, mode), tolerance=1e-5
    )


@pytest.mark.parametrize("lengths", [(1000, 37), (4099, 4099)])
def test_accuracy_of_convolutions(lengths):
    """Relative to the largest entry, as the spectra mix all."""
    x, y = (signal_of(n) for n in lengths)
    exact = scipy.signal.convolve(x, y, method="direct")
    scale = np.abs(exact).max()
    for dtype, bound in (("float32", 4 * np.finfo("float32").eps), ("float64", 16 * np.finfo("float64").eps)):
        with phlox.enable_x64(dtype == "float64"):
            found = np.asarray(signal.fftconvolve(x.astype(dtype), y.astype(dtype)), float)
        rounded = scipy.signal.convolve(x.astype(dtype).astype(float), y.astype(dtype).astype(float), method="direct")
        error = np.abs(found - rounded) / scale
        assert error.max() <= bound, f"{dtype}: {error.max()} at {error.argmax()} of {found.size}"


def test_spectra_are_those_of_scipy():
    with phlox.enable_x64(True):
        x, y = signal_of(3, 300), signal_of(3, 300)
        for options in ({"nperseg": 64}, {"nperseg": 50, "noverlap": 10, "nfft": 64, "detrend": "linear", "fs": 8.0}):
            for mine, exact in zip(signal.csd(x, y, **options), scipy.signal.csd(x, y, **options), strict=True):
                judge.same_values(np.asarray(mine), exact, tolerance=1e-13)
            for mine, exact in zip(signal.stft(x, **options), scipy.signal.stft(x, **options), strict=True):
                judge.same_values(np.asarray(mine), exact, tolerance=1e-13)


@pytest.mark.parametrize("axis", [0, -1])
def test_function_that_removes_trends(axis):
    """It finds the segments along the axis of the signal, as in SciPy's `stft`; jax gives it another one."""
    x = signal_of(40, 30, dtype="float32")
    for name in ("welch", "stft") if axis else ("stft",):
        options = {"axis": axis, "nperseg": 8}
        mine = getattr(signal, name)(x, detrend=lambda d: d - d.mean(axis, keepdims=True), **options)
        theirs = getattr(scipy.signal, name)(x, detrend=lambda d: d - d.mean(axis, keepdims=True), **options)
        for a, b in zip(mine, theirs, strict=True):
            judge.same_values(np.asarray(a), b.astype(np.asarray(a).dtype), tolerance=1e-5)


@pytest.mark.parametrize(
    "options", [{"nperseg": 5}, {"nperseg": 8, "noverlap": 6}, {"nperseg": 9, "nfft": 12}], ids=str
)
@pytest.mark.parametrize("shape", [(40,), (2, 40)])
def test_there_and_back(shape, options):
    """Odd segments too, which jax cannot invert."""
    x = signal_of(*shape, dtype="float32")
    spectra = signal.stft(x, 4.0, **options)[2]
    times, again = signal.istft(spectra, 4.0, **options)
    judge.same_values(np.asarray(again)[..., :40], x, tolerance=1e-5)
    judge.same_values(np.asarray(times), (np.arange(again.shape[-1]) / 4).astype("float32"))


def test_segments_that_share_nothing():
    """For jax, noverlap=0 means half a segment."""
    x = signal_of(32, dtype="float32")
    options = {"nperseg": 8, "noverlap": 0, "window": "boxcar"}
    again = signal.istft(signal.stft(x, **options)[2], **options)[1]
    judge.same_values(np.asarray(again), x, tolerance=1e-5)


def test_segments_without_points():
    """For jax, nperseg=0 means the default."""
    with pytest.raises(phlox.errors.OptionError, match="nperseg=0"):
        signal.istft(np.ones((3, 5), "complex64"), nperseg=0)


def test_narrow_floats():
    """Their transforms are computed in 32 bits, where jax refuses them."""
    x = signal_of(16, dtype="float16")
    for name in ("fftconvolve", "welch", "stft", "detrend"):
        run = lambda x, name=name: (
            getattr(signal, name)(x, x[:3]) if name == "fftconvolve" else getattr(signal, name)(x)
        )
        for mine, exact in zip(
            phlox.tree.leaves(run(x[:8])), phlox.tree.leaves(run(x[:8].astype("float32"))), strict=True
        ):
            judge.same_values(
                np.asarray(mine).astype("complex64"), np.asarray(exact).astype("complex64"), tolerance=2e-2
            )


def test_warnings():
    for m in (phlox, jax):
        with pytest.warns(UserWarning, match="nperseg"):
            m.scipy.signal.welch(signal_of(5, dtype="float32"), nperseg=8)
        with pytest.warns(UserWarning, match="complex"):
            m.scipy.signal.welch(signal_of(5, dtype="complex64"))
