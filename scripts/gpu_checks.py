"""Compares the GPU with the CPU in one process: python scripts/gpu_checks.py devices | agreement | primitives.

Each prints a JSON object a line: the name of the check, whether it holds (null for a figure), and a detail. Results of
the CPU are those that the tests compare with NumPy and jax.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import phlox
import phlox.numpy as jnp
from phlox import lax, random

#: least number of seconds that a transfer is repeated
_SECONDS = 0.2


def tell(name: str, ok: bool | None, detail: Any = "") -> None:
    """Prints one finding."""
    print(json.dumps({"name": name, "ok": ok, "detail": detail}, default=str), flush=True)


def attempt(name: str, check: Callable[[], Any]) -> None:
    """Runs `check`, which returns a detail, or raises what is wrong."""
    try:
        detail = check()
    except Exception as error:  # whatever fails is what the report is for
        tell(name, False, f"{type(error).__name__}: {' | '.join(str(error).split(chr(10)))[:600]}")
    else:
        tell(name, True, detail)


# --- devices, transfers, memory -------------------------------------------------------------------------


def devices() -> None:
    """Devices, bandwidth of transfers, and figures of memory."""
    gpu, cpu = phlox.devices("gpu")[0], phlox.devices("cpu")[0]
    tell("device", None, f"{gpu.device_kind}, {len(phlox.devices('gpu'))} of them; default {phlox.devices()[0]}")
    attempt("memory_stats", lambda: {k: gpu.memory_stats()[k] for k in ("bytes_in_use", "bytes_limit")})
    attempt("memory kinds", lambda: sorted(memory.kind for memory in gpu.addressable_memories()))
    for size in (8, 256 * 2**20):
        host = np.ones(size // 4, np.float32)
        there, on_cpu = phlox.device_put(host, gpu), phlox.device_put(host, cpu)
        rows = {
            "NumPy to GPU": lambda host=host: phlox.device_put(host, gpu),
            "CPU to GPU": lambda x=on_cpu: phlox.device_put(x, gpu),
            "GPU to GPU, copied": lambda x=there: phlox.jit(jnp.copy)(x),
        }
        for name, move in rows.items():
            tell(f"{name}, {size} bytes", None, _rate(lambda move=move: move().block_until_ready(), size))
        tell(f"GPU to NumPy, {size} bytes", None, _rate(lambda x=there: np.asarray(x + 0), size))
    attempt("values survive transfers", _round_trip)
    attempt("pinned host memory", _pinned)
    attempt("memory_analysis", _analysis)
    attempt("out of memory is an error that says what", _out_of_memory)
    attempt("live_memory", lambda: [group.type for group in phlox.debug.live_memory()][:3])
    attempt("a donated array gives its memory", _donation)


def _rate(move: Callable[[], Any], size: int) -> str:
    move()
    count, start = 0, time.perf_counter()
    while time.perf_counter() < start + _SECONDS:
        move()
        count += 1
    seconds = (time.perf_counter() - start) / count
    return f"{seconds * 1e6:.1f} us, {size / seconds / 1e9:.2f} GB/s"


def _round_trip() -> str:
    gpu, cpu = phlox.devices("gpu")[0], phlox.devices("cpu")[0]
    for dtype in ("bool", "int8", "uint32", "int4", "float16", "bfloat16", "float8_e4m3fn", "float32", "complex64"):
        x = phlox.device_put(jnp.arange(24, dtype=jnp.float32).reshape(4, 6).astype(dtype), cpu)
        back = phlox.device_put(phlox.device_put(x, gpu), cpu)
        np.testing.assert_array_equal(np.asarray(back), np.asarray(x), err_msg=dtype)
        np.testing.assert_array_equal(np.asarray(phlox.device_put(x, gpu)), np.asarray(x), err_msg=dtype)
    return "9 dtypes"


def _pinned() -> str:
    gpu = phlox.devices("gpu")[0]
    sharding = phlox.sharding.SingleDeviceSharding(gpu, memory_kind="pinned_host")
    x = phlox.device_put(jnp.arange(8.0), sharding)
    y = phlox.jit(lambda x: phlox.device_put(x, phlox.memory.Space.Device) + 1)(x)
    np.testing.assert_array_equal(np.asarray(y), np.arange(8.0) + 1)
    return str(x.sharding)


def _analysis() -> str:
    program = phlox.jit(lambda x: jnp.sort(x @ x.T)).lower(jnp.ones((1000, 1000))).compile()
    sizes = program.memory_analysis()
    assert sizes.argument_size_in_bytes == sizes.output_size_in_bytes == 4_000_000
    return f"temporary {sizes.temp_size_in_bytes}, flops {program.cost_analysis().get('flops')}"


def _out_of_memory() -> str:
    limit = phlox.devices("gpu")[0].memory_stats()["bytes_limit"]
    try:
        phlox.block_until_ready(jnp.zeros((limit // 4, 8), jnp.float32) + 1)
    except phlox.errors.OutOfMemoryError as error:
        assert float(jnp.ones(3).sum()) == 3
        return str(error).splitlines()[0]
    raise AssertionError("an array of eight times the memory was made")


def _donation() -> str:
    x = jnp.ones(1_000_000)
    y = phlox.jit(lambda x: x * 2, donate_argnums=0)(x)
    assert x.is_deleted()
    assert float(y[0]) == 2
    return ""


# --- functions of the array language --------------------------------------------------------------------


def on(device: Any, tree: Any) -> Any:
    """The arrays of a tree on a device; other leaves as they are."""
    return phlox.tree.map(
        lambda x: phlox.device_put(x, device) if isinstance(x, (np.ndarray, phlox.Array)) else x, tree
    )


def difference(mine: Any, other: Any) -> float:
    """The largest difference of two results, in proportion to the largest number; 0 means equal bits or both nan."""
    mine, other = np.asarray(mine), np.asarray(other)
    if (mine.shape, mine.dtype) != (other.shape, other.dtype):
        raise AssertionError(f"{mine.dtype}{mine.shape} on the GPU, {other.dtype}{other.shape} on the CPU")
    if not mine.size:
        return 0.0
    wide = np.complex128 if mine.dtype.kind == "c" else np.float64
    a, b = mine.astype(wide), other.astype(wide)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return 0.0
    if (np.isfinite(a) != np.isfinite(b)).any():
        return np.inf
    finite = np.isfinite(b)
    return float(np.abs(a - b)[finite & ~same].max() / max(np.abs(b[finite]).max(), 1e-30))


def compare(name: str, function: Callable[..., Any], inputs: Sequence[Any], tolerance: float) -> None:
    """One finding: whether the jitted function gives the same on both platforms."""

    def check() -> str:
        results = []
        for platform in ("gpu", "cpu"):
            device = phlox.devices(platform)[0]
            out = phlox.jit(function)(*on(device, tuple(inputs)))
            leaves = phlox.tree.leaves(out)
            assert all(leaf.devices() == {device} for leaf in leaves), f"a result is not on {device}"
            results.append([np.asarray(leaf) for leaf in leaves])
        worst = max(difference(*pair) for pair in zip(*results, strict=True))
        assert worst <= tolerance, f"differ by {worst:.2e} of the largest number, allowed is {tolerance:.0e}"
        return f"{worst:.1e}"

    attempt(name, check)


def agreement() -> None:
    """Functions whose algorithms differ by platform: results, or what does not depend on the algorithm's choice."""
    phlox.config.update("default_matmul_precision", "highest")
    draw = np.random.default_rng(0)
    for row in (_random_rows(), _order_rows(draw), _control_rows(draw), _fourier_rows(draw), _linalg_rows(draw)):
        for name, function, inputs, tolerance in row:
            compare(name, function, inputs, tolerance)
    for name, function, inputs, tolerance in _network_rows(draw):
        compare(name, function, inputs, tolerance)
    attempt("callbacks", _callbacks)


Row = tuple[str, Callable[..., Any], tuple[Any, ...], float]


def _random_rows() -> Iterator[Row]:
    """Random bits: equal to the last one. Distributions that call transcendental functions differ by rounding."""
    exact = {
        "bits": lambda k: random.bits(k, (1000,)),
        "bits of 8": lambda k: random.bits(k, (1000,), "uint8"),
        "split": lambda k: random.key_data(random.split(k, 5)),
        "fold_in": lambda k: random.key_data(random.fold_in(k, 7)),
        "uniform": lambda k: random.uniform(k, (1000,)),
        "randint": lambda k: random.randint(k, (1000,), -5, 1000),
        "permutation": lambda k: random.permutation(k, 1000),
        "bernoulli": lambda k: random.bernoulli(k, 0.3, (1000,)),
        "choice": lambda k: random.choice(k, 100, (50,), replace=False),
        "rademacher": lambda k: random.rademacher(k, (100,)),
    }
    rounded = {
        "normal": lambda k: random.normal(k, (1000,)),
        "gumbel": lambda k: random.gumbel(k, (1000,)),
        "exponential": lambda k: random.exponential(k, (1000,)),
        "gamma": lambda k: random.gamma(k, 2.5, (200,)),
        "dirichlet": lambda k: random.dirichlet(k, jnp.ones(5), (20,)),
        "truncated_normal": lambda k: random.truncated_normal(k, -1.0, 2.0, (1000,)),
    }
    key = np.array([7, 42], np.uint32)
    for functions, tolerance in ((exact, 0.0), (rounded, 1e-5)):
        for name, f in functions.items():
            yield f"random.{name}", lambda data, f=f: f(random.wrap_key_data(data)), (key,), tolerance


def _order_rows(draw: Any) -> Iterator[Row]:
    x, n = draw.normal(size=(50, 300)).astype(np.float32), draw.integers(0, 20, 1000).astype(np.int32)
    yield "sort", lambda x: jnp.sort(x, 1), (x,), 0.0
    yield "argsort, stable", lambda n: jnp.argsort(n, stable=True), (n,), 0.0
    yield "lexsort", lambda n: jnp.lexsort((n[::2], n[1::2])), (n,), 0.0
    yield "top_k", lambda x: lax.top_k(x, 7), (x,), 0.0
    yield "unique", lambda n: jnp.unique(n, size=20, return_counts=True), (n,), 0.0
    yield "searchsorted", lambda x: jnp.searchsorted(jnp.sort(x[0]), x[1]), (x,), 0.0
    yield "nonzero", lambda n: jnp.nonzero(n > 10, size=400), (n,), 0.0
    yield "argmax", lambda x: jnp.argmax(x, 1), (x,), 0.0
    yield "median", lambda x: jnp.median(x, 1), (x,), 1e-6
    yield "bincount", lambda n: jnp.bincount(n, length=20), (n,), 0.0


def _control_rows(draw: Any) -> Iterator[Row]:
    x = draw.normal(size=(100, 8)).astype(np.float32)
    yield "scan", lambda x: lax.scan(lambda c, v: (0.5 * c + v, c), x[0], x), (x,), 1e-5
    yield "while_loop", lambda x: lax.while_loop(lambda v: v[0] < 100, lambda v: v * 1.5 + 1, x[0]), (x,), 1e-5
    yield "cond", lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x), (x,), 1e-5
    yield "cumsum", lambda x: jnp.cumsum(x, 0), (x,), 1e-5
    yield "cumprod", lambda x: jnp.cumprod(1 + 0.01 * x, 0), (x,), 1e-5
    yield "associative_scan", lambda x: lax.associative_scan(jnp.maximum, x), (x,), 0.0
    yield "scatter", lambda x: x.at[jnp.array([1, 1, 5])].add(1.0), (x,), 1e-6
    yield "segment_sum", lambda x: phlox.ops.segment_sum(x, jnp.arange(100) % 7, 7), (x,), 1e-5
    yield (
        "gradient of scan",
        phlox.grad(lambda x: lax.scan(lambda c, v: (jnp.tanh(c + v), c), x[0], x)[0].sum()),
        (x,),
        1e-5,
    )


def _fourier_rows(draw: Any) -> Iterator[Row]:
    z = (draw.normal(size=(3, 100)) + 1j * draw.normal(size=(3, 100))).astype(np.complex64)
    x = draw.normal(size=(4, 6, 100)).astype(np.float32)
    yield "fft", jnp.fft.fft, (z,), 1e-5
    yield "ifft", jnp.fft.ifft, (z,), 1e-5
    yield "rfft", jnp.fft.rfft, (x,), 1e-5
    yield "irfft", jnp.fft.irfft, (z,), 1e-5
    yield "fft2", jnp.fft.fft2, (x,), 1e-5
    yield "fftn", jnp.fft.fftn, (x,), 1e-5
    yield "rfftn", jnp.fft.rfftn, (x,), 1e-5


def _linalg_rows(draw: Any) -> Iterator[Row]:
    la, sla = jnp.linalg, phlox.scipy.linalg

    def matrix(*shape: int, complex_: bool = False) -> Any:
        x = draw.normal(size=shape).astype(np.float32)
        return (x + 1j * draw.normal(size=shape)).astype(np.complex64) if complex_ else x

    def svd(x: Any, full: bool = False, **options: Any) -> Any:
        u, s, vh = lax.linalg.svd(x, full_matrices=full, **options)
        k = s.shape[-1]
        unit = jnp.swapaxes(u, -1, -2).conj() @ u, vh @ jnp.swapaxes(vh, -1, -2).conj()
        return s, (u[..., :k] * s[..., None, :]) @ vh[..., :k, :], unit

    def eigh(x: Any) -> Any:
        x = x + jnp.swapaxes(x, -1, -2).conj()
        w, v = la.eigh(x)
        return w, (v * w[..., None, :]) @ jnp.swapaxes(v, -1, -2).conj()

    def qr(x: Any, mode: str = "reduced") -> Any:
        q, r = la.qr(x, mode)
        return jnp.abs(r), q @ r

    def lu(x: Any) -> Any:  # libraries choose pivots of complex numbers by different sizes
        factors, _, order = lax.linalg.lu(x)
        lower, upper = jnp.tril(factors, -1) + jnp.eye(x.shape[-1]), jnp.triu(factors)
        return jnp.take_along_axis(lower @ upper, jnp.argsort(order)[..., None], -2)

    def positive(x: Any) -> Any:
        return x @ jnp.swapaxes(x, -1, -2).conj() + 5 * jnp.eye(x.shape[-1])

    for complex_ in (False, True):
        word = " of complex numbers" if complex_ else ""
        square, stack = matrix(12, 12, complex_=complex_), matrix(3, 5, 5, complex_=complex_)
        tall, wide = matrix(20, 6, complex_=complex_), matrix(2, 6, 20, complex_=complex_)
        large = matrix(60, 40, complex_=complex_)
        yield f"cholesky{word}", lambda x: la.cholesky(positive(x)), (stack,), 1e-5
        yield f"lu{word}", lambda x: lu(x), (stack,), 1e-4
        yield f"solve{word}", lambda x: la.solve(positive(x), x), (stack,), 1e-4
        yield f"inv, det{word}", lambda x: (la.inv(positive(x)), la.det(x), la.slogdet(x)), (square,), 1e-3
        for name, x in (("square", square), ("stack", stack), ("tall", tall), ("wide", wide), ("large", large)):
            yield f"svd {name}{word}", svd, (x,), 1e-4
            yield f"svd {name}, full{word}", lambda x: svd(x, True)[:2], (x,), 1e-4
            yield f"svd {name}, values{word}", lambda x: la.svd(x, compute_uv=False), (x,), 1e-4
            yield f"svd {name}, QR{word}", lambda x: svd(x, algorithm=lax.linalg.SvdAlgorithm.QR), (x,), 1e-4
            yield f"qr {name}{word}", qr, (x,), 1e-4
            yield f"pinv {name}{word}", la.pinv, (x,), 1e-3
        yield f"qr complete{word}", lambda x: qr(x, "complete"), (tall,), 1e-4
        yield f"qr with pivoting{word}", lambda x: sla.qr(x, pivoting=True)[2], (square,), 0.0
        yield f"eigh{word}", eigh, (stack,), 1e-4
        yield f"eigvals{word}", lambda x: jnp.sort(jnp.abs(la.eigvals(x))), (square,), 1e-3
        yield f"eig{word}", lambda x: _residual(x, *la.eig(x)), (square,), 1.0
        yield f"triangular{word}", lambda x: sla.solve_triangular(positive(x), x, trans=2, lower=True), (stack,), 1e-4
        yield f"expm{word}", lambda x: sla.expm(0.1 * x), (square,), 1e-4
        yield f"tridiagonal{word}", lambda x: lax.linalg.tridiagonal(positive(x))[1:3], (square,), 1e-3
        for n in (1, 2, 3, 9):
            diagonals = [matrix(n, complex_=complex_) for _ in range(3)]
            right = matrix(n, 2, complex_=complex_)
            inputs = (diagonals[0], diagonals[1] + 4, diagonals[2], right)
            yield f"tridiagonal_solve of {n}{word}", lax.linalg.tridiagonal_solve, inputs, 1e-4
    gradients = {
        "cholesky": lambda x: la.cholesky(positive(x)).sum(),
        "svd": lambda x: (la.svd(x, compute_uv=False) ** 3).sum(),
        "eigh": lambda x: (la.eigh(x + x.T)[0] ** 2).sum(),
        "qr": lambda x: jnp.abs(la.qr(x)[1]).sum(),
        "solve": lambda x: la.solve(positive(x), x).sum(),
        "det": la.det,
    }
    for name, f in gradients.items():
        yield f"gradient of {name}", phlox.grad(f), (matrix(6, 6),), 1e-3


def _residual(x: Any, w: Any, v: Any) -> Any:
    """0 if all columns of `v` are eigenvectors, in units of the allowed error."""
    error = jnp.abs(x.astype(v.dtype) @ v - v * w).max() / jnp.abs(x).max()
    return jnp.floor(error / 1e-4)


def _network_rows(draw: Any) -> Iterator[Row]:
    image, kernel = draw.normal(size=(2, 8, 8, 4)).astype(np.float32), draw.normal(size=(3, 3, 4, 6)).astype(np.float32)
    numbers = ("NHWC", "HWIO", "NHWC")

    def conv(x: Any, w: Any, **options: Any) -> Any:
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers, **options)

    depthwise = draw.normal(size=(3, 3, 1, 8)).astype(np.float32)
    yield "conv", conv, (image, kernel), 1e-4
    yield "gradient of conv", phlox.grad(lambda x, w: (conv(x, w) ** 2).sum(), (0, 1)), (image, kernel), 1e-4
    yield "depthwise conv", lambda x, w: conv(x, w, feature_group_count=4), (image, depthwise), 1e-4
    yield (
        "max_pool",
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        (image,),
        0.0,
    )
    a = draw.normal(size=(64, 64))
    for dtype, tolerance in (("float32", 1e-5), ("float16", 4e-3), ("bfloat16", 3e-2), ("int8", 0.0)):
        x = (10 * a).astype(np.int8) if dtype == "int8" else a.astype(jnp.dtype(dtype))
        yield f"matmul {dtype}", jnp.matmul, (x, x), tolerance
    queries = draw.normal(size=(2, 16, 4, 8)).astype(np.float32)
    yield "attention", lambda q: phlox.nn.dot_product_attention(q, q, q, is_causal=True), (queries,), 1e-4


def _callbacks() -> str:
    gpu, seen = phlox.devices("gpu")[0], []
    x = phlox.device_put(jnp.arange(4.0), gpu)
    like = phlox.ShapeDtypeStruct((4,), np.float32)
    y = phlox.jit(lambda x: phlox.pure_callback(lambda v: np.asarray(v) * 2, like, x))(x)
    np.testing.assert_array_equal(np.asarray(y), 2 * np.arange(4.0))
    phlox.jit(lambda x: phlox.debug.callback(lambda v: seen.append(float(v)), x.sum()))(x)
    phlox.effects_barrier()
    assert seen == [6.0], seen
    return "pure_callback, debug.callback"


#: Examples that the GPU cannot share with the CPU, and why.
_APART = {
    "hessenberg": "a routine of LAPACK only, as in jax",
    "schur": "a routine of LAPACK only, as in jax",
    "platform_index": "its value says the platform",
    "rng_uniform": "its bits are the platform's own",
    "shard_map": "the mesh of the example holds a GPU",
}


# --- primitives -----------------------------------------------------------------------------------------


def primitives(share: str) -> None:
    """All examples of the registry, in 64 bits: values, and derivatives along a random direction."""
    import registry_examples  # of the tests of core
    from phlox._ir.primitive import primitive
    from phlox._ops import all_primitives

    all_primitives()  # some are stated by modules that are not imported yet

    number, count = map(int, share.split("/"))
    with phlox.enable_x64(True), phlox.default_matmul_precision("highest"):
        names = sorted(registry_examples.examples())
        table = registry_examples.examples()
        for name in names[number::count]:
            for index, example in enumerate(table[name]):
                _check_example(f"{name}[{index}]", primitive(name), example)


def _check_example(name: str, primitive: Any, example: Any) -> None:
    if primitive.name in _APART:
        tell(name, None, f"left out: {_APART[primitive.name]}")
        return

    def apply(*args: Any) -> Any:
        return primitive.bind(*args, **example.params)

    # Vectors are determined up to a sign or a phase.
    prepare = np.abs if primitive.name in ("eigh", "eig", "svd") else np.asarray
    attempt(name, lambda: _on_both(apply, example.args, prepare))
    floats = [i for i, x in enumerate(example.args) if _is_float(x) and i not in example.fixed]
    # Of several updates of one element any may win, on a GPU in each run another one.
    repeats = primitive.name == "scatter" and not example.params["unique_indices"]
    # The derivative of custom_vjp is the user's, and goes backwards only.
    if primitive.jvp is not None and floats and primitive.name != "custom_vjp_call" and not repeats:
        attempt(f"derivative of {name}", lambda: _on_both(_derivative(apply, floats), example.args, prepare))


def _is_float(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind in "fc"


def _derivative(apply: Callable[..., Any], floats: Sequence[int]) -> Callable[..., Any]:
    def along(*args: Any) -> Any:
        def inner(*some: Any) -> Any:
            whole = list(args)
            for i, x in zip(floats, some, strict=True):
                whole[i] = x
            return apply(*whole)

        primals = tuple(args[i] for i in floats)
        return phlox.jvp(
            inner, primals, tuple(jnp.cos(1.0 + jnp.arange(x.size).reshape(x.shape)).astype(x.dtype) for x in primals)
        )[1]

    return along


def _on_both(apply: Callable[..., Any], args: Sequence[Any], prepare: Callable[[Any], Any]) -> str:
    results = []
    for platform in ("gpu", "cpu"):
        device = phlox.devices(platform)[0]
        with phlox.default_device(device):
            leaves = phlox.tree.leaves(apply(*on(device, tuple(args))))
        results.append([prepare(_numbers(leaf)) for leaf in leaves])
    worst = max([0.0, *(difference(*pair) for pair in zip(*results, strict=True))])
    assert worst <= 1e-8, f"differ by {worst:.2e} of the largest number"
    return f"{worst:.1e}"


def _numbers(leaf: Any) -> Any:
    if hasattr(leaf, "dtype") and phlox.dtypes.issubdtype(leaf.dtype, phlox.dtypes.prng_key):
        leaf = random.key_data(leaf)
    if getattr(leaf, "dtype", None) == phlox.dtypes.float0:
        return np.zeros(np.shape(leaf))
    return np.asarray(leaf)


if __name__ == "__main__":
    {"devices": devices, "agreement": agreement, "primitives": primitives}[sys.argv[1]](*sys.argv[2:])
