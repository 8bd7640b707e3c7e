"""`minimize`: the arguments and the result of all methods."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ... import lax, numpy as jnp
from ..._api.derivatives.grad import value_and_grad
from ..._api.jit.jit import jit
from ..._base.errors import ArgumentError, DtypeError, OptionError, ShapeError
from ..._base.strictness import lenient, users
from ..._ir import dtypes
from ..._operands.checks import check_one, type_of
from ..._operands.promotion import to_dtype
from ...typing import Array
from ._bfgs import bfgs
from ._iteration import Iteration
from ._lbfgs import lbfgs
from ._line_search import Objective
from ._scipy import HOSTED, hosted, root

METHODS: dict[str, Any] = {"bfgs": bfgs, "l-bfgs-experimental-do-not-rely-on-this": lbfgs}


class OptimizeResults(NamedTuple):
    """The minimum that `minimize` found, and how.

    Attributes:
      x: the argument of the lowest value found.
      success: whether the gradient at `x` is as small as asked; for SciPy's methods what SciPy says.
      status: 0 where it is; 1 after the largest number of iterations; of BFGS, 3 where a line search has narrowed to
        nothing and 5 where it has gone outwards too often; of L-BFGS, 2 and 3 after the largest number of values and
        gradients, 4 where a step gained too little, 5 after a line search without a solution; else SciPy's.
      fun: the value at `x`.
      jac: the gradient at `x`.
      hess_inv: the estimate of the inverse Hessian; None of methods that have none.
      nfev: number of evaluations of the function.
      njev: number of evaluations of the gradient.
      nit: number of iterations.
    """

    x: Array
    success: bool | Array
    status: int | Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: int | Array
    njev: int | Array
    nit: int | Array


@lenient
def minimize(
    fun: Callable[..., Any],
    x0: Array,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
    bounds: Any = None,
) -> OptimizeResults:
    """A local minimum of a function of a vector (as ``scipy.optimize.minimize``).

    The methods of JAX, 'BFGS' and 'l-bfgs-experimental-do-not-rely-on-this', run on the device. 'L-BFGS-B' and
    'Nelder-Mead' are SciPy's own, which take bounds: SciPy chooses the points on the host, and the program evaluates
    `fun` there; `vmap` runs one search after the other. `x` has derivatives with respect to all that `fun` depends on,
    and to the bounds, by the implicit function theorem, at the cost of a dense Hessian, and so have `fun` and `jac`;
    the other results have none.

    Args:
      fun: function ``fun(x, *args)`` with a real scalar result, which can be differentiated.
      x0: first guess, a vector of floats; for L-BFGS also of complex numbers.
      args: further arguments of `fun`, a tuple.
      method: 'BFGS', whose memory grows with the square of the number of variables;
        'l-bfgs-experimental-do-not-rely-on-this' or 'L-BFGS-B', which remember some steps only; 'Nelder-Mead', which
        uses values alone, for functions whose gradients do not lead to the minimum.
      tol: the largest norm of the gradient that counts as zero; ``options["gtol"]`` goes before it. For SciPy's methods
        all their tolerances.
      options: for JAX's methods `maxiter`, `norm` (the order of the norm, inf by default) and `gtol`; for BFGS
        `line_search_maxiter`; for L-BFGS `maxcor`, `ftol`, `maxfun`, `maxgrad` and `maxls`. For SciPy's methods the
        options of SciPy.
      bounds: for SciPy's methods a pair (lower, upper) of vectors or numbers, with ±inf where there is no bound, or a
        ``scipy.optimize.Bounds``.

    Returns:
      An `OptimizeResults`.

    Raises:
      OptionError: an unknown method, or one that takes no bounds.
      ArgumentError: `args` is no tuple, or the method has no such option.
      ShapeError: `x0` is not a vector, or bounds have another shape.
      DtypeError: `x0` has no floats, or complex numbers for BFGS.

    >>> result = minimize(lambda x, center: ((x - center) ** 2).sum(), jnp.zeros(2), (3.0,), method="BFGS")
    >>> result.x.round(), bool(result.success)
    (Array([3., 3.], dtype=float32), True)
    >>> def nearest(center):
    ...     f = lambda x: ((x - center) ** 2).sum()
    ...     return minimize(f, jnp.zeros(2), method="L-BFGS-B", bounds=(0.0, jnp.array([1.0, 9.0]))).x.sum()
    >>> phlox.value_and_grad(nearest)(3.0)
    (Array(4., dtype=float32), Array(1., dtype=float32, weak_type=True))
    """
    chosen: Any = METHODS.get(method.lower())
    on_host = method.lower() in HOSTED
    if chosen is None and not on_host:
        raise OptionError(f"minimize: method={method!r}", instead="'BFGS', 'L-BFGS-B' or 'Nelder-Mead'")
    if bounds is not None and not on_host:
        raise OptionError(f"minimize: {method} takes no bounds", instead="method='L-BFGS-B' or 'Nelder-Mead'")
    if not isinstance(args, tuple):
        raise ArgumentError(f"minimize: args must be a tuple, got {args!r:.60}", instead="(args,)", argument="args")
    options = {} if options is None else dict(options)
    if not on_host:
        # The options of a method are its parameters after the function and the start.
        known = chosen.__code__.co_varnames[2 : chosen.__code__.co_argcount]
        if unknown := sorted(set(options) - set(known)):
            raise ArgumentError(f"minimize: {method} has no option {', '.join(unknown)}", instead=", ".join(known))
        if tol is not None:
            options.setdefault("gtol", tol)
    x0 = check_one("minimize", x0)
    kind = dtypes.kind(type_of(x0).dtype)
    if kind != "f" and (kind != "c" or chosen is not lbfgs):
        raise DtypeError(f"minimize: x0 has {type_of(x0).short}", instead="a vector of floats")
    if type_of(x0).ndim != 1:
        raise ShapeError(
            f"minimize: x0 must be a vector, got {type_of(x0).short}",
            instead="phlox.flatten_util.ravel_pytree, which makes a vector of any tree",
            shapes=[type_of(x0).shape],
        )
    objective = value_and_grad(users(fun))

    def run(x0: Any) -> OptimizeResults:
        real = dtypes.real_part(type_of(x0).dtype)
        kinds = []

        def f(x: Any) -> tuple[Any, Any]:
            value, gradient = objective(x, *args)
            kinds.append(type_of(value).dtype)
            return to_dtype(value, real), gradient

        if on_host:
            x, (success, status, steps, evaluations) = hosted(method, f, x0, bounds, tol, options)
            value, gradient = f(x)
            gradients = evaluations if HOSTED[method.lower()][1] else 0
            value = to_dtype(value, kinds[0])
            return OptimizeResults(x, success != 0, status, value, gradient, None, evaluations, gradients, steps)
        x, last = _iterated(functools.partial(chosen, f, **options), f, to_dtype(x0, type_of(x0).dtype))
        value, gradient = f(x)
        inverse = last.memory if chosen is bfgs else None
        state = x, to_dtype(last.status == 0, dtypes.bool_), last.status, to_dtype(value, kinds[0]), gradient
        return OptimizeResults(*state, inverse, last.evaluations, last.evaluations, last.steps)

    return jit(run)(jnp.asarray(x0))


def _iterated(method: Callable[[Any], Iteration], f: Objective, x0: Any) -> tuple[Any, Iteration]:
    """(x, the last iteration) of a method of JAX. `x` has derivatives, by its real and imaginary parts if complex."""
    is_complex = dtypes.kind(type_of(x0).dtype) == "c"

    def to_reals(x: Any) -> Any:
        return jnp.concatenate([jnp.real(x), jnp.imag(x)]) if is_complex else x

    def from_reals(parts: Any) -> Any:
        return lax.complex(*jnp.split(parts, 2)) if is_complex else parts

    def search(parts: Any) -> tuple[Any, Iteration]:
        last = method(from_reals(parts))
        return to_reals(last.x), last

    parts, last = root(lambda parts: to_reals(f(from_reals(parts))[1]), to_reals(x0), search)
    return from_reals(parts), last
