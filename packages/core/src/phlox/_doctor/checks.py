"""Small computations on each device, compared with NumPy: they go through all layers, from tracing to the result.

Each is a row of a table: the function of phlox, its inputs, what NumPy gives for them, and how far they may differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import phlox
import phlox.numpy as jnp
from phlox import lax, random

#: calls that are timed after the first; the fastest is reported
_REPEATS = 3
#: The user's settings may refuse what the checks do, which says nothing about the device.
_SETTINGS = {
    "checks": "off",
    "no_execution": False,
    "no_tracing": False,
    "numpy_dtype_promotion": "standard",
    "numpy_rank_promotion": "allow",
    "transfer_guard": "allow",
}


class Check(NamedTuple):
    """A computation. `tolerance` bounds the largest difference, in proportion to the largest number of a result."""

    name: str
    function: Callable[..., Any]
    inputs: tuple[np.ndarray, ...]
    expected: tuple[np.ndarray, ...]
    tolerance: float


def rows(devices: Sequence[Any]) -> list[dict[str, Any]]:
    """The results of all checks on each of these devices of one platform, and of the sum over all of them."""
    checks = _checks()
    with phlox.config.scope(**_SETTINGS):
        results = [_row(check, str(device), _on(device), {device}) for device in devices for check in checks]
        return [*results, _sum_over(devices)]


def _on(device: Any) -> Callable[..., Any]:
    return lambda function, inputs: (phlox.jit(function), [phlox.device_put(value, device) for value in inputs])


def _sum_over(devices: Sequence[Any]) -> dict[str, Any]:
    values = np.random.default_rng(1).normal(size=(len(devices), 1000)).astype(np.float32)
    total = values.sum(0, dtype=np.float64).astype(np.float32)
    check = Check("psum", lambda x: (lax.psum(x, "i"),), (values,), (np.tile(total, (len(devices), 1)),), 1e-5)
    where = str(devices[0]) if len(devices) == 1 else f"all {len(devices)}"

    def prepare(function: Callable[..., Any], inputs: Sequence[np.ndarray]) -> tuple[Any, Any]:
        return phlox.pmap(function, axis_name="i", devices=devices), inputs

    return _row(check, where, prepare, set(devices))


def _row(check: Check, where: str, prepare: Callable[..., Any], devices: set[Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"name": check.name, "device": where, "ok": False, "error": None}
    row |= {"difference": None, "tolerance": check.tolerance, "first_seconds": None, "seconds": None}
    try:
        function, inputs = prepare(check.function, check.inputs)
        times = []
        # The first run compiles.
        for _ in range(1 + _REPEATS):
            start = time.perf_counter()
            results = phlox.block_until_ready(function(*inputs))
            times.append(time.perf_counter() - start)
        result_devices = {device for result in results for device in result.devices()}
        # A result on another device would hide a device that does not work.
        if result_devices != devices:
            raise RuntimeError(f"the result is on {sorted(map(str, result_devices))}")
        got = [np.asarray(result) for result in results]
        row["difference"] = max(_difference(*pair) for pair in zip(got, check.expected, strict=True))
    except Exception as error:  # whatever fails is what the report is for
        row["error"] = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        return row
    row |= {"first_seconds": times[0], "seconds": min(times[1:])}
    row["ok"] = row["difference"] <= check.tolerance
    return row


def _difference(got: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, in proportion to the largest number that is expected."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        expected_type = f"{expected.dtype}{list(expected.shape)}"
        raise RuntimeError(f"the result is {got.dtype}{list(got.shape)}, not {expected_type}")
    if not np.isfinite(got).all():
        raise RuntimeError("the result has a nan or an infinity")
    wide = np.complex128 if np.iscomplexobj(expected) else np.float64
    # One scale for all elements, as small ones among large ones are less exact.
    return float(np.abs(got.astype(wide) - expected.astype(wide)).max() / np.abs(expected.astype(wide)).max())


def _checks() -> list[Check]:
    """All checks of one device. Results are computed in NumPy's 64 bits and rounded, or exactly."""
    draw = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return draw.normal(size=shape).astype(np.float32)

    a, b = normal(256, 256), normal(256, 256)
    image, kernel = normal(2, 3, 32, 32), normal(4, 3, 5, 5)
    windows = np.lib.stride_tricks.sliding_window_view(image.astype(np.float64), (5, 5), axis=(2, 3))
    signal = (normal(1000) + 1j * normal(1000)).astype(np.complex64)
    half = normal(64, 64)
    # Symmetric, and positive definite by the added diagonal.
    positive = half @ half.T + 64 * np.eye(64, dtype=np.float32)
    tall, unsorted, steps = normal(64, 32), normal(10_000), normal(1000)
    sums, largest = np.cumsum(unsorted, dtype=np.float64), np.asarray(unsorted.argmax(), np.int32)
    return [
        Check("matmul", _matmul, (a, b), _single(a.astype(np.float64) @ b), 1e-5),
        Check("conv", _conv, (image, kernel), _single(np.einsum("nchwij,ocij->nohw", windows, kernel)), 1e-5),
        Check("fft", lambda x: (jnp.fft.fft(x),), (signal,), (np.fft.fft(signal).astype(np.complex64),), 1e-5),
        Check("cholesky", _cholesky, (positive,), _single(np.linalg.cholesky(positive.astype(np.float64))), 1e-5),
        Check("svd", _svd, (tall,), _single(np.linalg.svd(tall.astype(np.float64), compute_uv=False), tall), 1e-5),
        Check("sort", lambda x: (jnp.sort(x),), (unsorted,), (np.sort(unsorted),), 0.0),
        Check(
            "extrema",
            _extrema,
            (unsorted,),
            (unsorted.max(), largest, *_single(sums)),
            1e-5,
        ),
        Check("selection", _selection, (unsorted,), _selected(unsorted), 0.0),
        Check("PRNG", _random_bits, (np.array([7, 42], np.uint32),), (_threefry_bits(7, 42, 1000),), 0.0),
        Check("scan", _scan, (steps,), _single(_recurrence(steps)), 1e-5),
    ]


def _single(*values: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(value.astype(np.float32) for value in values)


def _matmul(a: Any, b: Any) -> Any:
    return (jnp.matmul(a, b, precision="highest"),)  # GPUs round the factors otherwise


def _conv(image: Any, kernel: Any) -> Any:
    return (lax.conv_general_dilated(image, kernel, (1, 1), "VALID", precision="highest"),)


def _cholesky(x: Any) -> Any:
    return (jnp.linalg.cholesky(x),)


def _svd(x: Any) -> Any:
    """The singular values, and the product of the three factors: their signs may differ from NumPy's."""
    u, s, v = jnp.linalg.svd(x, full_matrices=False)
    return s, jnp.matmul(u * s, v, precision="highest")


def _extrema(x: Any) -> Any:
    """The maximum, its position and the running sums, which phlox-kernels computes where it is installed."""
    return jnp.max(x), jnp.argmax(x).astype("int32"), jnp.cumsum(x)


def _selection(x: Any) -> Any:
    """Positions of the largest and of the positive elements, and a histogram, by kernels where they are installed."""
    positions = (jnp.nonzero(x > 0, size=100)[0], jnp.bincount(jnp.abs(x).astype("int32"), length=4))
    return lax.top_k(x, 10)[1], *(part.astype("int32") for part in positions)


def _selected(x: np.ndarray) -> tuple[np.ndarray, ...]:
    positions = np.argsort(-x, kind="stable")[:10], np.flatnonzero(x > 0)[:100]
    counts = np.bincount(np.abs(x).astype(int))[:4]
    return tuple(part.astype(np.int32) for part in (*positions, counts))


def _scan(xs: Any) -> Any:
    def step(carry: Any, x: Any) -> Any:
        carry = carry * jnp.float32(0.5) + x
        return carry, carry

    return (lax.scan(step, jnp.float32(0), xs)[1],)


def _recurrence(xs: np.ndarray) -> np.ndarray:
    carry, states = 0.0, []
    for x in xs.tolist():
        carry = carry * 0.5 + x
        states.append(carry)
    return np.array(states)


def _random_bits(data: Any) -> Any:
    return (random.bits(random.wrap_key_data(data, impl="threefry2x32"), (1000,), "uint32"),)


#: by how many bits each round of Threefry rotates its second word: four rounds, then the next four, in turns
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def _threefry_bits(first: int, second: int, count: int) -> np.ndarray:
    """`count` random words of the key of these two words: number i is the exclusive or of the encrypted words of i."""
    # The constant of Skein, from which Threefry's third key word is made.
    keys = np.array([first, second, first ^ second ^ 0x1BD11BDA], np.uint32)
    left, right = np.full(count, keys[0]), np.arange(count, dtype=np.uint32) + keys[1]
    # Five blocks of four rounds: Threefry's standard number for two words.
    for block in range(5):
        for rotation in _ROTATIONS[block % 2]:
            left = left + right
            right = left ^ (right << np.uint32(rotation) | right >> np.uint32(32 - rotation))
        left = left + keys[(block + 1) % 3]
        right = right + keys[(block + 2) % 3] + np.uint32(block + 1)
    return left ^ right
