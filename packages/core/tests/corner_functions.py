"""The functions of `corners`, each with its judges: a function of wide numbers, and one of mpmath for derivatives."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import mpmath as mp
import numpy as np
import scipy.special

import corner_truth
import special_values

FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("bool", "int8", "uint8", "int32", "uint32", "int64")
mpf = mp.mpf


@dataclasses.dataclass(frozen=True)
class Case:
    """One function and its judges.

    `judge` takes NumPy arrays of wide floats (or SciPy's float64), `exact` numbers of mpmath. Of the two `exact` wins
    at finite points, unless `signed_zeros`: then the judge is one of C's functions, which is right to the sign of zero.
    """

    call: str | Callable[..., Any]
    judge: Callable[..., Any] | None = None
    exact: Callable[..., Any] | None = None
    arity: int = 1
    dtypes: tuple[str, ...] = FLOATS
    ends: tuple[float, ...] = ()
    differentiable: tuple[int, ...] = (0,)
    signed_zeros: bool = False
    wide: bool = True
    points: Callable[[str], list[np.ndarray]] | None = None

    def function(self, library: Any) -> Callable[..., Any]:
        if not isinstance(self.call, str):
            return lambda *xs: self.call(library, *xs)
        path = library
        for part in self.call.split("."):
            path = getattr(path, part)
        return path

    def truth(self, dtype: str, *columns: np.ndarray) -> list[Any]:
        """Wide values at the points; None where there is no judge."""
        if dtype in INTEGERS:
            if self.judge is None:
                return [None] * len(columns[0])
            with np.errstate(all="ignore"):
                exact = np.asarray(self.judge(*columns))
                if exact.dtype.kind != "f":
                    return list(exact)
                # Integers of up to 32 bits become float32.
                middle = np.float64 if dtype == "int64" else np.float32
                return list(np.asarray(self.judge(*(x.astype(middle).astype(float) for x in columns))))
        wide = np.float64 if not self.wide else np.longdouble
        if dtype in COMPLEX:
            wide = np.clongdouble
        count = len(columns[0])
        with np.errstate(all="ignore"):
            out = (
                [None] * count
                if self.judge is None
                else list(np.asarray(self.judge(*(x.astype(wide) for x in columns))))
            )
        if self.exact is not None and dtype not in COMPLEX and not (self.signed_zeros and self.judge is not None):
            for i, point in enumerate(zip(*columns, strict=True)):
                out[i] = self._exact(point, out[i])
        return out

    def _exact(self, point: tuple[Any, ...], known: Any) -> Any:
        numbers = [float(x) for x in point]
        if any(np.isnan(x) for x in numbers):
            return np.nan if known is None else known
        at_infinity = len(numbers) == 1 and np.isinf(numbers[0]) and (known is None or np.isnan(known))
        is_scipys_zero = not self.wide and known == 0  # as for operands outside of the domain
        finite = all(map(np.isfinite, [known, *numbers])) if known is not None else True
        if known is not None and not at_infinity and (is_scipys_zero or not finite):
            return known
        if known is None and len(numbers) > 1 and not all(map(np.isfinite, numbers)):
            return None
        if np.isinf(numbers[0]) and len(numbers) == 1:
            value = self._limit(mpf(10) ** e * mp.sign(numbers[0]) for e in corner_truth.HUGE)
        else:
            value = self._number([mpf(x) for x in numbers])
        if value is None and numbers == [0.0]:  # the plain formula may be 0 / 0
            left, value = (self._limit(sign / mpf(10) ** e for e in corner_truth.HUGE) for sign in (-1, 1))
            if left != value and (None in (left, value) or abs(left - value) > 1e-18):
                return known
        return known if value is None else _longdouble(value)

    def _limit(self, points: Iterable[Any]) -> Any:
        """The limit of the values at two points, the second of which is much further on; None if there is none."""
        return corner_truth.limit(*(self._number([x]) for x in points))

    def _number(self, numbers: list[Any]) -> Any:
        """The value at finite numbers, or None where it is not real."""
        try:
            with mp.workdps(60 + sum(int(abs(mp.log10(abs(x)))) for x in numbers if x)):
                value = self.exact(*numbers)
        except (ValueError, ZeroDivisionError, OverflowError, TypeError, mp.libmp.NoConvergence):
            return None
        if value is None or (isinstance(value, mp.mpc) and value.imag != 0) or mp.isnan(value):
            return None
        return mp.re(value)


def _longdouble(x: Any) -> Any:
    """A number of mpmath as long double."""
    if not mp.isfinite(x) or not x:
        return np.longdouble(float(x))
    if abs(mp.mag(x)) > 16000:  # beyond its exponents
        return np.copysign(np.longdouble(np.inf if mp.mag(x) > 0 else 0), int(mp.sign(x)))
    return np.longdouble(mp.nstr(x, 25, min_fixed=0, max_fixed=0))


FUNCTIONS: dict[str, Case] = {}


def _add(module: str, name: str, judge: Any = None, exact: Any = None, **options: Any) -> None:
    call = options.pop("call", f"{module}.{name.partition(' ')[0]}")
    case = FUNCTIONS[f"{module}.{name}"] = Case(call, judge, exact, **options)
    assert judge or not {*case.dtypes} & {*INTEGERS}, (
        f"{module}.{name}: integers are compared with NumPy's function alone"
    )


# --- functions of NumPy ---------------------------------------------------------------------------------

BOTH = (*FLOATS, *COMPLEX)
EVERY = (*BOTH, *INTEGERS)
REAL = (*FLOATS, *INTEGERS)
WHOLE = INTEGERS


def _piecewise(slope: Any = 0) -> Any:
    return lambda x: x * slope


def _numpy_unary() -> None:
    inverse = {"ends": (1.0,)}
    table: dict[str, tuple[Any, dict[str, Any]]] = {
        "exp": (mp.exp, {}),
        "exp2": (lambda x: mp.mpf(2) ** x, {"dtypes": REAL}),
        "expm1": (mp.expm1, {}),
        "log": (mp.log, {}),
        "log1p": (mp.log1p, inverse),
        "log2": (lambda x: mp.log(x) / mp.log(2), {}),
        "log10": (lambda x: mp.log(x) / mp.log(10), {}),
        "sqrt": (mp.sqrt, {}),
        "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), {"dtypes": REAL}),
        "sin": (mp.sin, {}),
        "cos": (mp.cos, {}),
        "tan": (mp.tan, {}),
        "sinh": (mp.sinh, {}),
        "cosh": (mp.cosh, {}),
        "tanh": (mp.tanh, {}),
        "arcsin": (mp.asin, inverse),
        "arccos": (mp.acos, inverse),
        "arctan": (mp.atan, {}),
        "arcsinh": (mp.asinh, {}),
        "arccosh": (mp.acosh, inverse),
        "arctanh": (mp.atanh, inverse),
        "reciprocal": (lambda x: 1 / x, {"dtypes": BOTH}),
        "square": (lambda x: x * x, {"dtypes": tuple(d for d in EVERY if d != "bool")}),
        "abs": (abs, {}),
        "fabs": (abs, {"dtypes": REAL}),
        "negative": (lambda x: -x, {"dtypes": tuple(d for d in EVERY if d != "bool")}),
        "positive": (lambda x: x, {"dtypes": tuple(d for d in EVERY if d != "bool")}),
        "sign": (None, {"dtypes": (*FLOATS, *COMPLEX, "int8", "uint8", "int32", "uint32", "int64")}),
        "floor": (None, {"dtypes": FLOATS}),
        "ceil": (None, {"dtypes": FLOATS}),
        "trunc": (None, {"dtypes": REAL}),
        "rint": (None, {"dtypes": BOTH}),
        "conj": (lambda x: x, {}),
        "deg2rad": (lambda x: x * mp.pi / 180, {"dtypes": REAL}),
        "rad2deg": (lambda x: x * 180 / mp.pi, {"dtypes": REAL}),
        "isfinite": (None, {}),
        "isinf": (None, {}),
        "isnan": (None, {}),
        "signbit": (None, {"dtypes": REAL}),
        "logical_not": (None, {}),
        "invert": (None, {"dtypes": WHOLE}),
        "bitwise_count": (None, {"dtypes": tuple(d for d in WHOLE if d != "bool")}),
    }
    for name, (exact, options) in table.items():
        judge = getattr(np, name)
        options = {"dtypes": EVERY, "signed_zeros": True, **options}
        if exact is None:
            options["differentiable"] = ()
        _add("numpy", name, judge, exact, **options)
    _add("numpy", "sinc", np.sinc, lambda x: mp.sincpi(x) if abs(x) < mpf(10) ** 300 else mpf(0))
    _add("numpy", "i0", scipy.special.i0, lambda x: mp.besseli(0, x), wide=False)
    _add(
        "numpy",
        "angle",
        np.angle,
        lambda x: mpf(0) if x > 0 else mp.pi if x < 0 else None,
        dtypes=BOTH,
        signed_zeros=True,
    )
    _add("numpy", "real", np.real, lambda x: x, dtypes=BOTH, signed_zeros=True)
    _add("numpy", "imag", np.imag, lambda x: x * 0, dtypes=BOTH, signed_zeros=True)
    _add(
        "numpy",
        "nan_to_num",
        _nan_to_num,
        None,
        differentiable=(),
        call=lambda m, x: m.numpy.nan_to_num(x, nan=0.0, posinf=1.0, neginf=-1.0),
        signed_zeros=True,
    )
    for i, part in enumerate(("fraction", "whole part")):
        _add(
            "numpy",
            f"modf {part}",
            lambda x, i=i: np.modf(x)[i],
            None,
            call=lambda m, x, i=i: m.numpy.modf(x)[i],
            differentiable=(),
            signed_zeros=True,
        )
    for i, part in enumerate(("mantissa", "exponent")):
        _add(
            "numpy",
            f"frexp {part}",
            lambda x, i=i: np.frexp(x)[i],
            None,
            call=lambda m, x, i=i: m.numpy.frexp(x)[i],
            differentiable=(),
            signed_zeros=True,
        )


def _nan_to_num(x: Any) -> Any:
    return np.nan_to_num(x, nan=0.0, posinf=1.0, neginf=-1.0)


def _numpy_binary() -> None:
    larger = lambda x, y: x if x > y else y
    smaller = lambda x, y: x if x < y else y
    numbers = tuple(d for d in EVERY if d != "bool")
    table: dict[str, tuple[Any, dict[str, Any]]] = {
        "add": (lambda x, y: x + y, {"dtypes": EVERY}),
        "subtract": (lambda x, y: x - y, {"dtypes": numbers}),
        "multiply": (lambda x, y: x * y, {"dtypes": EVERY}),
        "divide": (lambda x, y: x / y, {"dtypes": EVERY}),
        "power": (lambda x, y: x**y, {"dtypes": BOTH}),
        "float_power": (lambda x, y: x**y, {"dtypes": FLOATS}),
        "arctan2": (lambda x, y: mp.atan2(x, y), {"dtypes": REAL}),
        "hypot": (lambda x, y: mp.sqrt(x * x + y * y), {"dtypes": REAL}),
        "logaddexp": (lambda x, y: larger(x, y) + mp.log1p(_exp(-abs(x - y))), {"dtypes": REAL}),
        "logaddexp2": (
            lambda x, y: larger(x, y) + mp.log1p(_exp(-abs(x - y) * mp.log(2))) / mp.log(2),
            {"dtypes": REAL},
        ),
        "maximum": (larger, {"dtypes": REAL, "signed_zeros": False}),
        "minimum": (smaller, {"dtypes": REAL, "signed_zeros": False}),
        "fmax": (larger, {"dtypes": REAL, "signed_zeros": False}),
        "fmin": (smaller, {"dtypes": REAL, "signed_zeros": False}),
        "copysign": (lambda x, y: abs(x) * mp.sign(y) if y else None, {"dtypes": REAL, "differentiable": (0,)}),
        "fmod": (lambda x, y: x - y * mp.sign(x / y) * mp.floor(abs(x / y)), {"dtypes": (*FLOATS, *WHOLE[1:])}),
        "remainder": (lambda x, y: x - y * mp.floor(x / y), {"dtypes": (*FLOATS, *WHOLE[1:])}),
        "floor_divide": (None, {"dtypes": (*FLOATS, *WHOLE[1:])}),
        "heaviside": (None, {"dtypes": REAL}),
        "nextafter": (None, {"dtypes": FLOATS, "wide": False}),
        "equal": (None, {"dtypes": EVERY}),
        "not_equal": (None, {"dtypes": EVERY}),
        "less": (None, {"dtypes": EVERY}),
        "less_equal": (None, {"dtypes": EVERY}),
        "greater": (None, {"dtypes": EVERY}),
        "greater_equal": (None, {"dtypes": EVERY}),
        "logical_and": (None, {"dtypes": EVERY}),
        "logical_or": (None, {"dtypes": EVERY}),
        "logical_xor": (None, {"dtypes": EVERY}),
        "bitwise_and": (None, {"dtypes": WHOLE}),
        "bitwise_or": (None, {"dtypes": WHOLE}),
        "bitwise_xor": (None, {"dtypes": WHOLE}),
        "left_shift": (None, {"dtypes": WHOLE[1:]}),
        "right_shift": (None, {"dtypes": WHOLE[1:]}),
        "gcd": (None, {"dtypes": WHOLE[1:]}),
        "lcm": (None, {"dtypes": WHOLE[1:]}),
    }
    for name, (exact, options) in table.items():
        options = {"arity": 2, "signed_zeros": True, "differentiable": (0, 1) if exact else (), **options}
        _add("numpy", name, getattr(np, name), exact, **options)


# --- functions of phlox.lax that phlox.numpy does not have ------------------------------------------------


def _lax() -> None:
    _add("lax", "rsqrt", lambda x: 1 / np.sqrt(x), lambda x: 1 / mp.sqrt(x), dtypes=BOTH)
    _add("lax", "logistic", None, _sigmoid)
    for n in (-3, -1, 0, 1, 2, 3, 7):
        _add(
            "lax",
            f"integer_pow {n}",
            lambda x, n=n: x**n,
            lambda x, n=n: x**n,
            dtypes=BOTH,
            call=lambda m, x, n=n: m.lax.integer_pow(x, n),
        )
    for n in (0, 1, 2, 0.5, -1, 1.5):
        power = lambda x, n=n: x ** mpf(n)
        _add(
            "numpy",
            f"power {n}",
            lambda x, n=n: np.power(x, np.longdouble(n)),
            power,
            call=lambda m, x, n=n: x**n,
            signed_zeros=True,
        )


# --- functions of phlox.nn, and reductions over two elements -------------------------------------------------


def _exp(x: Any) -> Any:
    """exp(x) of negative numbers, 0 where it is beyond all dtypes."""
    return mp.exp(x) if x > -(10**6) else mpf(0)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + _exp(-x)) if x > 0 else _exp(x) / (1 + _exp(x))


def _softplus(x: Any) -> Any:
    return mp.log1p(_exp(x)) if x < 0 else x + mp.log1p(_exp(-x))


def _ndtr(x: Any) -> Any:
    tail = mp.erfc(abs(x) / mp.sqrt(2)) / 2 if abs(x) < 10**4 else mpf(0)
    return 1 - tail if x > 0 else tail


def _nn() -> None:
    root = lambda x: mp.sqrt(2 / mp.pi) * (x + mpf(0.044715) * x**3)
    elu = lambda x, a=1: x if x > 0 else a * mp.expm1(x)
    hard = lambda x: min(max(x + 3, mpf(0)), mpf(6)) / 6
    table = {
        "relu": lambda x: max(x, mpf(0)),
        "relu6": lambda x: min(max(x, mpf(0)), mpf(6)),
        "sigmoid": _sigmoid,
        "log_sigmoid": lambda x: -_softplus(-x),
        "softplus": _softplus,
        "silu": lambda x: x * _sigmoid(x),
        "soft_sign": lambda x: x / (abs(x) + 1),
        "elu": elu,
        "celu": elu,
        "selu": lambda x: mpf("1.0507009873554804934193349852946") * elu(x, mpf("1.6732632423543772848170429916717")),
        "leaky_relu": lambda x: x if x > 0 else x * mpf(0.01),
        "gelu": lambda x: x * _sigmoid(2 * root(x)),
        "hard_tanh": lambda x: min(max(x, mpf(-1)), mpf(1)),
        "hard_sigmoid": hard,
        "hard_silu": lambda x: x * hard(x),
        "mish": lambda x: x * mp.tanh(_softplus(x)) if x < 10**6 else x,
        "squareplus": lambda x: (x + mp.sqrt(x * x + 4)) / 2 if x > 0 else 2 / (mp.sqrt(x * x + 4) - x),
        "sparse_plus": lambda x: mpf(0) if x <= -1 else x if x >= 1 else (x + 1) ** 2 / 4,
        "sparse_sigmoid": lambda x: min(max(x + 1, mpf(0)), mpf(2)) / 2,
        "log1mexp": lambda x: mp.log(-mp.expm1(-x)) if x < 1 else mp.log1p(-_exp(-x)),
        "tanh": mp.tanh,
        "identity": lambda x: x,
    }
    for name, exact in table.items():
        ends = {"relu6": (6.0,), "hard_sigmoid": (3.0,), "hard_silu": (3.0,)}.get(name, (1.0,))
        _add("nn", name, None, exact, ends=ends)
    _add(
        "nn",
        "gelu exact",
        None,
        lambda x: x * _ndtr(x),
        call=lambda m, x: m.nn.gelu(x, approximate=False),
    )


def _pair(reduce: Callable[..., Any]) -> Callable[..., Any]:
    return lambda m, x, y: reduce(m, m.numpy.stack(m.numpy.broadcast_arrays(x, y), -1))


def _reductions() -> None:
    two = lambda f: lambda x, y: f(np.stack([x, y], -1))
    log_sum = lambda x, y: max(x, y) + mp.log1p(_exp(-abs(x - y)))
    _add(
        "numpy",
        "sum",
        two(lambda z: z.sum(-1)),
        lambda x, y: x + y,
        arity=2,
        call=_pair(lambda m, z: z.sum(-1)),
        differentiable=(0, 1),
    )
    _add(
        "numpy",
        "prod",
        two(lambda z: z.prod(-1)),
        lambda x, y: x * y,
        arity=2,
        call=_pair(lambda m, z: z.prod(-1)),
        differentiable=(0, 1),
    )
    _add(
        "numpy",
        "mean",
        two(lambda z: z.mean(-1)),
        lambda x, y: (x + y) / 2,
        arity=2,
        call=_pair(lambda m, z: z.mean(-1)),
        differentiable=(0, 1),
    )
    _add(
        "numpy",
        "var",
        two(lambda z: z.var(-1)),
        lambda x, y: (x - y) ** 2 / 4,
        arity=2,
        call=_pair(lambda m, z: z.var(-1)),
        differentiable=(0, 1),
    )
    _add(
        "numpy",
        "std",
        two(lambda z: z.std(-1)),
        lambda x, y: abs(x - y) / 2,
        arity=2,
        call=_pair(lambda m, z: z.std(-1)),
        differentiable=(0, 1),
    )
    _add(
        "numpy",
        "linalg.norm",
        two(lambda z: np.sqrt((z * z).sum(-1))),
        lambda x, y: mp.sqrt(x * x + y * y),
        arity=2,
        call=_pair(lambda m, z: m.numpy.linalg.norm(z, axis=-1)),
        differentiable=(0, 1),
    )
    _add(
        "numpy",
        "max",
        two(lambda z: z.max(-1)),
        lambda x, y: max(x, y),
        arity=2,
        call=_pair(lambda m, z: z.max(-1)),
        differentiable=(0, 1),
    )
    _add(
        "numpy",
        "min",
        two(lambda z: z.min(-1)),
        lambda x, y: min(x, y),
        arity=2,
        call=_pair(lambda m, z: z.min(-1)),
        differentiable=(0, 1),
    )
    _add(
        "scipy",
        "special.logsumexp",
        two(lambda z: np.logaddexp(z[..., 0], z[..., 1])),
        log_sum,
        arity=2,
        call=_pair(lambda m, z: m.scipy.special.logsumexp(z, -1)),
        differentiable=(0, 1),
    )
    _add(
        "nn",
        "softmax",
        None,
        lambda x, y: _sigmoid(x - y),
        arity=2,
        call=_pair(lambda m, z: m.nn.softmax(z)[..., 0]),
        differentiable=(0, 1),
    )
    _add(
        "nn",
        "log_softmax",
        None,
        lambda x, y: -_softplus(y - x),
        arity=2,
        call=_pair(lambda m, z: m.nn.log_softmax(z)[..., 0]),
        differentiable=(0, 1),
    )


# --- functions of phlox.scipy.special ---------------------------------------------------------------------

#: Operands by which derivatives are judged; by default all. Those of incomplete functions, whose differences take mpmath
#: minutes, are in test_special_values.py.
_DIFFERENTIABLE = {
    "zeta": (), "polygamma": (), "bessel_jn": (0,), "expn": (1,), "factorial": (), "comb": (), "multigammaln": (0,), "gammasgn": (),
    "betainc": (), "gammainc": (), "gammaincc": (), "hyp1f1": (), "hyp2f1": (), "owens_t": (), "poch": (),
}  # fmt: skip
#: ends of domains, and roots and kinks
_ENDS = {
    "entr": (1.0,),
    "logit": (1.0, 0.999),
    "ndtri": (1.0, 0.5),
    "erfinv": (1.0,),
    "gamma": (2.0,),
    "digamma": (2.0,),
    "gammaln": (2.0, 3.0),
    "spence": (1.0, 2.0),
}


def _special() -> None:
    for name, domain in special_values.DOMAINS.items():
        base, _, part = name.partition(" ")
        judge = domain.edges or getattr(scipy.special, base)
        arity = len(domain.points)
        points = None if arity == 1 and base not in ("factorial", "multigammaln") else _points(name)
        if base in ("bessel_jn", "fresnel", "polygamma", "comb", "factorial", "multigammaln") or domain.whole:
            points = _points(name)

        def call(m: Any, *xs: Any, base: str = base, part: str = part, domain: Any = domain) -> Any:
            function = getattr(m.scipy.special, base)
            if domain.whole:
                xs = tuple(x.astype("int32") if i in domain.whole else x for i, x in enumerate(xs))
            if base == "multigammaln":
                return function(xs[0], domain.keywords["d"])
            out = function(*xs, **domain.keywords)
            if base == "bessel_jn":
                return out[domain.keywords["v"]]
            return out[int(part)] if part else out

        options = {"ends": _ENDS.get(base, ()), "differentiable": _DIFFERENTIABLE.get(base, tuple(range(arity)))}
        _add(
            "scipy",
            f"special.{name}",
            judge,
            domain.truth,
            arity=arity,
            call=call,
            wide=False,
            points=points,
            dtypes=("float32", "float64"),
            **options,
        )


#: Of these mpmath needs up to seconds for an operand of hundreds.
_SLOW = {"gammainc", "gammaincc", "betainc", "hyp1f1", "hyp2f1", "owens_t", "poch", "polygamma", "zeta"}


def _points(name: str) -> Callable[[str], list[np.ndarray]]:
    def points(dtype: str) -> list[np.ndarray]:
        columns = special_values.exact_points(name, "float64" if dtype == "float64" else "float32")
        slow = name in _SLOW
        if slow:
            kept = np.all([~((abs(x) > 40) & np.isfinite(x)) for x in columns], axis=0)
            columns = [x[kept] for x in columns]
        stride = max(1, len(columns[0]) // (25 if slow else 60))
        return [x[::stride] for x in columns]

    return points


_numpy_unary()
_numpy_binary()
_lax()
_nn()
_reductions()
_special()
