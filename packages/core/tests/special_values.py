"""How far functions of phlox.scipy.special are from the truth over their whole domain, beside jax.

    python packages/core/tests/special_values.py [NAME ...]     the table of docs/special-functions.md

The truth is mpmath's, with 40 digits, where SciPy has a number; where SciPy has an infinity, nan or 0, this is what is
expected. Errors are relative, in units of the last place (eps) of the dtype, and infinite where one is a number and the
other is not. Results below the smallest normal number are 0 for XLA, and count as equal. Where the truth is an infinity or nan and
the result another, it is counted as an edge.
"""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import scipy.special

#: What a function may be off, in units of the last place, unless jax is off by more.
BUDGET = {"float32": 4.0, "float64": 16.0}

#: whose loops have no end in jax at some numbers: it is asked those of common size
NO_END = {"exp1", "expi", "expn"}

mpmath.mp.dps = 40
mpf = mpmath.mpf


@dataclasses.dataclass(frozen=True)
class Domain:
    """Points of a function, an array for each argument, and the truth of exact numbers.

    `edges` is SciPy's function where it is called otherwise, `whole` are the arguments that must be integers. Errors of
    what oscillates are relative to `least` near its roots.
    """

    points: list[np.ndarray]
    truth: Callable[..., Any]
    edges: Callable[..., Any] | None = None
    keywords: dict[str, Any] = dataclasses.field(default_factory=dict)
    whole: tuple[int, ...] = ()
    least: float = 0.0


def grid(*axes: Any) -> list[np.ndarray]:
    return [x.ravel() for x in np.meshgrid(*[np.asarray(a, float) for a in axes], indexing="ij")]


def _random(low: float, high: float, count: int = 60) -> np.ndarray:
    return np.random.default_rng(7).uniform(low, high, count)


TINY = np.array([1e-300, 1e-100, 1e-37, 1e-30, 1e-20, 1e-10, 1e-8, 1e-5, 1e-4, 1e-3, 0.01, 0.05])
LARGE = np.array(
    [12, 15.5, 25, 33, 48.2, 80, 87, 100, 150, 200, 500, 700, 1e3, 1e4, 1e6, 1e10, 1e20, 1e37, 1e100, 1e300]
)
POSITIVE = np.concatenate([TINY, np.linspace(0.1, 10, 67), _random(0, 12), LARGE])
EDGES = np.array([0.0, -0.0, np.inf, -np.inf, np.nan])
BOTH = np.concatenate([EDGES, POSITIVE, -POSITIVE])
SIZES = np.concatenate([[0.0, np.inf, np.nan], POSITIVE])
SHARES = np.concatenate([[0, 1, 0.5, np.nan, -0.1, 1.1], TINY, 1 - TINY, _random(0, 1), np.linspace(0.05, 0.95, 19)])
SIGNED_SHARES = np.concatenate([SHARES, -SHARES])
#: where gamma has poles and lgamma roots
GAMMA = np.concatenate(
    [BOTH, [1, 2, 3, 1.5, 0.5, -1, -2, -3, -0.5, -1.5, 30.5, 34.9, 35.1, 170.5, -170.5, -34.5, -20.3]]
)
FEW = [0.0, 1e-30, 1e-5, 0.1, 0.5, 1.0, 1.5, 2.0, 3.7, 10.0, 25.5, 100.0, 1e3, 1e5, np.inf, np.nan, -1.0]


def _log_gamma(x: Any) -> Any:
    return mpmath.log(abs(mpmath.gamma(x))) if x < 1e6 else mpmath.loggamma(x).real


def _ndtr(x: Any) -> Any:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def _ndtri(p: Any) -> Any:
    start = mpf(float(scipy.special.ndtri(float(p))))
    if p == mpf(0.5):
        return mpf(0)
    # Newton's steps on the logarithm, which converge in the tails too.
    for _ in range(6):
        low = _ndtr(start)
        start -= (mpmath.log(low) - mpmath.log(p)) * low / mpmath.npdf(start)
    return start


def _erfinv(x: Any) -> Any:
    return mpmath.erfinv(x) if abs(x) > 1e-30 else x * mpmath.sqrt(mpmath.pi) / 2


def _owens_t(h: Any, a: Any) -> Any:
    end = mpmath.sign(a) * min(abs(a), 60 / max(abs(h), mpf(1e-3)))
    return mpmath.quad(lambda t: mpmath.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, end / 4, end]) / (
        2 * mpmath.pi
    )


def _hurwitz(x: Any, q: Any) -> Any:
    return mpmath.zeta(x, q)


def _gammainc(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, 0, x, regularized=True)


def _gammaincc(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, x, mpmath.inf, regularized=True)


def _kl_div(p: Any, q: Any) -> Any:
    return p * mpmath.log(p / q) - p + q


def _boxcox(x: Any, p: Any) -> Any:
    return mpmath.expm1(p * mpmath.log(x)) / p if p else mpmath.log(x)


def _boxcox1p(x: Any, p: Any) -> Any:
    return mpmath.expm1(p * mpmath.log1p(x)) / p if p else mpmath.log1p(x)


def _jn(v: int) -> Domain:
    # jax overflows below 1, and its default number of iterations is too small from 25 on.
    z = np.concatenate([np.linspace(1, 19.9, 83), -np.linspace(1, 18, 21), [25.5, 40, -41.5, 60.25, 100, 1000, -1e4]])
    return Domain([z], lambda z: mpmath.besselj(v, z), lambda z: scipy.special.jv(v, z), {"v": v}, least=0.1)


PAIRS = grid(FEW, FEW)
PARAMETERS = [0.05, 0.3, 1.0, 2.5, 7.0, 31.5, 200.0, 3e3]
#: Those of `betainc`, `gammainc` and their complements reach from far below to far above where they are one half.
INCOMPLETE = [
    np.concatenate([x, y])
    for x, y in zip(
        grid(
            [0.0, *PARAMETERS, np.inf, -1, np.nan],
            [0.0, 1e-30, 1e-3, 0.1, 0.9, 1.1, 3, 8.3, 30, 190, 1e3, 1e5, np.inf, np.nan, -1],
        ),
        [np.repeat(PARAMETERS, 9), np.outer(PARAMETERS, [0.3, 0.7, 0.9, 0.97, 1.0, 1.03, 1.1, 1.5, 3.0]).ravel()],
        strict=True,
    )
]
BETA = grid(
    [0.0, 0.1, 0.5, 1, 2.5, 10, 80, 500, np.inf, -1],
    [0.0, 0.2, 0.7, 1, 3.5, 20, 300, np.inf],
    [0, 1e-20, 1e-3, 0.1, 0.4, 0.5, 0.77, 0.99, 1, 1.5, np.nan],
)

DOMAINS: dict[str, Domain] = {
    "bessel_jn": _jn(0),
    "bessel_jn 1": _jn(1),
    "bessel_jn 4": _jn(4),
    "beta": Domain(PAIRS, mpmath.beta),
    "betainc": Domain(BETA, lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True)),
    "betaln": Domain(
        PAIRS, lambda a, b: mpmath.loggamma(a).real + mpmath.loggamma(b).real - mpmath.loggamma(a + b).real
    ),
    "boxcox": Domain(
        grid([0, 1e-5, 0.3, 0.999, 1, 1.001, 2, 50, np.inf, -1, np.nan], [0, 1e-10, 0.3, 1, -0.5, 2, -3, 10]), _boxcox
    ),
    "boxcox1p": Domain(
        grid([0, 1e-30, 1e-5, 0.3, -0.5, 2, 50, -1, np.nan], [0, 1e-10, 0.3, 1, -0.5, 2, -3, 10]), _boxcox1p
    ),
    "comb": Domain(grid([0, 1, 2, 5, 10, 20.5, 50, 100, -1], [0, 1, 2, 3.5, 5, 10, 47, -1]), mpmath.binomial),
    "dawsn": Domain(
        [BOTH],
        lambda x: (
            mpmath.exp(-x * x) * mpmath.erfi(x) * mpmath.sqrt(mpmath.pi) / 2
            if abs(x) < 1e6
            else (1 + 1 / (2 * x * x)) / (2 * x)
        ),
    ),
    "digamma": Domain([np.concatenate([GAMMA, [1.4616321, 1.4616322]])], mpmath.digamma),
    "entr": Domain([BOTH], lambda x: -x * mpmath.log(x)),
    "erf": Domain([BOTH], mpmath.erf),
    "erfc": Domain([BOTH], mpmath.erfc),
    "erfcx": Domain(
        [BOTH],
        lambda x: (
            mpmath.exp(x * x) * mpmath.erfc(x) if x < 1e6 else (1 - 1 / (2 * x * x)) / (x * mpmath.sqrt(mpmath.pi))
        ),
    ),
    "erfinv": Domain([SIGNED_SHARES], _erfinv),
    "exp1": Domain([SIZES], mpmath.e1),
    "expi": Domain([BOTH], mpmath.ei),
    "expit": Domain([BOTH], lambda x: 1 / (1 + mpmath.exp(-x))),
    "expn": Domain(
        grid([0, 1, 2, 3, 5, 10, 30, -1], SIZES[::2]),
        lambda n, x: mpmath.expint(int(n), x),
        lambda n, x: scipy.special.expn(n.astype(int), x),
    ),
    "factorial": Domain(
        [np.concatenate([np.arange(-2.0, 40), [0.5, 3.7, 100, 169.5, np.inf, np.nan]])], mpmath.factorial
    ),
    "fresnel 0": Domain([BOTH[~(abs(BOTH) > 60)]], mpmath.fresnels, lambda x: scipy.special.fresnel(x)[0]),
    "fresnel 1": Domain([BOTH[~(abs(BOTH) > 60)]], mpmath.fresnelc, lambda x: scipy.special.fresnel(x)[1]),
    "gamma": Domain([GAMMA], mpmath.gamma),
    "gammainc": Domain(INCOMPLETE, _gammainc),
    "gammaincc": Domain(INCOMPLETE, _gammaincc),
    "gammaln": Domain([GAMMA], _log_gamma),
    "gammasgn": Domain([GAMMA], lambda x: mpmath.sign(mpmath.gamma(x)) if abs(x) < 1e3 else None),
    "hyp1f1": Domain(
        grid([0.3, 1, 2.5, 7, -0.5, -2], [0.5, 1, 3.3, 10], [0, 0.1, 1, 5, 20, 80, -0.1, -1, -5, -40, 150]),
        mpmath.hyp1f1,
    ),
    "hyp2f1": Domain(
        grid([0.3, 1, 2.5, -2], [0.5, 1, 3.2], [0.5, 1.7, 3], [0, 0.1, 0.5, 0.8, 0.95, 1, -0.1, -1, -8]), mpmath.hyp2f1
    ),
    "i0": Domain(
        [BOTH], lambda x: mpmath.besseli(0, x), edges=lambda x: np.where(np.isinf(x), np.inf, scipy.special.i0(x))
    ),
    "i0e": Domain([BOTH], lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)) if abs(x) < 1e6 else None),
    "i1": Domain([BOTH], lambda x: mpmath.besseli(1, x), edges=lambda x: np.where(np.isinf(x), x, scipy.special.i1(x))),
    "i1e": Domain([BOTH], lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)) if abs(x) < 1e6 else None),
    "kl_div": Domain(PAIRS, _kl_div),
    "log_ndtr": Domain([BOTH], lambda x: mpmath.log(_ndtr(x)) if x < 5 else mpmath.log1p(-_ndtr(-x))),
    "loggamma": Domain([GAMMA], _log_gamma),
    "logit": Domain([SHARES], lambda x: mpmath.log(x) - mpmath.log1p(-x)),
    "multigammaln": Domain(
        [np.array([1.7, 2, 3.3, 5, 10, 50, 300, 1e4])],
        lambda a: sum(mpmath.loggamma(a - mpf(j) / 2) for j in range(3)) + mpf(3) / 2 * mpmath.log(mpmath.pi),
        lambda a: scipy.special.multigammaln(a, 3),
        {"d": 3},
    ),
    "ndtr": Domain([BOTH], _ndtr),
    "ndtri": Domain([SHARES], _ndtri),
    "owens_t": Domain(
        grid([0, 0.1, 0.5, 1, -2, 5, 10, np.inf], [0, 0.01, 0.5, 1, 1.5, -3, 20, 1e3, np.inf, np.nan]), _owens_t
    ),
    "poch": Domain(
        grid([0.1, 0.5, 1, 2.5, 10, 30, -0.5, -3.5], [0, 0.3, 1, 2, 5.5, 12, -0.3]),
        lambda z, m: mpmath.gammaprod([z + m], [z]),
    ),
    "polygamma": Domain(
        grid([0, 1, 2, 5, 10], np.concatenate([POSITIVE[::2], [-0.5, -1.5, -9.25, -30.375, 0, -1, np.inf, np.nan]])),
        lambda n, x: mpmath.polygamma(int(n), x),
        lambda n, x: scipy.special.polygamma(n.astype(int), x),
        whole=(0,),
    ),
    "rel_entr": Domain(PAIRS, lambda p, q: p * mpmath.log(p / q)),
    "sici 0": Domain([BOTH], mpmath.si, lambda x: scipy.special.sici(x)[0]),
    "sici 1": Domain([SIZES], mpmath.ci, lambda x: scipy.special.sici(x)[1]),
    "spence": Domain(
        [SIZES],
        lambda z: mpmath.polylog(2, 1 - z).real if z < 1e30 else -(mpmath.log(z) ** 2) / 2 - mpmath.pi**2 / 6,
        lambda z: np.where(z == np.inf, -np.inf, scipy.special.spence(z)),
    ),
    "xlog1py": Domain(
        grid([0, 1e-5, 1, -2.5, 1e10, np.inf, np.nan], [0, 1e-30, -1e-5, 0.3, -0.5, 2, 1e10, -1, np.inf, np.nan, -2]),
        lambda x, y: x * mpmath.log1p(y),
    ),
    "xlogy": Domain(
        grid(
            [0, 1e-5, 1, -2.5, 1e10, np.inf, np.nan],
            [0, 1e-30, 1e-5, 0.3, 0.999, 1, 1.001, 2, 1e10, np.inf, np.nan, -2],
        ),
        lambda x, y: x * mpmath.log(y),
    ),
    "zeta": Domain(grid([1.0, 1.001, 1.5, 2, 3, 10, 0.5, 50], [0.1, 0.5, 1, 3, 20, 1000, -9.25, -30.375]), _hurwitz),
}


def truths(name: str, points: list[np.ndarray]) -> np.ndarray:
    """The true values at the points, which are exact, rounded to float64."""
    domain = DOMAINS[name]
    edges = domain.edges or getattr(scipy.special, name.partition(" ")[0])
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = np.asarray(edges(*points), float).copy()
    for i, at in enumerate(zip(*points, strict=True)):
        if np.isfinite(expected[i]) and expected[i] != 0 and np.isfinite(at).all():
            try:
                found = domain.truth(*map(mpf, at))
            except (ValueError, ZeroDivisionError, mpmath.libmp.NoConvergence):
                continue
            if found is not None and mpmath.isfinite(found):
                expected[i] = float(mpmath.re(found))
    return expected


def values(library: Any, name: str, points: list[np.ndarray], dtype: str) -> np.ndarray:
    """What phlox or jax has, computed in this dtype."""
    domain = DOMAINS[name]
    base, _, part = name.partition(" ")
    function = getattr(library.scipy.special, base)
    args = [x.astype("int32" if i in domain.whole else dtype) for i, x in enumerate(points)]
    if base == "multigammaln":
        found = library.jit(lambda a: function(a, **domain.keywords))(*args)
    else:
        found = library.jit(lambda *xs: function(*xs, **domain.keywords))(*args)
    if base == "bessel_jn":
        found = found[domain.keywords["v"]]
    elif part:
        found = found[int(part)]
    return np.asarray(found).astype(float)


def errors(found: np.ndarray, truth: np.ndarray, dtype: str, least: float = 0.0) -> np.ndarray:
    """Relative distances in units of the last place."""
    info = np.finfo(dtype)
    with np.errstate(all="ignore"):
        truth = truth.astype(dtype).astype(float)
        size = np.maximum(abs(truth), max(least, float(info.tiny)))
        same = (found == truth) | (np.isnan(found) & np.isnan(truth))
        same |= np.maximum(abs(found), abs(truth)) < float(info.tiny)
        distance = np.where(same, 0, abs(found - truth) / size / float(info.eps))
    return np.where(same | (np.isfinite(found) & np.isfinite(truth)), distance, np.inf)


def exact_points(name: str, dtype: str) -> list[np.ndarray]:
    """The points of a function that the dtype has, rounded to float32 so that both dtypes are asked the same."""
    points = DOMAINS[name].points
    with np.errstate(all="ignore"):
        kept = np.ones(len(points[0]), bool)
        rounded = [x.astype("float32").astype(float) for x in points]
        for x, y in zip(points, rounded, strict=True):
            out = (np.isfinite(x) & ~np.isfinite(y)) | ((x != 0) & (abs(y) < np.finfo("float32").tiny) & (abs(x) < 1))
            kept &= ~out if dtype == "float32" else True
    return [np.where(np.isfinite(y) & ((y != 0) | (x == 0)), y, x)[kept] for x, y in zip(points, rounded, strict=True)]


@dataclasses.dataclass(frozen=True)
class Worst:
    error: float
    place: tuple[float, ...]
    found: float
    truth: float
    edges: int

    def __str__(self) -> str:
        place = f" at {', '.join(f'{x:.7g}' for x in self.place)}" if self.error >= 0.95 else ""
        return f"{self.error:.2g}{place}" + (f"; {self.edges} edges" if self.edges else "")


def worst(library: Any, name: str, dtype: str, points: list[np.ndarray], truth: np.ndarray) -> Worst:
    if library.__name__ == "jax" and name in NO_END:
        kept = (abs(points[-1]) > 1e-5) & (abs(points[-1]) < 100)
        points, truth = [x[kept] for x in points], truth[kept]
    found = values(library, name, points, dtype)
    distance = errors(found, truth, dtype, DOMAINS[name].least)
    odd = np.isinf(distance) & ~np.isfinite(truth)
    at = int(np.where(odd, -1, distance).argmax())
    return Worst(
        float(distance[at]), tuple(float(x[at]) for x in points), float(found[at]), float(truth[at]), int(odd.sum())
    )


def table(names: list[str]) -> None:
    """Prints the rows of the page."""
    import jax
    import jax.scipy.special

    import phlox

    print("| function | float32: phlox | jax | float64: phlox | jax |\n|---|---|---|---|---|")
    for name in names:
        cells = []
        for dtype in BUDGET:
            points = exact_points(name, dtype)
            truth = truths(name, points)
            with phlox.enable_x64(dtype == "float64"), jax.enable_x64(dtype == "float64"):
                pair = [worst(library, name, dtype, points, truth) for library in (phlox, jax)]
            over = pair[0].error > max(BUDGET[dtype], pair[1].error) or pair[0].edges > pair[1].edges
            cells += [f"**{pair[0]}**" if over else str(pair[0]), str(pair[1])]
        print(f"| `{name}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    table(sys.argv[1:] or list(DOMAINS))
