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

P = A(3, low=0.1, high=0.9, dtype="float32")
WIDE = "float32"


def scipy(names, low, high, **options):
    calls = [call(A(4, low=low, high=high)), call(S(0.5)), call(Special())]
    return rows("scipy.special", names, *calls, **{"dtypes": ["float32", "bfloat16", "int32"], **options})


def scipy_pairs(names, low, high, **options):
    one = A(3, low=low, high=high)
    calls = [call(one, one), call(A(2, 1, low=low, high=high), one), call(one, S(0.5)), call(S(0.5), S(2.0))]
    return rows("scipy.special", names, *calls, **{"dtypes": ["float32", "bfloat16", "int32"], **options})


SCIPY = [
    *scipy("gammaln digamma gamma loggamma factorial i0 i0e i1 i1e", 0.3, 5.0, tolerance=5e-5),
    *scipy("gammasgn", -4.0, 4.0, grad=False),
    *scipy("logit entr", 0.1, 0.9, twice=True, dtypes=["float32", "bfloat16"]),
    *rows("scipy.special", "ndtr ndtri log_ndtr", call(P), call(S(0.5)), call(Special()), call(A(3, dtype="int32")),
        dtypes=["float32", "float16"], grad=False),
    *rows("scipy.special", "ndtr log_ndtr", call(A(5, low=-14, high=7)), dtypes=[WIDE], twice=True),
    row("scipy.special.ndtri", call(A(5, low=0.001, high=0.999)), call(A(3, low=1e-30, high=1e-15)), dtypes=[WIDE],
        tolerance=1e-4),
    row("scipy.special.log_ndtr", call(A(3, low=-20), 5), call(A(3), 31), call(A(3), 2.5), dtypes=[WIDE]),
    *scipy_pairs("xlogy xlog1py rel_entr kl_div boxcox boxcox1p", 0.2, 3.0, dtypes=[WIDE, "int32"], tolerance=5e-5),
    row("scipy.special.xlogy", call(judge.np.float32([0, 0, 1, 0]), judge.np.float32([0, 1, 0, judge.np.nan]))),
    row("scipy.special.rel_entr", call(judge.np.float32([0, -1, 1, 0]), judge.np.float32([0, 1, 0, 2]))),
    row("scipy.special.entr", call(judge.np.float32([0, -1, judge.np.nan]))),
    row("scipy.special.boxcox", call(A(3, low=0.5), S(0)), dtypes=[WIDE]),
    *scipy_pairs("beta betaln poch", 0.3, 4.0, tolerance=1e-4, dtypes=[WIDE, "int32"]),
    row("scipy.special.betaln", call(A(3, low=1, high=20), A(3, low=8, high=1e6)), dtypes=[WIDE]),
    *scipy_pairs("gammainc gammaincc", 0.3, 4.0, dtypes=[WIDE, "int32"]),
    *scipy_pairs("comb", 0.0, 6.0, dtypes=[WIDE, "int32"], grad=False, tolerance=1e-4),
    row("scipy.special.comb", call(A(3, low=0, high=5), A(3, low=0, high=3), repetition=True), dtypes=["int32"],
        tolerance=1e-4),
    row("scipy.special.betainc", call(P, P, P), call(A(3, low=1), S(2), P), dtypes=[WIDE, "int32"], grad=False),
    row("scipy.special.polygamma", call(2, A(3, low=0.5)), call(A(3, dtype="int32", low=0), A(3, low=0.5)),
        call(1.5, A(2)), dtypes=[WIDE], grad=False),
    row("scipy.special.multigammaln", call(A(3, low=3, high=6), 2), call(A(2, 2, low=3, high=6), 1), call(S(4.0), 3),
        dtypes=[WIDE, "int32"], tolerance=1e-4, jit=False),
    row("scipy.special.factorial", call(A(2), True), call(A(3, dtype="int32", low=-2, high=5))),
    row("scipy.special.bernoulli", call(0), call(2), call(12), call(-1)),
    *rows("scipy.special", "softmax log_softmax", call(A(2, 3)), call(A(2, 3), axis=0), dtypes=[WIDE]),
    *rows("scipy.special", "beta kl_div rel_entr poch", call(A(2), A(2)), dtypes=["complex64"], grad=False),
]  # fmt: skip

TABLE = LAX + SCIPY

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_second_derivative = second_derivatives(TABLE)
test_vmap = batches(TABLE)
test_64_bits = wide(LAX)


def test_derivative_of_the_incomplete_beta_function():
    """By x it is jax's; by its parameters jax refuses, and phlox has it: test_special_values.py."""
    a, b, x = (judge.np.float32(v) for v in ([0.5, 2.0, 3.0], [1.5, 0.7, 2.0], [0.2, 0.5, 0.9]))
    judge.agree(lambda m, x: m.grad(lambda x: m.lax.betainc(a, b, x).sum())(x), x)
    judge.raises_alike(lambda m: m.grad(lambda n: m.lax.polygamma(n, x).sum())(b))


def test_derivative_of_polygamma():
    order, x = judge.np.float32([0, 1, 2]), judge.np.float32([0.5, 1.5, 3.0])
    judge.agree(lambda m, x: m.grad(lambda x: m.lax.polygamma(order, x).sum())(x), x)
