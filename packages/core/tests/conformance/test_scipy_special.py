"""Special functions of phlox.scipy.special that are series and integrals: types, values, derivatives and batches.

jax is the judge, and SciPy in 64 bits over wide grids; jax compiles some of these functions in seconds, so that rows are
few.
"""

import mpmath
import numpy as np
import pytest
import scipy.special

import judge
import phlox
from conformance.harness import A, S, Special, batches, call, gradients, rows, values

PART = A(4, low=0.1, high=0.9)
FLOATS = ["float32", "bfloat16", "int32"]


def special(names, *calls, dtypes=("float32",), **options):
    return rows("scipy.special", names, *calls, dtypes=dtypes, **{"tolerance": 5e-5, **options})


# fmt: off
TABLE = [
    *special("dawsn erfcx", call(A(2, 3)), call(S(0.5)), dtypes=FLOATS, tolerance=None),
    *special("dawsn erfcx", call(Special()), grad=False),
    *special("erfcx wofz", call(A(3)), dtypes=["complex64"], grad=False),
    *special("wofz", call(A(3)), call(S(0.5)), grad=False),
    *special("sici fresnel", call(A(3, low=0.2, high=2)), call(S(0.5)), dtypes=FLOATS, tolerance=None),
    *special("sici fresnel", call(A(3, low=2, high=9))),
    *special("expi", call(A(3, low=-3, high=-0.2)), call(A(3, low=0.2, high=60)), call(S(0.5))),
    *special("exp1", call(A(3, low=0.2, high=9)), call(S(0.5))),
    *special("expn", call(np.int32([0, 1, 2, 7]), A(4, low=0.2, high=9)), call(S(3), S(2.0))),
    *special("spence", call(A(3, low=0.1, high=9)), call(S(0.5)), call(A(2, dtype="int32")), call(A(2, dtype="float16")), grad=False),
    *special("zeta", call(A(3, low=1.5, high=9), A(2, 1, low=0.3, high=9)), call(S(2.0), S(1.0)), call(S(2.0))),
    *special("owens_t", call(A(3), A(2, 1)), call(S(1.0), S(0.5))),
    *special("hyp1f1", call(A(3, low=0.5, high=5), A(3, low=0.5, high=5), A(3)), call(S(1.0), S(2.0), S(0.5)), tolerance=2e-4),
    *special("hyp2f1", call(PART, PART, PART, A(4, low=0.1, high=0.8)), call(S(1.0), S(1.5), S(2.0), S(0.5)), tolerance=2e-4),
    *special("bessel_jn", call(A(3, low=8, high=20), v=3), call(A(low=8, high=20), v=0), call(A(2, 2, low=8, high=20), v=2, n_iter=40),
        call(A(2), v=1.5), tolerance=2e-4),
    *special("lpmn_values", *[call(3, 3, A(4, low=-0.9, high=0.9), normal) for normal in (True, False)],
        call(2, 3, A(4), True), call(2, 2, A(2, 2), True), call(2, 2, A(2, dtype="int32"), True), jit=False, vmap=False),
    *special("lpmn", call(3, 3, A(4, low=-0.9, high=0.9)), call(2, 3, A(4)), jit=False, vmap=False),
    *special("sph_harm_y", call(np.int32([0, 1, 3, 2]), np.int32([0, -1, 2, -2]), A(4, low=0.1, high=3), A(4), n_max=3),
        call(np.int32([2]), np.int32([1]), A(1, low=0.1, high=3), A(1), diff_n=1), grad=False, vmap=False),
    *special("sph_harm_y", call(np.int32([2, 1]), np.int32([1, -1]), A(2, low=0.1, high=3), A(2)), grad=False, vmap=False, jit=False),
]
# fmt: on

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_vmap = batches(TABLE)


# --- over the whole domain, beside SciPy ----------------------------------------------------------------

SIZES = np.concatenate(
    [[0, np.inf, np.nan], 10.0 ** np.arange(-30, 31, 3), np.linspace(0.05, 9.95, 60), [12, 25, 48, 80, 200.0]]
)
BOTH = np.concatenate([SIZES, -SIZES])


def _grid(*axes):
    return [x.ravel() for x in np.meshgrid(*axes, indexing="ij")]


@np.vectorize(otypes=[float])
def _exact_erfcx(x):
    if not np.isfinite(x):
        return {np.inf: 0.0, -np.inf: np.inf}.get(x, np.nan)
    with mpmath.workdps(40):
        return float(mpmath.exp(mpmath.mpf(x) ** 2) * mpmath.erfc(x))


#: The judge where SciPy is off: its erfcx by up to 250 units between -26 and -5.
EXACT = {"erfcx": _exact_erfcx}
#: Points, and how far results may be from SciPy's in units of the last place of float32 and of float64. Above 4 and 16
#: are those where exp of a large number is rounded, or terms of a series cancel.
DOMAINS = {
    "erfcx": ([BOTH], 4, 4),
    "dawsn": ([BOTH], 4, 16),
    "exp1": ([SIZES], 4, 16),
    "expi": ([BOTH], 4, 16),
    "fresnel": ([BOTH[np.abs(BOTH) < 50]], 4, 30),
    "spence": ([SIZES[np.inf > SIZES]], 4, 16),
    "zeta": (_grid([1.0, 1.5, 2, 3, 10, 0.5, 50], [0.1, 0.5, 1, 3, 20, 1000]), 4, 16),
    "expn": (_grid([0, 1, 2, 3, 5, 10, 30, -1], SIZES), 4, 16),
    "owens_t": (
        _grid([0, 0.1, 0.5, 1, -2, 5, 10, np.inf], [0, 0.01, 0.5, 1, 1.5, -3, 20, 1e3, np.inf, np.nan]),
        16,
        100,
    ),
    "hyp1f1": (_grid([0.3, 1, 2.5, 7], [0.5, 1, 3.3, 10], [0, 0.1, 1, 5, 20, 80, -0.1, -1, -5, 150]), 200, 200),
    "hyp2f1": (_grid([0.3, 1, 2.5, -2], [0.5, 1, 3.2], [0.5, 1.7, 3], [0, 0.1, 0.5, 0.8, 0.95, 1, -0.1, -1]), 120, 200),
}


def _worst(mine, theirs, smallest):
    """The largest relative distance and its place; infinite where one is a number and the other is not."""
    same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs)) | (np.maximum(abs(mine), abs(theirs)) < smallest)
    with np.errstate(all="ignore"):
        distance = np.where(same, 0, abs(mine - theirs) / np.maximum(abs(theirs), smallest))
    distance = np.where(np.isfinite(mine) & np.isfinite(theirs) | same, distance, np.inf)
    return distance.max(), int(distance.argmax())


@pytest.mark.whole
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", DOMAINS)
def test_whole_domain(name, dtype):
    points, *bounds = DOMAINS[name]
    points = [np.asarray(x, dtype) for x in points]
    with phlox.enable_x64(dtype == "float64"):
        mine = phlox.tree.leaves(phlox.jit(getattr(phlox.scipy.special, name))(*points))
    with np.errstate(all="ignore"):
        theirs = EXACT.get(name, getattr(scipy.special, name))(
            *[x.astype(int if name == "expn" and not i else float) for i, x in enumerate(points)]
        )
        theirs = [y.astype(dtype).astype(float) for y in (theirs if isinstance(theirs, tuple) else (theirs,))]
    bound = bounds[dtype == "float64"] * np.finfo(dtype).eps
    for x, y in zip(mine, theirs, strict=True):
        worst, at = _worst(np.asarray(x).astype(float), y, np.finfo(dtype).tiny)
        where = [float(p[at]) for p in points]
        assert worst <= bound, (
            f"{name}{where}: {np.asarray(x)[at]!r}, SciPy has {y[at]!r}: {worst / np.finfo(dtype).eps:.3g} ulp"
        )


def test_orders_of_expn_that_are_not_whole():
    assert np.isnan(phlox.scipy.special.expn(1.5, np.float32([0.5, 1.0, 20.0]))).all()


REAL = "betainc betaln comb digamma entr erf erfc erfinv factorial gammainc gammaincc i0 i0e i1 i1e"


@pytest.mark.parametrize("name", REAL.split())
def test_complex_numbers_are_refused(name):
    function = getattr(phlox.scipy.special, name)
    others = {"comb": 1, "betaln": 1, "gammainc": 1, "gammaincc": 1, "betainc": 2}.get(name, 0) * [0.5]
    with pytest.raises(phlox.errors.DtypeError, match=f"^{name} does not accept c64"):
        function(*others, 1j)


def test_bessel_functions_of_small_numbers():
    """jax gives nan there, as its recurrence overflows."""
    z = np.array([0, 1e-3, 0.5, 3, 12, -3])
    with phlox.enable_x64(True):
        mine = phlox.scipy.special.bessel_jn(z, v=4)
    for v in range(5):
        judge.same_values(np.asarray(mine)[v], scipy.special.jv(v, z), what=f"J{v}")


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 4e-7), (True, 1e-13)])
def test_bessel_functions_of_large_numbers(wide, tolerance):
    """There jax gives numbers without a meaning: it begins the recurrence below them."""
    z = np.concatenate([np.linspace(-130, 130, 105), [24.99, 25.01, 1e3, -1e4, 1e10, np.inf]])
    z = z.astype(np.float64 if wide else np.float32)
    with phlox.enable_x64(wide):
        mine = np.asarray(phlox.scipy.special.bessel_jn(z, v=90))
        slope = phlox.grad(lambda x: phlox.scipy.special.bessel_jn(x, v=2)[2])(60.0)
    truth = scipy.special.jv(np.arange(91)[:, None], z.astype(float))
    np.testing.assert_allclose(mine, np.where(np.isinf(z), 0, truth), rtol=0, atol=tolerance)
    np.testing.assert_allclose(slope, scipy.special.jvp(2, 60.0), rtol=1e-5)


DERIVATIVES = {
    "hyp1f1": (1.3, 2.4, -0.7),
    "hyp2f1": (0.6, 1.3, 2.2, 0.4),
    "owens_t": (0.7, -1.2),
    "zeta": (2.3, 1.4),
    "expi": (1.7,),
    "exp1": (0.7,),
    "dawsn": (1.2,),
    "erfcx": (-0.4,),
    "spence": (1.0001,),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_beside_finite_differences(name):
    function, point = getattr(phlox.scipy.special, name), DERIVATIVES[name]
    with phlox.enable_x64(True):
        found = phlox.grad(function, tuple(range(len(point))))(*point)
        for i, slope in enumerate(found):
            moved = [float(function(*[x + (h if j == i else 0) for j, x in enumerate(point)])) for h in (-1e-5, 1e-5)]
            assert abs(float(slope) - (moved[1] - moved[0]) / 2e-5) < 1e-7 * max(1, abs(float(slope)))
