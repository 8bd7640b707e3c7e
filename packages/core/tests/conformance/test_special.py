"""Special functions of phlox.lax and phlox.scipy.special: values, derivatives, and awkward points."""

import judge
from conformance.harness import A, S, Special, batches, call, gradients, row, rows, second_derivatives, values, wide

FLOATS = judge.FLOATS


def unary(names, low=-3.0, high=3.0, **options):
    calls = [call(A(2, 3, low=low, high=high)), call(Special()), call(S(0.5)), call(A(2, dtype="int32"))]
    return rows("lax", names, *calls, **{"dtypes": FLOATS, "twice": True, **options})


def pairs(names, low=0.1, high=5.0, **options):
    one = A(3, low=low, high=high)
    calls = [
        call(one, one),
        call(A(low=low, high=high), one),
        call(A(3, dtype="float32", low=low), A(3, dtype="float16")),
    ]
    return rows("lax", names, *calls, **{"dtypes": FLOATS, **options})


EDGES = [0.0, 1.0, 0.5, 2.0, -1.0, float("inf"), float("nan"), 1e-30, 30.0]

LAX = [
    *unary("lgamma digamma bessel_i0e bessel_i1e", low=0.2, high=12.0),
    *unary("lgamma", low=-3.8, high=-0.2, twice=False),
    *pairs("igamma igammac", twice=False),
    *pairs("igamma_grad_a random_gamma_grad", grad=False),
    *pairs("polygamma zeta", low=1.2, grad=False),
    row("lax.polygamma", call(S(1.0), S(2.0)), call(A(3, low=0, whole=True), A(3, low=0.3)), dtypes=FLOATS, grad=False),
    *rows("lax", "igamma igammac igamma_grad_a random_gamma_grad zeta polygamma",
        *[call(judge.np.float32(a), judge.np.float32(EDGES)) for a in EDGES], grad=False, vmap=False),
    row("lax.betainc", call(A(4, low=0.1), A(4, low=0.1), A(4, low=0.0, high=1.0)), call(S(0.5), S(2.0), S(0.3)),
        call(A(4, low=5, high=50), A(4, low=5, high=50), A(4, low=0.0, high=1.0)),
        *[call(judge.np.float32(a), judge.np.float32(b), judge.np.float32(EDGES)) for a in (0, 0.5, 2, judge.np.inf)
          for b in (0, 0.5, judge.np.inf)], dtypes=FLOATS, grad=False, vmap=False),
]  # fmt: skip

TABLE = LAX

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_second_derivative = second_derivatives(TABLE)
test_vmap = batches(TABLE)
test_64_bits = wide(TABLE)


def test_derivative_of_the_incomplete_beta_function():
    """By x it has one; by its parameters jax refuses, and so does phlox."""
    a, b, x = (judge.np.float32(v) for v in ([0.5, 2.0, 3.0], [1.5, 0.7, 2.0], [0.2, 0.5, 0.9]))
    judge.agree(lambda m, x: m.grad(lambda x: m.lax.betainc(a, b, x).sum())(x), x)
    for n in (0, 1):
        judge.raises_alike(lambda m, n=n: m.grad(lambda *xs: m.lax.betainc(*xs).sum(), n)(a, b, x))
    judge.raises_alike(lambda m: m.grad(lambda n: m.lax.polygamma(n, x).sum())(b))


def test_derivative_of_polygamma():
    order, x = judge.np.float32([0, 1, 2]), judge.np.float32([0.5, 1.5, 3.0])
    judge.agree(lambda m, x: m.grad(lambda x: m.lax.polygamma(order, x).sum())(x), x)
