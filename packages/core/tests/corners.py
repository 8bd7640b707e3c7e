"""Every function at the corners of its operands: values and derivatives beside those of mpmath, NumPy and SciPy.

`sweep(name)` calls one function of `corner_functions.FUNCTIONS` at zeros, subnormal numbers, the smallest and largest
normal ones, infinities, nan, ends of its domain and of the range of its result, with operands of every kind of dtype, as
a short and as a long array, as numbers and as empty arrays. `scripts/corners.py` makes docs/corners.md of it, and
`conformance/test_corners.py` runs a tenth a day.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import mpmath
import numpy as np

import corner_truth
import phlox
from corner_functions import FUNCTIONS, Case

FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("bool", "int8", "uint8", "int32", "uint32", "int64")

#: Columns of the page: classes of operands, then forms of arguments.
CORNERS = ("zero", "subnormal", "tiny", "end", "largest", "inf", "nan")
COLUMNS = (*CORNERS, "integers", "empty", "rank 0")

#: XLA on CPUs has forms of its own for arrays of so many elements.
LONG = 1024

#: Errors allowed in values and in first and second derivatives, in units of eps, relative to the result.
TOLERANCE = {"value": 64, "first": 256, "second": 4096}
#: Those of 16 bits compute in float32 and round once or a few times.
NARROW_TOLERANCE = {"value": 4, "first": 8, "second": 64}


@dataclasses.dataclass(frozen=True)
class Difference:
    """A result that is not the truth: where, and both."""

    name: str
    what: str  # value, first, second, or raises
    corners: frozenset[str]
    dtype: str
    operands: tuple[Any, ...]
    argument: int
    result: Any
    truth: Any
    flushed: bool = False  # whether it is the truth of zeros in place of subnormal numbers

    def __str__(self) -> str:
        by = f" by operand {self.argument}" if self.what in ("first", "second") else ""
        at = ", ".join(str(x) for x in self.operands)
        return f"{self.name}({at}) {self.dtype}: {self.what}{by} {self.result}, truth {self.truth}"


def dtype_of(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name) if name == "bfloat16" else name)


def _finfo(name: str) -> Any:
    return ml_dtypes.finfo(dtype_of(name))


# --- operands -------------------------------------------------------------------------------------------


def corners_of(x: Any, dtype: str, case: Case) -> set[str]:
    """The classes to which one operand belongs."""
    if isinstance(x, complex | np.complexfloating):
        return corners_of(x.real, dtype, case) | corners_of(x.imag, dtype, case)
    info, size = _finfo(dtype), abs(x)
    if np.isnan(x):
        return {"nan"}
    if size == 0:
        return {"zero"}
    if np.isinf(x):
        return {"inf"}
    if size < info.tiny:
        return {"subnormal"}
    if size <= np.sqrt(float(info.tiny)) * 1.1:
        return {"tiny"}
    if size >= np.sqrt(float(info.max)) / 1.1:
        return {"largest"}
    return {"end"} if x in case.ends or x not in USUAL else set()


#: numbers that are no corners, beside which corners of two operands stand
USUAL = (0.5, 1.0, 2.0, -1.0, -3.0)


def _common(dtype: str, arity: int) -> list[float]:
    info = _finfo(dtype)
    tiny, largest = float(info.tiny), float(info.max)
    one_sided = [0.0, tiny / 8, tiny, np.sqrt(largest), largest, np.inf]
    if arity == 1:
        one_sided += [np.sqrt(tiny), largest / 2]
    return [*one_sided, *(-x for x in one_sided), np.nan]


def _is_inside(case: Case, dtype: str, x: float, test: Callable[[float], bool]) -> bool:
    """Whether the result at `x`, rounded to the dtype, is one that passes."""
    (value,) = case.truth(dtype, np.array([x]))
    if value is None:
        return False
    with np.errstate(over="ignore"):
        return bool(test(float(np.asarray(value).astype(dtype_of(dtype)))))


def _range_ends(case: Case, dtype: str) -> list[float]:
    """The last numbers whose results the dtype has, and those a little before: where results overflow or underflow."""
    info = _finfo(dtype)
    ends = []
    for sign in (1.0, -1.0):
        for is_inside in (lambda y: np.isfinite(y), lambda y: abs(y) >= float(info.tiny)):
            exponents = [0.0, float(info.maxexp) - 0.1]
            at = lambda e, sign=sign: float(np.asarray(sign * 2.0**e).astype(dtype_of(dtype)).astype(float))
            inside = lambda e, test=is_inside: _is_inside(case, dtype, at(e), test)
            if inside(exponents[0]) and not inside(exponents[1]):
                for _ in range(30):
                    middle = sum(exponents) / 2
                    exponents[0 if inside(middle) else 1] = middle
                ends += [at(exponents[0]), at(exponents[0] - 0.002), at(exponents[0] - 0.02)]
    return ends


def operands(case: Case, dtype: str) -> list[np.ndarray]:
    """An array for each operand: all combinations of corners, rounded to the dtype."""
    if dtype in INTEGERS:
        return _integer_operands(case, dtype)
    if case.points is not None:
        columns = case.points(dtype)
    elif dtype in COMPLEX:
        columns = _complex_operands(case, dtype)
    else:
        numbers = [*_common(dtype, case.arity), *USUAL, *case.ends, *(-x for x in case.ends)]
        if case.arity == 1:
            numbers += _range_ends(case, dtype)
        columns = _products([numbers] * case.arity)
    with np.errstate(all="ignore"):
        return [x.astype(dtype_of(dtype)) for x in columns]


def _products(axes: list[list[Any]]) -> list[np.ndarray]:
    unique = [
        list({(str(x), np.signbit(np.real(x)), np.signbit(np.imag(x))): x for x in axis}.values()) for axis in axes
    ]
    return [x.ravel() for x in np.meshgrid(*map(np.asarray, unique), indexing="ij")]


def _complex_operands(case: Case, dtype: str) -> list[np.ndarray]:
    info = np.finfo(dtype)
    parts = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, np.inf, -np.inf, np.nan]
    parts += [float(info.tiny), -float(info.tiny), float(info.max) / 4, -float(info.max) / 4]
    if case.arity > 1:
        parts = [0.0, -0.0, 1.0, -2.0, float(info.tiny), float(info.max) / 4, np.inf, np.nan]
    axis = [complex(a, b) for a in parts for b in parts]
    return _products([axis] * case.arity)


def _integer_operands(case: Case, dtype: str) -> list[np.ndarray]:
    if dtype == "bool":
        return _products([[False, True]] * case.arity)
    info = np.iinfo(dtype)
    numbers = sorted({int(info.min), int(info.max), 0, 1, 2, 7, *([-1, -7] if info.min else [])})
    return [x.astype(dtype) for x in _products([numbers] * case.arity)]


def columns_of(name: str) -> tuple[str, ...]:
    """The columns of the page that the function has."""
    case = FUNCTIONS[name]
    corners = set(CORNERS) if case.points is None and set(case.dtypes) - set(INTEGERS) else set()
    if case.points is not None:
        points = zip(*operands(case, "float32"), strict=True)
        corners = set().union(*(corners_of(x, "float32", case) for point in points for x in point)) & set(CORNERS)
    if set(case.dtypes) & set(INTEGERS):
        corners.add("integers")
    return tuple(c for c in COLUMNS if c in corners or c in ("empty", "rank 0"))


def count_of(name: str) -> int:
    """The number of operands of all dtypes with which the function is called."""
    case = FUNCTIONS[name]
    return sum(len(operands(case, dtype)[0]) for dtype in case.dtypes)


# --- results --------------------------------------------------------------------------------------------


def _calls(case: Case) -> dict[str, Callable[..., Any]]:
    """The value, and first and second derivatives by each operand, of elementwise operands."""
    function = case.function(phlox)

    def slope(i: int, fun: Callable[..., Any]) -> Callable[..., Any]:
        def by_operand(*xs: Any) -> Any:
            out, pull = phlox.vjp(lambda x: fun(*xs[:i], x, *xs[i + 1 :]), xs[i])
            return pull(phlox.numpy.ones_like(out))[0]

        return by_operand

    calls = {"value": function}
    for i in case.differentiable:
        calls[f"first {i}"] = slope(i, function)
        if case.arity == 1:
            calls[f"second {i}"] = slope(i, slope(i, function))
    return calls


def _has(case: Case, dtype: str, what: str) -> bool:
    """Whether this is computed for operands of the dtype; the rules of derivatives are the same for all dtypes."""
    if what == "value":
        return True
    return dtype in (("float32", "float64") if what == "first" and case.arity == 1 else ("float32",))


def _unwiden(dtype: str) -> bool:
    return dtype in ("float64", "complex128", "int64")


def sweep(name: str, dtypes: tuple[str, ...] = (*FLOATS, *COMPLEX, *INTEGERS)) -> Iterator[Difference]:
    """The differences from the truth of one function."""
    case = FUNCTIONS[name]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for dtype in dtypes:
            if dtype in case.dtypes:
                with phlox.enable_x64(_unwiden(dtype)):
                    yield from _sweep_dtype(name, case, dtype)


def _sweep_dtype(name: str, case: Case, dtype: str) -> Iterator[Difference]:
    columns = operands(case, dtype)
    count = len(columns[0])
    calls = _calls(case)
    calls = {key: call for key, call in calls.items() if _has(case, dtype, key.partition(" ")[0])}
    for key, call in calls.items():
        what, _, argument = key.partition(" ")
        truths = corner_truth.truths(case, dtype, columns, what, int(argument or 0))
        forms = [columns]
        if what == "value" and dtype == "float32" and count < LONG:
            forms.append([np.resize(x, LONG) for x in columns])
        jitted = phlox.jit(call)
        told = set()
        for arrays in forms:
            results = np.asarray(jitted(*arrays))[:count]
            for i in range(count):
                point = tuple(x[i] for x in columns)
                if i not in told and not truths[i].allows(results[i], dtype, what):
                    told.add(i)
                    flushed = _is_flushed(case, dtype, point, what, int(argument or 0), results[i])
                    yield _difference(
                        name, case, what, dtype, point, int(argument or 0), results[i], truths[i], flushed
                    )
    yield from _sweep_forms(name, case, dtype, columns)


def _difference(
    name: str,
    case: Case,
    what: str,
    dtype: str,
    point: tuple[Any, ...],
    argument: int,
    result: Any,
    truth: Any,
    flushed: bool,
) -> Difference:
    corners = {"integers"} if dtype in INTEGERS else set().union(*(corners_of(x, dtype, case) for x in point))
    return Difference(name, what, frozenset(corners or {"end"}), dtype, point, argument, result, truth, flushed)


def _is_flushed(case: Case, dtype: str, point: tuple[Any, ...], what: str, argument: int, result: Any) -> bool:
    """Whether the result is right for an operand of zero in place of a subnormal one, as processors are set by XLA."""
    if dtype in (*INTEGERS, *COMPLEX):
        return False
    tiny = float(_finfo(dtype).tiny)
    zeros = [np.copysign(0, x) if abs(x) < tiny else x for x in map(float, point)]
    if zeros == [float(x) for x in point]:
        return False
    columns = [np.array([x]).astype(dtype_of(dtype)) for x in zeros]
    (truth,) = corner_truth.truths(case, dtype, columns, what, argument)
    return truth.allows(result, dtype, what)


def _sweep_forms(name: str, case: Case, dtype: str, columns: list[np.ndarray]) -> Iterator[Difference]:
    """Empty arrays and numbers: as the array form."""
    if dtype not in ("float32", "complex64", "int32", "bool"):
        return
    function = phlox.jit(case.function(phlox))
    for shape in ((0,), (2, 0, 3)):
        try:
            result = np.asarray(function(*(np.zeros(shape, x.dtype) for x in columns)))
            same = result.shape == shape
        except Exception as error:
            result, same = error, False
        if not same:
            yield Difference(
                name, "value", frozenset({"empty"}), dtype, (f"shape {shape}",), 0, result, f"shape {shape}"
            )
    whole = np.asarray(function(*columns))
    places = range(0, len(whole), max(1, len(whole) // 3))
    for i in places:
        # Where complex products overflow, XLA's code for vectors has nan and that for numbers may have none.
        if dtype == "complex64" and not np.isfinite(whole[i]):
            continue
        single = np.asarray(case.function(phlox)(*(x[i] for x in columns)))
        truth = corner_truth.Truth(whole[i], strict_zero=True)
        if single.shape != () or not truth.allows(single[()], dtype, "value"):
            point = tuple(x[i] for x in columns)
            yield Difference(name, "value", frozenset({"rank 0"}), dtype, point, 0, single, whole[i])


mpmath.mp.dps = 40
