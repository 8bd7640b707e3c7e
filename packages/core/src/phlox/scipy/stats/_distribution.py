"""Makes the functions of a distribution from its formulas.

A module such as `gamma` declares the parameters of its distribution once, and then each function by a formula:

    @distribution(example="0.5, 2.0")
    def gamma(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Any:
        \"\"\"The gamma distribution.

        Args:
          a: shape parameter, positive; it broadcasts with `x`.
        \"\"\"

    cdf = gamma.cdf(lambda z, a: gammainc(a, z), result=0.09)

The declaration adds the promotion of the arguments, `loc` and `scale`, the docstring, the signature and `jit`.
`example` has the arguments of the examples in docstrings, and `result` what the function returns for them, rounded to
three digits.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base import source
from ..._operands.checks import type_of
from ..._operands.promotion import promoted_inexact
from ..._operands.short_floats import round_to, widen
from ...typing import Array, ArrayLike
from ._logarithms import log_share

if TYPE_CHECKING:
    from ..._api.jit.stages import Jitted

P = ParamSpec("P")
Q = ParamSpec("Q")

_SUMMARIES = {
    "pdf": "The density of {what} at `{x}`",
    "logpdf": "The logarithm of the density of {what} at `{x}`",
    "pmf": "The probability of `{x}` in {what}",
    "logpmf": "The logarithm of the probability of `{x}` in {what}",
    "cdf": "The probability that a number of {what} is at most `{x}`",
    "logcdf": "The logarithm of the probability that a number of {what} is at most `{x}`",
    "sf": "The probability that a number of {what} is above `{x}`",
    "logsf": "The logarithm of the probability that a number of {what} is above `{x}`",
    "ppf": "The inverse of `cdf` of {what}",
    "isf": "The inverse of `sf` of {what}",
}
_POINTS = {
    "x": "x: real array of any shape; integers are converted to floats.",
    "k": "k: whole numbers, an array of any shape; converted to floats.",
}
_PROBABILITIES = "{x}: probabilities, an array of any shape; integers are converted to floats."
_LOCATION = "loc: the shift of the distribution; it broadcasts with `{x}`."
_LOCATION_AND_SCALE = (
    "loc, scale: the shift of the distribution and the factor by which it is stretched (positive); they broadcast\n"
    "    with `{x}`."
)


def probability(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Any:
    """The parameters of `ppf` and `isf` of distributions without parameters of shape."""


def distribution(example: str) -> Callable[[Callable[P, Any]], Distribution[P]]:
    """Declares a distribution, for the function that it decorates: see the docstring of this module."""
    return lambda parameters: Distribution(parameters, example)


class Distribution(Generic[P]):
    """The parameters of a distribution, and methods that make its functions.

    The arguments of the formulas, promoted to one floating dtype, are

    - of densities ``z, *shape, scale``,
    - of probabilities and their logarithms ``z, *shape``,
    - of inverses ``q, *shape, loc, scale``.

    Here z is ``(x - loc) / scale``, ``k - loc`` or the argument itself, whichever the declared parameters allow, and
    `shape` are the parameters between the first one and `loc`. Where `scale` is not positive, z and q are nan.
    """

    def __init__(self, parameters: Callable[P, Any], example: str) -> None:
        self._parameters = parameters
        self._example = example
        self._name = parameters.__module__.rpartition(".")[2]
        summary, _, self._entries = inspect.cleandoc(parameters.__doc__ or "").partition("\n\nArgs:\n")
        self._what = summary.removesuffix(".").replace("The ", "the ", 1)
        #: formulas by the names of the functions
        self._formulas: dict[str, Callable[..., Any]] = {}

    def logpdf(self, formula: Callable[..., Any], result: float) -> Jitted[P, Array]:
        """The logarithm of the density."""
        return self._of_point("logpdf", formula, result)

    def pdf(self, formula: Callable[..., Any] | None = None, *, result: float) -> Jitted[P, Array]:
        """The density; without a formula by `logpdf`."""
        return self._of_point("pdf", formula or self._exp("logpdf"), result)

    def logpmf(self, formula: Callable[..., Any], result: float) -> Jitted[P, Array]:
        """The logarithm of the probability of a whole number."""
        return self._of_point("logpmf", formula, result)

    def pmf(self, formula: Callable[..., Any] | None = None, *, result: float) -> Jitted[P, Array]:
        """The probability of a whole number; without a formula by `logpmf`."""
        return self._of_point("pmf", formula or self._exp("logpmf"), result)

    def cdf(self, formula: Callable[..., Any] | None = None, *, result: float) -> Jitted[P, Array]:
        """The probability at and below a number; without a formula by `logcdf`."""
        return self._of_point("cdf", formula or self._exp("logcdf"), result)

    def sf(self, formula: Callable[..., Any] | None = None, *, result: float) -> Jitted[P, Array]:
        """The probability above a number; without a formula by `logsf`."""
        return self._of_point("sf", formula or self._exp("logsf"), result)

    def logcdf(self, formula: Callable[..., Any] | None = None, *, result: float) -> Jitted[P, Array]:
        """The logarithm of `cdf`; without a formula by `cdf` and `sf`, of which the smaller is accurate."""
        return self._of_point("logcdf", formula or self._log_share("cdf", "sf"), result)

    def logsf(self, formula: Callable[..., Any] | None = None, *, result: float) -> Jitted[P, Array]:
        """The logarithm of `sf`; without a formula by `cdf` and `sf`, of which the smaller is accurate."""
        return self._of_point("logsf", formula or self._log_share("sf", "cdf"), result)

    def ppf(
        self, parameters: Callable[Q, Any], formula: Callable[..., Any], example: str, result: float
    ) -> Jitted[Q, Array]:
        """The inverse of `cdf`, which has parameters of its own."""
        return self._of_probability("ppf", parameters, formula, example, result)

    def isf(
        self, parameters: Callable[Q, Any], formula: Callable[..., Any], example: str, result: float
    ) -> Jitted[Q, Array]:
        """The inverse of `sf`, which has parameters of its own."""
        return self._of_probability("isf", parameters, formula, example, result)

    def _exp(self, name: str) -> Callable[..., Any]:
        formula = self._formulas[name]
        return lambda *values: jnp.exp(formula(*values))

    def _log_share(self, name: str, other: str) -> Callable[..., Any]:
        share, complement = self._formulas[name], self._formulas[other]
        return lambda *values: log_share(share(*values), complement(*values))

    def _of_point(self, name: str, formula: Callable[..., Any], result: float) -> Any:
        self._formulas[name] = formula
        x, *others = _names(self._parameters)

        def standardized(point: Any, *arguments: Any) -> Any:
            values = list(arguments)
            if "scale" in others:
                *values, loc, scale = values
                # A scale that is not positive gives nan, as in SciPy.
                point = jnp.where(scale > 0, (point - loc) / scale, jnp.nan)
                # Densities change with the scale, probabilities do not.
                if name in ("pdf", "logpdf"):
                    values.append(scale)
            elif "loc" in others:
                *values, loc = values
                point = point - loc
            return formula(point, *values)

        return self._function(name, self._parameters, standardized, _POINTS[x], self._example, result)

    def _of_probability(
        self, name: str, parameters: Callable[..., Any], formula: Callable[..., Any], example: str, result: float
    ) -> Any:
        def masked(q: Any, *values: Any) -> Any:
            if "scale" in _names(parameters):
                q = jnp.where((q >= 0) & (q <= 1) & (values[-1] > 0), q, jnp.nan)
            return formula(q, *values)

        return self._function(name, parameters, masked, _PROBABILITIES, example, result)

    def _function(
        self,
        name: str,
        parameters: Callable[..., Any],
        evaluate: Callable[..., Any],
        entry: str,
        example: str,
        result: float,
    ) -> Any:
        """The public function. Floats shorter than 32 bits are computed in float32."""

        def rounded(*arguments: Any) -> Any:
            operands = promoted_inexact(f"{self._name}.{name}", *arguments)
            return round_to(evaluate(*map(widen, operands)), type_of(operands[0]).dtype)

        function: Any = _with_parameters(parameters, name, rounded)
        function.__module__ = self._parameters.__module__
        x, *others = _names(parameters)
        own = self._entries.replace("`x`", f"`{x}`").replace("`k`", f"`{x}`")
        entries = [own] if own.startswith(f"  {x}: ") else [f"  {entry}", own]
        entries += [f"  {_LOCATION_AND_SCALE}"] if "scale" in others else [f"  {_LOCATION}"] * ("loc" in others)
        nan = f"; nan where `{x}` is not between 0 and 1" if entry is _PROBABILITIES else ""
        function.__doc__ = (
            f"{_SUMMARIES[name].format(what=self._what, x=x)} (as ``scipy.stats.{self._name}.{name}``).\n\n"
            + "Args:\n"
            + "\n".join(filter(None, entries)).format(x=x)
            + f"\n\nReturns:\n  An array of the broadcast shape, of the promoted floating dtype{nan}.\n\n"
            "Raises:\n  ArgumentError: an argument is neither an array nor a number.\n"
            "  ShapeError: the shapes do not broadcast.\n\n"
            f">>> round(float({name}({example})), 3)\n{result}\n"
        )
        return jit(function, inline=True)


def _names(parameters: Any) -> tuple[str, ...]:
    code = parameters.__code__
    return code.co_varnames[: code.co_argcount]


def _with_parameters(parameters: Any, name: str, evaluate: Callable[..., Any]) -> Any:
    """The function `name` with these parameters, which calls `evaluate` with their values.

    Its code has the parameters, so that Python itself binds arguments and refuses wrong ones, and `jit` compiles one
    program for arguments by position and by name.
    """
    code = _calling_code(_names(parameters)).replace(co_name=name, co_qualname=name)
    function = FunctionType(code, {"evaluate": evaluate}, name, parameters.__defaults__)
    function.__annotations__ = {**parameters.__annotations__, "return": "Array"}
    return function


@functools.cache
def _calling_code(names: tuple[str, ...]) -> CodeType:
    """The code of a function with parameters of these names, which are the arguments of a call of `evaluate`."""
    listed = ", ".join(names)
    scope: dict[str, Any] = {}
    exec(compile(f"def function({listed}): return evaluate({listed})", f"{source.WRITTEN}distribution>", "exec"), scope)
    code: CodeType = scope["function"].__code__
    return code
