"""phlox.lax, elementwise: no promotion, and operands of one shape or without axes."""

import numpy as np
import pytest

import phlox
from conformance.harness import (
    A,
    B,
    I,
    S,
    Special,
    batches,
    both,
    call,
    data,
    gradients,
    row,
    rows,
    second_derivatives,
    values,
    wide,
)


def unary(names, low=-3.0, high=3.0, **options):
    calls = [
        call(A(2, 3, low=low, high=high)),
        call(A(low=low, high=high)),
        call(Special()),
        call(S(0.5)),
        call(S(1)),
        call([1.0]),
    ]
    return rows("lax", names, *calls, **{"twice": True, **options})


BINARY = [
    call(A(2, 3), A(2, 3)),
    call(A(), A()),
    call(A(2, 3), A()),
    call(A(), A(3)),
    call(A(0, 2), A(0, 2)),
    call(A(2, 3), A(3)),
    call(A(3), A(1)),
    call(A(2), A(2, dtype="other")),
    call(A(3), S(2)),
    call(S(2), A(3)),
    call(A(3), S(2.5)),
    call(A(3), 2j),
    call(S(3), S(2)),
    call(S(3), S(2.0)),
    call(Special(), A(1)),
    call(A(3, 4, whole=True, low=-2, high=2), A(3, 4, whole=True, low=-2, high=2)),
]  # fmt: skip


def binary(names, **options):
    calls = [*rows("lax", names, *BINARY, **options), *rows("lax", names, call(Special(), Special()), grad=False)]
    return calls


INTS = ["int8", "int32", "uint8", "uint32", "int16"]

#: Without second derivatives and 64 bits: products of halves, dtypes of results, accuracy.
OPTIONS = [
    row("lax.mulhi", call(A(7), A(7, low=-100, high=100)), call(A(3, dtype="int32"), S(5)), dtypes=INTS),
    row(
        "lax.mul",
        call(A(3), A(3)),
        call(A(2, dtype="int8"), A(2, dtype="int8"), out_dtype="int16"),
        call(S(2.0), S(3.0), out_dtype="bfloat16"),
        call(S(2), A(3), out_dtype="bfloat16"),
    ),
    row("lax.exp", call(A(3), accuracy=None), dtypes=["float32", "complex64"]),
]

TABLE = [
    *unary("sin cos tan exp exp2 expm1 sinh cosh tanh atan asinh square logistic erf erfc"),
    *unary("log sqrt rsqrt reciprocal", low=0.1),
    *unary("log1p cbrt", low=-0.9),
    *unary("asin acos atanh erf_inv", low=-0.95, high=0.95),
    *unary("acosh", low=1.1),
    *unary("abs neg conj real imag"),
    *unary("ceil floor sign is_finite", twice=False),
    *unary("bitwise_not population_count clz", twice=False,
        dtypes=["bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float32"], grad=False),
    *binary("add sub mul div", twice=True),
    *binary("max min rem"),
    *binary("atan2 complex", twice=True),
    *binary("eq ne lt le gt ge"),
    *binary("bitwise_and bitwise_or bitwise_xor shift_left shift_right_arithmetic shift_right_logical"),
    row("lax.nextafter", *BINARY),
    row("lax.pow", call(A(2, 3, low=0.2), A(2, 3)), call(A(3, low=0.2), A()), call(A(3, low=0.2), S(2.0)),
        call(A(3), S(2)), call(A(3), I(3, low=0)), call(A(3), I()), call(A(3), 2), call(S(2.0), S(3)),
        call(Special(), A(1)), call(A(4, whole=True, low=0), A(4, whole=True, low=0)), call(A(3), 2j), twice=True),
    row("lax.integer_pow", *[call(A(4, low=0.3), n) for n in (0, 1, 2, 3, 5, -1, -2)], call(S(2.0), 3), call(S(3), 2),
        call(Special(), 2), call(A(2), 2.5), twice=True),
    row("lax.clamp", call(A(3), A(3), A(3)), call(A(4, whole=True), A(4, whole=True), A(4, whole=True)),
        call(A(), A(), A()), call(S(0.0), S(2.0), S(1.0)), twice=True),
    row("lax.clamp", call(A(), A(2, 3), A()), call(S(-1.0), A(2, 3), S(1.0)), call(S(0), A(3), S(2)),
        call(A(), A(2), A(dtype="other")), call(0, Special(), 1), grad=False),
    row("lax.clamp", call(A(2, 3), A(2, 3), A(2, 3)), dtypes=["bool"], grad=False),
    row("lax.clamp", call(A(3), A(2, 3), A()), grad=False, vmap=False),
    row("lax.select", call(B(2, 3), A(2, 3), A(2, 3)), call(B(), A(2), A(2)), call(B(3), A(3), A(3, dtype="other")),
        call(B(2), A(3), A(3)), call(B(), S(1), S(2.0)), call(True, A(2), A(2)),
        call(I(2, low=0, high=1), A(2), A(2))),
    row("lax.select_n", call(B(2, 3), A(2, 3), A(2, 3)), call(I(3, low=0, high=2), A(3), A(3), A(3)),
        call(I(low=0, high=1), A(2), A(2)), call(B(2), A(2), A(2), A(2)),
        call(A(2, dtype="float32"), A(2), A(2)), call(I(3, low=0), A(2), A(2)), call(False, S(1.0), S(2.0))),
    row("lax.stop_gradient", call(A(2, 3)), call({"a": A(2), "b": (A(), None)}), call(I(2)), twice=True),
]  # fmt: skip

test_value = values(TABLE + OPTIONS)
test_gradient = gradients(TABLE + OPTIONS)
test_second_derivative = second_derivatives(TABLE)
test_vmap = batches(TABLE + OPTIONS)
test_64_bits = wide(TABLE)


@pytest.mark.parametrize("name", ["eq_to", "lt_to", "le_to", "mulhi"])
def test_primitives_without_a_function(name):
    special = np.array([0.0, -0.0, np.nan, -np.inf, np.inf, 1.0, -1.0], np.float32)
    x, y = (special[:, None] + 0 * special, np.broadcast_to(special, (7, 7)))
    x = np.where(x == 0, np.broadcast_to(special[:, None], (7, 7)), x)
    if name == "mulhi":
        x, y = data((7,), "int32"), data((7,), "int32", 1)
    both(lambda m, x, y: getattr(m.lax, f"{name}_p").bind(x, y), x, y)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_the_length_of_an_infinite_part_is_infinite(dtype):
    with phlox.enable_x64():
        numbers = np.array([complex(np.inf, np.nan), complex(np.nan, -np.inf), complex(np.nan, 1), 3 + 4j], dtype)
        np.testing.assert_array_equal(phlox.numpy.abs(numbers), np.abs(numbers))


def test_accuracy():
    for name in [
        "cbrt",
        "cos",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log1p",
        "logistic",
        "rsqrt",
        "sin",
        "sqrt",
        "tan",
        "tanh",
    ]:
        x = np.abs(data((3,))) + 0.5
        for mode in ("HIGHEST", "DEFAULT"):
            both(lambda m, x, n=name, k=mode: getattr(m.lax, n)(x, accuracy=m.lax.AccuracyMode[k]), x, what=name)
        with pytest.raises(NotImplementedError, match="accuracy"):  # jax passes it on to compilers that ignore it
            getattr(phlox.lax, name)(x, accuracy=phlox.lax.Tolerance(ulps=1))
    both(lambda m: m.lax.Tolerance())
    both(lambda m: m.lax.Tolerance(atol=-1.0))
    both(lambda m: vars(m.lax.Tolerance(1e-3, 1e-4, 2)))
