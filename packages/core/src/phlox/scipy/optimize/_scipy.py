"""The methods of `minimize` that SciPy runs on the host: L-BFGS-B and Nelder-Mead, with bounds.

A compiled program asks SciPy for the next point and tells it the value there, until SciPy is done: SciPy waits in a
thread of its own. So the objective is part of the program, like any other function: it may use traced values, and no
program is run from inside of another. `vmap` runs one search after the other.

The minimum is a root of ``x - clip(x - gradient(x), lower, upper)``, whose derivatives are those of the bound for a
variable that lies at one, and those of the implicit function theorem for the other variables. Without bounds it is a
root of the gradient, for JAX's methods too.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import numpy as np

from ... import lax, numpy as jnp
from ..._api.debug.callbacks import io_callback
from ..._api.derivatives.grad import jacfwd
from ..._api.jit.bodies import Staged
from ..._api.jit.programs import ShapeDtypeStruct
from ..._base import pytree
from ..._base.errors import ArgumentError, ShapeError
from ..._ir import dtypes
from ..._operands.checks import type_of
from ..._operands.promotion import to_dtype
from ..._trace.interpret import eval_jaxpr
from ...custom_batching import sequential_vmap

#: the names of SciPy, and whether the method takes gradients
HOSTED = {"l-bfgs-b": ("L-BFGS-B", True), "nelder-mead": ("Nelder-Mead", False)}

_numbers = itertools.count(1)
_searches: dict[int, _Search] = {}


class _Search:
    """One run of SciPy's `minimize`, in a thread that waits for values."""

    def __init__(self, method: str, gradients: bool, x0: Any, low: Any, high: Any, options: dict[str, Any]):
        self.points: SimpleQueue[Any] = SimpleQueue()
        self.values: SimpleQueue[Any] = SimpleQueue()
        self.gradients = gradients
        self.arguments = (
            method,
            np.array(x0, np.float64),
            np.array(low, np.float64),
            np.array(high, np.float64),
            options,
        )
        threading.Thread(target=self._run, name=f"minimize {method}", daemon=True).start()

    def _run(self) -> None:
        import scipy.optimize

        method, x0, low, high, options = self.arguments
        try:
            bounds = scipy.optimize.Bounds(low, high)
            result = scipy.optimize.minimize(
                self._value, x0, method=method, jac=self.gradients, bounds=bounds, options=options
            )
            self.points.put((result.x, result))
        except Exception as error:
            self.points.put((x0, error))

    def _value(self, x: Any) -> Any:
        self.points.put((x, None))
        answer = self.values.get()  # for ever, in a thread that ends with the process, if the program fails meanwhile
        return answer if self.gradients else answer[0]


def _answer(number: int, dtype: Any) -> tuple[Any, ...]:
    """The next point of a search, or its result: (number, x, finished, success, status, iterations, evaluations)."""
    x, result = _searches[number].points.get()
    if isinstance(result, Exception):
        del _searches[number]
        raise result
    counts = (0, 0, 0, 0)
    if result is not None:
        del _searches[number]
        counts = (bool(result.success), result.status, result.nit, result.nfev)
    return (np.int32(number), x.astype(dtype), np.bool_(result is not None), *(np.int32(n) for n in counts))


def _bounds(bounds: Any, shape: tuple[int, ...], dtype: Any) -> list[Any]:
    """The lower and the upper bounds, as vectors."""
    if bounds is None:
        bounds = (-np.inf, np.inf)
    elif hasattr(bounds, "lb") and hasattr(bounds, "ub"):  # scipy.optimize.Bounds
        bounds = (bounds.lb, bounds.ub)
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise ArgumentError(
            f"minimize: bounds must be a pair, got {bounds!r:.60}",
            instead="(lower, upper), two vectors or numbers; ±inf where there is no bound",
            argument="bounds",
        )
    pair = [jnp.asarray(b) for b in bounds]
    for b in pair:
        if type_of(b).shape not in ((), shape):
            raise ShapeError(
                f"minimize: bounds of {type_of(b).short} for x0 of shape {shape}",
                instead="(lower, upper), two vectors or numbers",
                shapes=[type_of(b).shape, shape],
            )
    return [jnp.broadcast_to(to_dtype(b, dtype), shape) for b in pair]


def _defaults(method: str, options: dict[str, Any], tol: Any, dtype: Any) -> dict[str, Any]:
    """SciPy's options, with tolerances that the precision of `dtype` can reach."""
    eps = float(dtypes.finfo(dtype).eps)
    # Without `tol` SciPy's own defaults; with it both tolerances of a method, as in SciPy.
    if method == "L-BFGS-B":
        rough = {"ftol": max(2.2e-9, 4 * eps), "gtol": 1e-5}
        exact = {"ftol": tol, "gtol": tol}
    else:
        rough = {"xatol": max(1e-4, 4 * eps), "fatol": max(1e-4, 4 * eps)}
        exact = {"xatol": tol, "fatol": tol}
    return {**(rough if tol is None else exact), **options}


def hosted(method: str, objective: Callable[[Any], Any], x0: Any, bounds: Any, tol: Any, options: Any) -> Any:
    """(x, success, status, iterations, evaluations) of a search; x has derivatives.

    `objective` is a function of x with results (value, gradient).
    """
    method, gradients = HOSTED[method.lower()]
    aval = type_of(x0)
    low, high = _bounds(bounds, aval.shape, aval.dtype)
    chosen = _defaults(method, options, tol, aval.dtype)
    word, flag = ShapeDtypeStruct((), np.int32), ShapeDtypeStruct((), np.bool_)
    shapes = (word, ShapeDtypeStruct(aval.shape, aval.dtype), flag, word, word, word, word)

    def evaluate(x: Any) -> Any:
        value, gradient = objective(x)
        return value, gradient if gradients else ()

    def start(x0: Any, low: Any, high: Any) -> Any:
        number = next(_numbers)
        _searches[number] = _Search(method, gradients, x0, low, high, chosen)
        return _answer(number, aval.dtype)

    def proceed(number: Any, value: Any, *gradient: Any) -> Any:
        _searches[int(number)].values.put((float(value), *(np.array(g, np.float64) for g in gradient)))
        return _answer(int(number), aval.dtype)

    program = Staged("minimize", "fun", evaluate, pytree.tree_structure((x0,)), [aval])

    # Batches run one search after the other, as each one is a conversation with its own thread.
    @sequential_vmap
    def search(x0: Any, low: Any, high: Any, values: Any) -> Any:
        def turn(state: Any) -> Any:
            value, *gradient = eval_jaxpr(program.closed.jaxpr, [], *values, state[1])
            return io_callback(proceed, shapes, state[0], value, *gradient)

        state = lax.while_loop(lambda state: ~state[2], turn, io_callback(start, shapes, x0, low, high))
        return state[1], state[3:]

    def residual(x: Any) -> Any:
        # The minimum in the box is a fixed point of a gradient step that is clipped to the bounds.
        return x - jnp.clip(x - objective(x)[1], low, high)

    return root(residual, x0, lambda x0: search(x0, low, high, list(program.consts)))


def root(residual: Callable[[Any], Any], x0: Any, search: Callable[[Any], Any]) -> Any:
    """(x, more) of ``search(x0)``; the equation ``residual(x) = 0`` gives x its derivatives, as the search has none."""

    def solve_linear(g: Callable[[Any], Any], y: Any) -> Any:
        wide = jnp.promote_types(type_of(y).dtype, dtypes.float32)  # LAPACK has no half precision
        return to_dtype(jnp.linalg.solve(to_dtype(jacfwd(g)(y), wide), to_dtype(y, wide)), type_of(y).dtype)

    return lax.custom_root(residual, x0, lambda _, x0: search(x0), solve_linear, has_aux=True)
