"""phlox.image, phlox.ops (sums of segments) and attention: what is made of resampling, scattering and contraction."""

import jax
import jax.image
import jax.ops
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import A, B, batches, call, gradients, row, rows, second_derivatives, values, wide

METHODS = ["nearest", "linear", "cubic", "cubic-pytorch", "lanczos3", "lanczos5", "area"]
SOME = ["float32", "float16", "int32", "uint8"]

IDS = np.int32([0, 2, 1, 2, 0])
IMAGES = [
    *[row("image.resize", call(A(4, 6, 2), (7, 3, 2), method), call(A(5), (9,), method, antialias=False),
          call(A(6, 5), (3, 5), method, False), dtypes=SOME) for method in METHODS],
    row("image.resize", call(A(4), (4,), "linear"), call(A(2, 3), (4,), "linear"), call(A(3), (6,), "best"),
        call(A(3), (0,), "linear"), call(A(3), (6,), "cubic", precision="default"), dtypes=["float32"]),
    # Second derivatives of lanczos5 with respect to the scale agree in 64 bits; in 32 rounding hides them.
    *[row("image.scale_and_translate", call(A(5, 6), (7, 4), (0, 1), A(2, dtype="float32", low=0.5, high=1.5),
          A(2, dtype="float32", low=-1), method), dtypes=["float32"], tolerance=1e-4,
          twice=method != "lanczos5") for method in METHODS[1:]],
    row("image.scale_and_translate", call(A(5, 6), (7, 6), (-2,), np.float32([1.5]), np.float32([0.5]), "linear", False),
        call(A(5), (5,), (), np.float32([]), np.float32([]), "linear"), call(A(5), (4,), (0,), np.float32([0.5]),
        np.float32([0.0]), "nearest"), call(A(5), (4, 4), (0,), np.float32([0.5]), np.float32([0.0]), "cubic"),
        dtypes=["float32", "int32"]),
]  # fmt: skip

SEGMENTS = [
    *rows("ops", "segment_sum segment_max segment_min", call(A(5), IDS, 3), call(A(5, 2), IDS, num_segments=4),
        call(A(5), np.int32([0, -1, 7, 1, 1]), 3), call(A(5), np.int32([0, 0, 1, 2, 2]), 3, True),
        call(A(5), IDS, 3, bucket_size=2), call(A(5), IDS, -1),
        call(A(3), np.uint8([0, 1, 0]), 2), call(A(5, whole=True), IDS, 3), jit=False, vmap=False),
    *rows("ops", "segment_sum segment_max segment_min", call(A(5), IDS), call(A(5), np.int32([0, -1, 7, 1, 1]), 3,
        mode="clip"), jit=False, vmap=False, grad=False),
    row("ops.segment_prod", call(A(5), IDS, 3), call(A(5, 2), IDS, num_segments=4), call(A(5), IDS, 3, bucket_size=2),
        call(A(5), np.int32([3, 0, 1, 2, 4]), 5, unique_indices=True), jit=False, vmap=False, grad=False),
]  # fmt: skip

Q, K = A(2, 5, 4, 3), A(2, 6, 2, 3)
COUNTS = np.int32([3, 5])
ATTENTION = [
    row("nn.dot_product_attention", call(Q, K, K), call(Q, Q, Q, is_causal=True), call(Q, K, K, A(1, 4, 5, 6)),
        call(Q, K, K, None, B(2, 1, 5, 6)), call(Q, Q, Q, A(2, 1, 1, 5), B(1, 4, 5, 5), scale=0.3, is_causal=True),
        call(Q, K, K, query_seq_lengths=COUNTS), call(Q, K, K, key_value_seq_lengths=COUNTS),
        call(Q, K, K, query_seq_lengths=COUNTS, key_value_seq_lengths=COUNTS, return_residual=True),
        call(Q, Q, Q, local_window_size=1), call(Q, Q, Q, local_window_size=(2, 0), is_causal=True),
        call(A(5, 4, 3), A(6, 2, 3), A(6, 2, 3)), call(Q, K, K, implementation="xla", return_residual=True),
        dtypes=["float32", "bfloat16"], tolerance=2e-2, vmap=False),
    row("nn.dot_product_attention", call(Q, K, K), call(Q, Q, Q, is_causal=True, scale=0.7), dtypes=["float32"],
        twice=True),
    row("nn.dot_product_attention", call(Q, A(2, 6, 3, 3), A(2, 6, 3, 3)), call(Q, K, A(2, 5, 2, 3)),
        call(Q, K, A(2, 6, 2, 3, dtype="other")), call(Q, K, K, implementation="best"),
        call(Q, K, K, None, A(2, 1, 5, 6)), call(Q, K, K, query_seq_lengths=np.int32([1])), dtypes=["float32"],
        grad=False, vmap=False),
]  # fmt: skip

TABLE = IMAGES + SEGMENTS + ATTENTION

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_second_derivative = second_derivatives(TABLE)
test_vmap = batches(TABLE)
test_64_bits = wide(ATTENTION[1:2] + IMAGES[1:2])


@pytest.mark.parametrize(
    "word", [*METHODS, "bilinear", "trilinear", "triangle", "bicubic", "tricubic", "bicubic-pytorch"]
)
def test_methods(word):
    mine, theirs = phlox.image.ResizeMethod.from_string(word), jax.image.ResizeMethod.from_string(word)
    assert (mine.name, mine.value) == (theirs.name, theirs.value)
    x = judge.array(judge.rng(word), (4, 3), "float32")
    judge.agree(lambda m, x: m.image.resize(x, (6, 3), m.image.ResizeMethod.from_string(word)), x)


@pytest.mark.parametrize(
    ("shape", "axes", "scale", "shift"),
    [((4, 6), (0, 1), [1.0], [0.0, 0.0]), ((4, 6), (0,), [1.0], [0.0, 0.0]), ((4, 5), (0,), [1.0], [0.0])],
)
def test_axes_and_scales_of_other_numbers(shape, axes, scale, shift):
    image = np.ones((4, 6), np.float32)
    with pytest.raises(phlox.errors.ShapeError, match="scale_and_translate: "):
        phlox.image.scale_and_translate(image, shape, axes, np.float32(scale), np.float32(shift), "linear")


def test_images_without_pixels():
    empty = np.ones((0, 3), np.float32)
    assert phlox.image.resize(empty, (0, 5), "linear").shape == (0, 5)
    with pytest.raises(phlox.errors.ShapeError, match="no pixels"):
        phlox.image.resize(empty, (2, 3), "linear")


def test_segments_of_nothing():
    assert phlox.ops.segment_sum(np.ones((0, 2), np.float32), np.zeros(0, int)).shape == (0, 2)
    assert phlox.ops.segment_max(np.ones((2, 2), np.float32), np.int32([-5, -4])).shape == (0, 2)
    with pytest.raises(phlox.errors.OptionError, match="bucket_size=0"):
        phlox.ops.segment_sum(np.ones(2, np.float32), np.int32([0, 1]), bucket_size=0)


def test_segments_under_jit_need_their_number():
    judge.agree(lambda m, x, i: m.ops.segment_sum(x, i, num_segments=3), np.float32([1, 2, 3, 4, 5]), IDS)
    judge.raises_alike(lambda m: m.jit(m.ops.segment_sum)(np.float32([1, 2, 3, 4, 5]), IDS))
    with pytest.raises(phlox.errors.ConcretizationTypeError, match="without num_segments"):
        phlox.jit(phlox.ops.segment_sum)(np.float32([1, 2, 3, 4, 5]), IDS)
    judge.agree_vmap(lambda m, x: m.ops.segment_sum(x, IDS, 3), np.float32([1, 2, 3, 4, 5]))
