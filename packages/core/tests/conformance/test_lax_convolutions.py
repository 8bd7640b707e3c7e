"""phlox.lax, convolutions: strides, padding, dilation, groups, element types, and the shapes they make."""

import numpy as np
import pytest

import judge
from conformance.harness import A, batches, call, gradients, row, second_derivatives, values, wide

NUMBERS = judge.INTS + judge.FLOATS + judge.COMPLEX
NHWC = ("NHWC", "HWIO", "NHWC")
X, W = A(2, 3, 6, 5), A(4, 3, 3, 2)
LINE, KERNEL = A(2, 4, 7), A(6, 2, 3)

GENERAL = [
    row("lax.conv_general_dilated",
        call(X, W, (1, 1), "SAME"), call(X, W, (2, 1), "VALID"), call(X, W, window_strides=[1, 2], padding="SAME_LOWER"),
        call(X, W, (1, 2), [(1, 2), (0, 1)]), call(X, W, (2, 2), ((-1, 0), (1, -1))),
        call(X, W, (1, 1), [(2, 1), (1, 1)], lhs_dilation=(2, 3)),
        call(X, W, (2, 1), [(1, 1), (0, 2)], rhs_dilation=(2, 1)), call(X, W, (1, 1), "SAME", rhs_dilation=(1, 2)),
        call(X, W, (2, 3), [(1, 3), (2, 1)], (3, 2), (1, 2)),
        call(A(2, 6, 5, 3), A(3, 2, 3, 4), (1, 1), "SAME", dimension_numbers=NHWC),
        call(A(6, 2, 3, 5), A(3, 3, 4, 2), (2, 1), "SAME", None, (1, 2), ("HNCW", "IHOW", "NWHC")),
        call(LINE, KERNEL, (1,), "SAME", feature_group_count=2),
        call(LINE, A(8, 1, 3), (2,), [(1, 0)], (2,), (2,), feature_group_count=4),
        call(A(4, 2, 7), KERNEL, (1,), "VALID", batch_group_count=2),
        call(A(4, 2, 7), KERNEL, (2,), [(2, 1)], (1,), (2,), batch_group_count=2),
        call(A(7, 4, 2), A(3, 2, 6), (2,), "SAME", dimension_numbers=("HCN", "HIO", "CHN"), feature_group_count=2),
        call(A(7, 2, 4), A(3, 2, 6), (1,), "SAME", dimension_numbers=("HCN", "HIO", "CHN"), batch_group_count=2),
        call(A(2, 3), A(4, 3), (), ()), call(A(2, 3, 0), A(4, 3, 2), (1,), "SAME"),
        call(A(2, 3, 2), A(4, 3, 5), (1,), "VALID"), call(A(2, 3, 4), A(4, 3, 2), (3,), "VALID"),
        dtypes=NUMBERS, twice=True),
    row("lax.conv_general_dilated",
        call(A(2, 3, 4), A(4, 3, 2), (1,), "VALID", preferred_element_type="float32"),
        call(A(2, 3, 4), A(4, 3, 2), (1,), "VALID", precision="highest"),
        call(A(2, 3, 4), A(4, 3, 2), (1,), "VALID", precision=("high", "default")),
        dtypes=["float16", "bfloat16", "float32"]),
    row("lax.conv_general_dilated", call(A(2, 3, 4), A(4, 3, 2), (1,), "VALID", preferred_element_type="int32"),
        dtypes=["int8", "int16", "uint8"], grad=False),
    # What does not fit.
    row("lax.conv_general_dilated", call(X, A(4, 2, 3, 2), (1, 1), "SAME"), call(X, A(4, 3, 3), (1, 1), "SAME"),
        call(X, W, (1,), "VALID"), call(X, W, (1, 1), "FULL"), call(X, W, (1, 1), [(1, 1)]), call(X, W, (1, 1), 3),
        call(X, W, (1, 1), [(-5, -5), (0, 0)]), call(X, W, (1, 1), "SAME", (2, 2)),
        call(X, W, (1, 1), "SAME", feature_group_count=2), call(X, W, (1, 1), "SAME", feature_group_count=0),
        call(X, W, (1, 1), "SAME", batch_group_count=3), call(LINE, KERNEL, (1,), "SAME", batch_group_count=0),
        call(A(4, 4, 7), KERNEL, (1,), "SAME", feature_group_count=2, batch_group_count=2),
        call(X, W, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW")),
        call(X, W, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCH")),
        call(X, W, (1, 1), "SAME", dimension_numbers=("NCHH", "OIHW", "NCHW")),
        call(X, W, (1, 1), "SAME", dimension_numbers=("NNHW", "OIHW", "NCHW")),
        call(X, W, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHD", "NCHW")),
        call(X, W, (1, 1), "SAME", dimension_numbers="NCHW"),
        call(A(2, 3, 4), A(4, 3, 2, dtype="other"), (1,), "VALID"),
        call(A(2, 3, 4, dtype="float32"), A(4, 3, 2, dtype="float32"), (1,), "VALID", preferred_element_type="float16"),
        call(A(2, 3, 4, dtype="int32"), A(4, 3, 2, dtype="int32"), (1,), "VALID", preferred_element_type="uint32"),
        call(A(2, 3, 4, dtype="float32"), A(4, 3, 2, dtype="float32"), (1,), "VALID", preferred_element_type="int32"),
        dtypes=["float32"], grad=False, vmap=False),
]  # fmt: skip

SHORT = [
    row("lax.conv", call(X, W, (1, 1), "SAME"), call(X, W, (2, 1), "VALID", "highest"),
        call(X, W, (1, 1), "SAME", preferred_element_type="float32"), dtypes=judge.FLOATS, twice=True),
    row("lax.conv_with_general_padding", call(X, W, (1, 1), [(1, 0), (2, 2)], (1, 2), (2, 1)),
        call(X, W, (1, 1), "SAME", None, None), dtypes=NUMBERS, twice=True),
    row("lax.conv_transpose",
        call(A(2, 5, 3), A(3, 3, 4), (2,), "SAME"), call(A(2, 5, 3), A(3, 3, 4), (2,), "VALID"),
        call(A(2, 5, 3), A(2, 3, 4), (3,), "SAME"), call(A(2, 5, 3), A(3, 3, 4), (2,), [(1, 2)]),
        call(A(2, 5, 3), A(3, 3, 4), (2,), ((1, 2),), use_consistent_padding=True),
        call(A(2, 5, 3), A(3, 3, 4), (2,), "SAME", (2,)),
        call(A(2, 5, 4, 3), A(3, 2, 4, 3), (2, 1), "SAME", transpose_kernel=True),
        call(A(2, 3, 5, 4), A(4, 3, 3, 2), (2, 2), "VALID", dimension_numbers=("NCHW", "OIHW", "NCHW")),
        call(A(2, 3), A(3, 4), (), "SAME"), call(A(2, 5, 3), A(3, 3, 4), (2,), "SAME_LOWER"),
        call(A(1, 3, 3, 3, 2), A(2, 2, 2, 2, 3), (1, 2, 1), "SAME"), call(A(2, 5, 3), A(3, 3, 4), (2,), "NONE"),
        dtypes=judge.FLOATS),
    row("lax.conv_general_dilated_patches",
        call(A(2, 3, 5, 4), (2, 3), (1, 1), "VALID"), call(A(2, 3, 5, 4), (2, 3), (2, 1), "SAME"),
        call(A(2, 5, 4, 3), (2, 2), (1, 1), "SAME", None, (2, 1), NHWC),
        call(A(2, 3, 5), (2,), (1,), [(1, 1)], (2,)), call(A(2, 3, 5), [2], (1,), "VALID"),
        dtypes=judge.FLOATS),
    row("lax.conv_general_dilated_local",
        call(A(2, 3, 5), A(4, 6, 4), (1,), "VALID", (2,)), call(A(2, 3, 5), A(4, 6, 3), (2,), "SAME", (2,)),
        call(A(2, 5, 4, 3), A(4, 3, 12, 2), (1, 1), "VALID", (2, 2), dimension_numbers=NHWC),
        call(A(2, 3, 5), A(4, 6, 3), (1,), "VALID", (2,), None, (2,), precision="highest"), dtypes=["float32", "float16"]),
]  # fmt: skip

WORDS = ("NHWC", "HWIO", "NHWC")
SHAPES = [
    row("lax.conv_general_permutations", call(WORDS), call(("NCHW", "OIWH", "HNWC")), call(("NC", "OI", "CN")),
        call(("NCH", "OIW", "NCH")), call(("NCHH", "OIHW", "NCHW"))),
    row("lax.conv_dimension_numbers", call((1, 2, 3), (1, 2, 3), None), call((1, 2, 3), (1, 2, 3), ("NHC", "HIO", "NHC")),
        call((1, 2, 3), (1, 2), None), call((1, 2, 3), (1, 2, 3), "NHC"), call((1, 2, 3), (1, 2, 3), ("NHC", "HIO", 3))),
    row("lax.conv_shape_tuple", call((8, 3, 10), (4, 3, 3), (2,), "SAME"), call((8, 3, 10), (4, 3, 3), (2,), [(1, 0)]),
        call((8, 3, 10, 9), (4, 3, 3, 2), (2, 3), "VALID", 2), call((8, 3, 2), (4, 3, 5), (1,), "VALID"),
        call((8, 3, 10), (4, 3, 3), (2,), [(1, 0), (0, 0)]), call((8, 3, 2), (4, 3, 3), (2,), [(-1, -2)])),
    row("lax.conv_general_shape_tuple", call((8, 10, 9, 3), (3, 2, 3, 4), (2, 1), "SAME", WORDS),
        call((8, 10, 9, 3), (3, 2, 3, 4), (2, 1), [(1, 1), (0, 2)], WORDS)),
    row("lax.conv_transpose_shape_tuple", call((8, 10, 9, 3), (3, 2, 4, 3), (2, 1), "SAME", ("NHWC", "HWOI", "NHWC")),
        call((8, 10, 9, 3), (3, 2, 4, 3), (2, 3), "VALID", ("NHWC", "HWOI", "NHWC")),
        call((8, 10, 9, 3), (3, 2, 4, 3), (2, 3), [(1, 1), (0, 2)], ("NHWC", "HWOI", "NHWC"))),
    row("lax.padtype_to_pads", call((10, 7), (3, 2), (2, 3), "SAME"), call((10, 7), (3, 2), (1, 1), "SAME_LOWER"),
        call((10, 7), (3, 2), (1, 1), "valid"), call((10,), (3,), (1,), "FULL"), call((10,), (3,), (1,), 3)),
]  # fmt: skip

TABLE = GENERAL + SHORT

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_second_derivative = second_derivatives(TABLE)
test_vmap = batches(TABLE)
test_64_bits = wide(TABLE)


@pytest.mark.parametrize(
    ("path", "args"), [pytest.param(r.path, c.args, id=f"{r.path}{c}") for r in SHAPES for c in r.calls]
)
def test_shapes(path, args):
    """These compute on Python numbers, which are compared as they are."""
    name = path.removeprefix("lax.")
    run = lambda m: getattr(m.lax, name)(*args)
    try:
        expected = run(judge.jax)
    except Exception:
        judge.raises_alike(run)
        return
    mine = run(judge.phlox)
    assert tuple(mine) == tuple(tuple(x) if np.ndim(x) else x for x in expected)
    assert "int64" not in repr(mine)


def test_a_convolution_keeps_its_own_dimension_numbers():
    numbers = judge.phlox.lax.ConvDimensionNumbers((0, 2, 1), (2, 1, 0), (0, 2, 1))
    assert judge.phlox.lax.conv_dimension_numbers((1, 2, 3), (1, 2, 3), numbers) is numbers
    x, w = np.ones((2, 5, 3), np.float32), np.ones((3, 3, 4), np.float32)
    case = lambda m, x, w: m.lax.conv_general_dilated(
        x, w, (1,), "SAME", dimension_numbers=m.lax.ConvDimensionNumbers((0, 2, 1), (2, 1, 0), (0, 2, 1))
    )
    judge.agree(case, x, w)
