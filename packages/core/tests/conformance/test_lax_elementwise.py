"""phlox.lax, elementwise: no promotion, and operands of one shape or without axes."""

from conformance.harness import (
    A,
    B,
    I,
    S,
    Special,
    batches,
    call,
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
    row("lax.nextafter", *BINARY, grad=False),
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

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_second_derivative = second_derivatives(TABLE)
test_vmap = batches(TABLE)
test_64_bits = wide(TABLE)
