"""For every primitive at least one example of its use: arguments and parameters. `test_registry.py` checks them all.

An argument is a NumPy array, made from a fixed seed. Floats are double precision, so that numeric derivatives are
sharp; the tests run in x64 mode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.special

import phlox
import phlox.numpy as jnp
from judge import rng
from phlox._ir.jaxpr import ClosedJaxpr
from phlox._ir.primitive import primitive
from phlox._ops.control.custom_rules import Rule
from phlox._ops.control.custom_vmap import BatchRule
from phlox._ops.linalg.dot import Precision
from phlox._ops.linalg.fft import FftType
from phlox._ops.linalg.solve import LinearSolve
from phlox._ops.random.generators import THREEFRY
from phlox._ops.random.rng import RandomAlgorithm
from phlox._ops.structure.dimension_numbers import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from phlox._ops.windows.conv import ConvDimensionNumbers
from phlox._xla.mesh import Mesh
from phlox._xla.partition_spec import PartitionSpec


class Example(NamedTuple):
    """One use of a primitive. `linear` are arguments that it is linear in when the others are held fixed; `along`
    makes of any direction one in which the derivative is defined.

    `fixed` are arguments that have neither derivative nor batch: initial values of reductions.
    """

    args: tuple[Any, ...]
    params: dict[str, Any]
    linear: tuple[tuple[int, ...], ...] = ()
    along: Callable[[np.ndarray], np.ndarray] = lambda t: t
    fixed: tuple[int, ...] = ()


def floats(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 0) -> np.ndarray:
    return rng("floats", shape, low, high, seed).uniform(low, high, shape)


def distinct(*shape: int, seed: int = 0) -> np.ndarray:
    """Floats that keep a distance from each other and from zero, so that order does not change by small steps."""
    n = int(np.prod(shape))
    return (rng("distinct", shape, seed).permutation(n).reshape(shape) - n / 2 + 0.25) * 0.5


def ints(*shape: int, low: int = -4, high: int = 5, dtype: Any = np.int32) -> np.ndarray:
    return rng("ints", shape, low, high).integers(low, high, shape).astype(dtype)


def bools(*shape: int) -> np.ndarray:
    return rng("bools", shape).integers(0, 2, shape).astype(bool)


def complexes(*shape: int) -> np.ndarray:
    return floats(*shape) + 1j * floats(*shape, seed=1)


def keys(*shape: int) -> Any:
    base = phlox.random.key(7)
    return phlox.random.split(base, shape) if shape else base


#: Functions of one operand, by name: the range of the operand, the function in NumPy or SciPy, and the values of its
#: parameters, if it has any. Values are compared, those for complex numbers too where the primitive takes them.
#: Functions that JAX does not have are tested here alone.
FORMULAS: dict[str, tuple[float, float, Callable[..., Any], *tuple[dict[str, Any], ...]]] = {
    "square": (-2.0, 2.0, np.square),
    "one_minus_square": (-2.0, 2.0, lambda x: 1 - x * x),
    "exp_minus_square": (-2.0, 2.0, lambda x: np.exp(-x * x)),
    "sqrt": (0.2, 3.0, np.sqrt),
    "rsqrt": (0.2, 3.0, lambda x: 1 / np.sqrt(x)),
    "cbrt": (0.2, 3.0, np.cbrt),
    "exp": (-2.0, 2.0, np.exp),
    "exp2": (-2.0, 2.0, lambda x: 2**x),
    "expm1": (-2.0, 2.0, np.expm1),
    "log": (0.2, 3.0, np.log),
    "log1p": (0.2, 3.0, np.log1p),
    "log2": (0.2, 3.0, np.log2),
    "log10": (0.2, 3.0, np.log10),
    "logistic": (-2.0, 2.0, lambda x: 1 / (1 + np.exp(-x))),
    "sin": (-2.0, 2.0, np.sin),
    "cos": (-2.0, 2.0, np.cos),
    "tan": (-0.9, 0.9, np.tan),
    "asin": (-0.9, 0.9, np.arcsin),
    "acos": (-0.9, 0.9, np.arccos),
    "atan": (-2.0, 2.0, np.arctan),
    "sinh": (-2.0, 2.0, np.sinh),
    "cosh": (-2.0, 2.0, np.cosh),
    "tanh": (-2.0, 2.0, np.tanh),
    "asinh": (-2.0, 2.0, np.arcsinh),
    "acosh": (1.2, 3.0, np.arccosh),
    "atanh": (-0.9, 0.9, np.arctanh),
    "erf": (-2.0, 2.0, scipy.special.erf),
    "erfc": (-2.0, 2.0, scipy.special.erfc),
    "erf_inv": (-0.9, 0.9, scipy.special.erfinv),
}
#: Functions of two operands: the range of both, the function, and the operands that it is linear in, together or alone.
FORMULAS_OF_TWO: dict[str, tuple[float, float, Callable[..., Any], *tuple[tuple[int, ...], ...]]] = {
    "add": (-2.0, 2.0, np.add, (0, 1)),
    "add_any": (-2.0, 2.0, np.add, (0, 1)),
    "sub": (-2.0, 2.0, np.subtract, (0, 1)),
    "mul": (-2.0, 2.0, np.multiply, (0,), (1,)),
    "div": (0.5, 2.0, np.divide, (0,)),
    "rem": (0.6, 3.0, np.fmod),
    "pow": (0.3, 2.0, np.power),
    "max": (-2.0, 2.0, np.maximum),
    "min": (-2.0, 2.0, np.minimum),
    "atan2": (-2.0, 2.0, np.arctan2),
    "logaddexp": (-2.0, 2.0, np.logaddexp),
    "igamma": (0.5, 4.0, scipy.special.gammainc),
    "igammac": (0.5, 4.0, scipy.special.gammaincc),
}


def _unary(low: float = -2.0, high: float = 2.0, **params: Any) -> list[Example]:
    return [Example((floats(3, 2, low=low, high=high),), params), Example((floats(low=low, high=high),), params)]


def _binary(low: float = -2.0, high: float = 2.0, linear: Sequence[tuple[int, ...]] = ()) -> list[Example]:
    linear = tuple(linear)
    x, y = distinct(3, 2), distinct(3, 2, seed=1) + 0.1
    if low >= 0:
        x, y = floats(3, 2, low=low, high=high), floats(3, 2, low=low, high=high, seed=1)
    row = floats(1, 2, low=low, high=high, seed=2)
    return [
        Example((x, y), {}, linear),
        Example((x, y.ravel()[0]), {}, linear),
        Example((x.ravel()[0], y), {}, linear),
        Example((row, y), {}, linear),
    ]


def _bits(positive: bool = False) -> list[Example]:
    low = 0 if positive else -4
    return [Example((ints(3, 2, low=low), ints(3, 2, low=0)), {}), Example((ints(3, low=low), ints(low=0)), {})]


def _jaxpr(fun: Callable[..., Any], *args: Any) -> ClosedJaxpr:
    closed = phlox.make_jaxpr(fun)(*args)
    assert not closed.consts
    return closed


_GATHER = {
    "dimension_numbers": GatherDimensionNumbers((1,), (0,), (0,)),
    "slice_sizes": (1, 2),
    "unique_indices": False,
    "indices_are_sorted": False,
    "fill_value": None,
}
_SCATTER = {
    "dimension_numbers": ScatterDimensionNumbers((1,), (0,), (0,)),
    "indices_are_sorted": False,
    "unique_indices": False,
}


def _gathers() -> list[Example]:
    x, inside, outside = floats(5, 3), np.array([[0], [4], [1]], np.int32), np.array([[0], [9], [-3]], np.int32)
    modes = {m.name: m for m in GatherScatterMode}
    found = [Example((x, inside), {**_GATHER, "mode": mode}, ((0,),)) for mode in modes.values()]
    found.append(Example((x, outside), {**_GATHER, "mode": modes["CLIP"]}, ((0,),)))
    found.append(Example((x, outside), {**_GATHER, "mode": modes["FILL_OR_DROP"], "fill_value": 0.0}, ((0,),)))
    batching = GatherDimensionNumbers((), (1,), (1,), (0,), (0,))
    rows = {**_GATHER, "dimension_numbers": batching, "slice_sizes": (1, 1), "mode": modes["CLIP"]}
    found.append(Example((floats(4, 3), ints(4, 2, 1, low=0, high=3)), rows, ((0,),)))
    return found


def _scatters(unique: bool = False, linear: tuple[tuple[int, ...], ...] = ()) -> list[Example]:
    x, updates = distinct(5, 2), distinct(3, 2, seed=1) + 0.1
    where = np.array([[0], [4], [1]] if unique else [[0], [4], [0]], np.int32)
    outside = np.array([[0], [9], [2]], np.int32)
    params = {**_SCATTER, "unique_indices": unique}
    modes = {m.name: m for m in GatherScatterMode}
    return [
        Example((x, where, updates), {**params, "mode": modes["CLIP"]}, linear),
        Example((x, outside, updates), {**params, "mode": modes["FILL_OR_DROP"]}, linear),
    ]


def _whole_batch(fun: Callable[..., Any], size: int, batched: list[bool], xs: list[Any]) -> Any:
    wide = [x if there else jnp.stack([x] * size) for x, there in zip(xs, batched, strict=True)]
    outs = list(fun(*wide))
    return outs, [True] * len(outs)


def _convolutions() -> list[Example]:
    in_order = ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2))
    channels_last = ConvDimensionNumbers((0, 2, 1), (2, 1, 0), (1, 2, 0))
    plain: dict[str, Any] = {
        "window_strides": (1,),
        "padding": ((0, 0),),
        "lhs_dilation": (1,),
        "rhs_dilation": (1,),
        "dimension_numbers": in_order,
        "feature_group_count": 1,
        "batch_group_count": 1,
        "precision": None,
        "preferred_element_type": None,
    }
    dilated = {"window_strides": (2,), "padding": ((2, -1),), "lhs_dilation": (3,), "rhs_dilation": (2,)}
    x, w = floats(2, 4, 5), floats(6, 4, 2)
    both = ((0,), (1,))
    return [
        Example((x, w), plain, both),
        Example((x, w), {**plain, **dilated}, both),
        Example((floats(2, 5, 3), floats(2, 3, 4)), {**plain, "dimension_numbers": channels_last}, both),
        Example((x, floats(6, 2, 2)), {**plain, "feature_group_count": 2}, both),
        Example((floats(4, 3, 5), floats(6, 3, 2)), {**plain, **dilated, "batch_group_count": 2}, both),
        Example((complexes(2, 1, 4), complexes(2, 1, 2)), plain, both),
    ]


def _windows() -> dict[str, list[Example]]:
    ge, le = primitive("ge"), primitive("le")
    plain: dict[str, Any] = {"window_dimensions": (2, 3), "window_strides": (1, 2), "padding": ((1, 0), (0, 2))}
    still = {"base_dilation": (1, 1), "window_dilation": (1, 1)}
    gaps = {"base_dilation": (2, 1), "window_dilation": (1, 2)}
    x, t = distinct(4, 5), floats(4, 5)
    places = floats(4, 3)
    scalar = np.float64(0.0)
    product = _jaxpr(lambda a, b: (a * b + a + b,), scalar, scalar)
    together = _jaxpr(lambda a, i, b, j: (a + b, jnp.maximum(i, j)), scalar, scalar, scalar, scalar)
    at_least, plus = _jaxpr(lambda a, b: (a >= b,), scalar, scalar), _jaxpr(lambda a, b: (a + b,), scalar, scalar)
    low = np.float64(-np.inf)
    return {
        "reduce_window_sum": [Example((t,), {**plain, **dilation}, ((0,),)) for dilation in (still, gaps)],
        "reduce_window_max": [Example((x,), {**plain, **dilation}) for dilation in (still, gaps)],
        "reduce_window_min": [Example((x,), {**plain, **still})],
        "select_and_gather_add": [
            Example((t, x), {"select_prim": ge, **plain, **still}, ((0,),)),
            Example((t, x), {"select_prim": le, **plain, **still, "base_dilation": (2, 1)}, ((0,),)),
        ],
        "select_and_scatter_add": [Example((places, x), {"select_prim": way, **plain}, ((0,),)) for way in (ge, le)],
        "reduce": [
            Example((x, scalar), {"jaxpr": product, "dimensions": (1,)}, fixed=(1,)),
            Example((t, x, scalar, low), {"jaxpr": together, "dimensions": (0, 1)}, fixed=(2, 3)),
        ],
        "reduce_window": [
            Example((t, scalar), {"jaxpr": product, **plain, **still}, fixed=(1,)),
            Example((t, x, scalar, low), {"jaxpr": together, **plain, **gaps}, fixed=(2, 3)),
        ],
        "select_and_scatter": [
            Example(
                (x, floats(2, 2), scalar),
                {
                    "select_jaxpr": at_least,
                    "scatter_jaxpr": plus,
                    "window_dimensions": (2, 2),
                    "window_strides": (2, 2),
                    "padding": ((0, 0), (0, 0)),
                },
            )
        ],
        "first_places": [Example((x > 0,), {"size": size, "index_dtype": np.dtype("i4")}) for size in (2, 5)],
        "top_k": [Example((distinct(3, 4),), {"k": 2, "axis": axis}) for axis in (0, 1)],
        "approx_top_k": [
            Example(
                (distinct(3, 4),),
                {
                    "k": 2,
                    "reduction_dimension": axis,
                    "recall_target": 0.95,
                    "is_max_k": not axis,
                    "reduction_input_size_override": -1,
                    "aggregate_to_topk": True,
                },
            )
            for axis in (0, 1)
        ],
    }


def _calls() -> dict[str, list[Example]]:
    x, y = floats(3, 2), floats(3, 2, seed=1)
    body = _jaxpr(lambda a, b: (jnp.sin(a) * b, jnp.exp(b)), x, y)
    linear_body = _jaxpr(lambda a: (2.0 * a).sum(0), x)
    rule = Rule(lambda ps, ts: ([ps[0] ** 2], [2 * ps[0] * ts[0]]), "square_jvp")
    threefold_rule = Rule(lambda ps, ts: ([3.0 * ps[0]], [3.0 * ts[0]]), "threefold_jvp")
    square = _jaxpr(lambda a: a**2, x)
    fwd = Rule(lambda ps, perturbed: ([ps[0] ** 2], [ps[0]], None), "square_fwd")
    bwd = Rule(lambda form, res, cts: [2 * res[0] * cts[0]], "square_bwd")
    mesh = Mesh(np.array(phlox.devices()[:1]), ("i",))
    over = {"mesh": mesh, "manual": ("i",), "check_vma": False}
    part = PartitionSpec("i")
    whole = PartitionSpec()
    scale = np.float64(1.5)
    scaled = _jaxpr(lambda c, a: (c * a, jnp.sin(a), c), scale, x)
    together = lambda a, b: (jnp.sin(a) * b, jnp.exp(b))
    batch_rule = BatchRule(lambda size, batched, xs: _whole_batch(together, size, batched, xs), "together")
    times, divided = _jaxpr(lambda a: 3.0 * a, x), _jaxpr(lambda a: a / 3.0, x)
    threefold = _jaxpr(lambda c, r, a: a * c * r, np.int32(2), np.int32(3), x)
    doubled = _jaxpr(lambda a: jnp.sin(a) * 2.0, x)
    summed = phlox.make_jaxpr(lambda a: phlox.lax.psum(a * 2.0, "i"), axis_env=[("i", 1)])(x)
    return {
        "jit": [
            Example((x, y), {"jaxpr": body, "name": "f", "inline": False}),
            Example((x,), {"jaxpr": linear_body, "name": "g", "inline": False}, ((0,),)),
        ],
        "remat2": [
            Example((x, y), {"jaxpr": body, **_CHECKPOINT}),
            Example((x,), {"jaxpr": linear_body, **_CHECKPOINT, "differentiated": True}, ((0,),)),
        ],
        "name": [Example((x,), {"name": "x"})],
        "tag": [Example((x,), {"name": "x", "kind": "value"}, ((0,),))],
        "custom_jvp_call": [
            Example((x,), {"call_jaxpr": square, "jvp": rule, "num_consts": 0}),
            Example((x,), {"call_jaxpr": times, "jvp": threefold_rule, "num_consts": 0}, ((0,),)),
        ],
        "remat_opt": [
            Example(
                (scale, scale, x),
                {
                    "fwd_jaxpr": scaled,
                    "fun_jaxpr": _jaxpr(lambda c, a: c * a, scale, x),
                    "num_fun_consts": 1,
                    "num_consts": 1,
                },
            )
        ],
        "custom_vmap_call": [Example((x, y), {"call": body, "rule": batch_rule, "num_consts": 0})],
        "custom_linear_solve": [
            Example(
                (x,),
                {
                    "const_lengths": LinearSolve(0, 0, 0, 0),
                    "jaxprs": LinearSolve(times, times, divided, divided),
                },
                ((0,),),
            )
        ],
        "linear_call": [
            Example(
                (np.int32(2), np.int32(3), x),
                {"callee": threefold, "transposed": lambda: (threefold, [np.int32(2)]), "num_consts": 1, "num_res": 1},
                ((2,),),
            )
        ],
        "custom_vjp_call": [Example((x,), {"call_jaxpr": square, "fwd": fwd, "bwd": bwd, "num_consts": 0})],
        "shard_map": [
            Example((x,), {"jaxpr": doubled, "in_specs": (part,), "out_specs": (part,), **over}),
            Example((x,), {"jaxpr": summed, "in_specs": (part,), "out_specs": (whole,), **over}, ((0,),)),
        ],
        "composite": [Example((x,), {"jaxpr": square, "name": "my.square", "version": 1, "attributes": "k = 2 : i64"})],
        "reshard": [Example((x,), {"mesh": mesh, "spec": part}, ((0,),))],
        "mesh_cast": [Example((x,), {"axes": None}, ((0,),))],
        "to_memory": [Example((x,), {"memory_kind": "pinned_host"}, ((0,),))],
        **_loops(x, y),
    }


def _loops(x: np.ndarray, y: np.ndarray) -> dict[str, list[Example]]:
    index = np.int32(1)
    curved = tuple(_jaxpr(f, x, y) for f in (lambda a, b: a * b, lambda a, b: jnp.sin(a) + b, lambda a, b: b))
    straight = tuple(_jaxpr(f, x, y) for f in (lambda a, b: 2.0 * a, lambda a, b: a[::-1] - b))
    row, scale = floats(2), np.float64(0.75)
    go_on = _jaxpr(lambda i, a: i < 3, np.int32(0), x)
    turn = _jaxpr(lambda c, i, a: (i + 1, jnp.sin(a) * c), scale, np.int32(0), x)
    step = _jaxpr(lambda c, carry, a: (carry * c + jnp.sin(a), carry * a), scale, row, row)
    linear = _jaxpr(lambda c, carry, a: (carry * c + a, carry[::-1]), scale, row, row)
    weighted = _jaxpr(lambda c, i, a: (i + 1, a[::-1] * c * i), scale, np.int32(0), x)
    counted = _jaxpr(lambda c, i, carry, a: (i + 1, carry * c * i + a, carry[::-1]), scale, np.int32(0), row, row)
    scan = {"length": 3, "num_consts": 1, "num_carry": 1}
    two = {**scan, "num_carry": 2}
    return {
        "cond": [
            Example((index, x, y), {"branches": curved}),
            Example((index, x, y), {"branches": straight}, ((1, 2),)),
        ],
        "while": [
            Example(
                (scale, np.int32(0), x),
                {"cond_jaxpr": go_on, "cond_nconsts": 0, "body_jaxpr": body, "body_nconsts": 1},
                places,
            )
            for body, places in ((turn, ()), (weighted, ((2,),)))
        ],
        "scan": [
            Example((scale, row, x), {"jaxpr": step, "reverse": False, "unroll": 1, **scan}),
            Example((scale, row, x), {"jaxpr": step, "reverse": True, "unroll": 2, **scan}),
            Example((scale, row, x), {"jaxpr": linear, "reverse": False, "unroll": 1, **scan}, ((1, 2),)),
            Example((scale, index, row, x), {"jaxpr": counted, "reverse": True, "unroll": 1, **two}, ((2, 3),)),
            Example((scale, row, x[:0]), {"jaxpr": step, "reverse": False, "unroll": 1, **scan, "length": 0}),
        ],
        **_loop_states(x, go_on, turn),
    }


def _loop_states(x: np.ndarray, go_on: ClosedJaxpr, turn: ClosedJaxpr) -> dict[str, list[Example]]:
    scale, states = np.float64(0.75), [x]
    for _ in range(7):
        states.append(np.sin(states[-1]) * scale)
    loop = {"cond_jaxpr": go_on, "body_jaxpr": turn}
    scan = {**loop, "lengths": (0, 1, 2, 2, 1, 1)}
    bent = _jaxpr(lambda c, carry, i, a: (jnp.sin(carry) * c + a,), scale, x, np.int32(0), x)
    linear = _jaxpr(lambda c, carry, i, a: (carry * a[::-1] * c,), scale, x, np.int32(0), x)
    turns, fixed = np.arange(4, dtype=np.int32), (1, 3, 4)
    all_rows = (scale, turns, np.stack(states[:4]), np.int32(3), np.int32(1), scale, x)
    second = (scale, 2 * turns, np.stack(states[::2]), np.int32(3), np.int32(2), scale, x)
    return {
        "while_states": [
            Example((scale, np.int32(0), x), {**loop, "cond_nconsts": 0, "body_nconsts": 1, "rows": rows})
            for rows in (2, 4)
        ],
        "scan_states": [
            Example(
                args, {**scan, "step_jaxpr": step, "reverse": reverse}, ((6,),) if step is linear else (), fixed=fixed
            )
            for args in (all_rows, second)
            for step in (bent, linear)
            for reverse in (False, True)
        ],
    }


def _hermitian(x: np.ndarray) -> np.ndarray:
    return (x + x.swapaxes(-1, -2).conj()) / 2


def _linear_algebra() -> dict[str, list[Example]]:
    general, stack, complex_ = floats(3, 3), floats(2, 3, 3), complexes(3, 3)
    positive = [x @ x.swapaxes(-1, -2).conj() + np.eye(3) for x in (general, stack, complex_)]
    tall, wide = floats(4, 3), floats(3, 4)
    vectors, factor = np.linalg.qr(floats(4, 3))[0], np.array([0.5, 1.0, 1.5])
    eigh = {"lower": True, "sort_eigenvalues": True, "subset_by_index": None, "algorithm": None}
    eig = {"enable_eigvec_derivs": True, "implementation": None}
    qr = {"pivoting": False, "full_matrices": False, "use_magma": None}
    svd = {"full_matrices": False, "compute_uv": True, "subset_by_index": None, "algorithm": None}
    triangle = dict.fromkeys(("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal"), False)
    steep = np.triu(floats(3, 3, low=0.2)) + np.tril(floats(3, 3, low=0.2, seed=1)) + 2 * np.eye(3)
    diagonals = floats(4, low=0.1, high=0.5), floats(4, low=2.0, high=3.0), floats(4, low=0.1, high=0.5, seed=1)
    return {
        "cholesky": [Example((x,), {}, along=_hermitian) for x in positive],
        "cholesky_update": [Example((np.triu(steep), floats(3)), {}), Example((np.triu(steep), np.zeros(3)), {})],
        "symmetric_product": [Example((tall.T, positive[0]), {"alpha": 1.5, "beta": 0.5})],
        # Of complex matrices the phases of eigenvectors are open: the derivative has others than LAPACK.
        "eigh": [Example((x,), {**eigh, "lower": w}, along=_hermitian) for x in positive[:2] for w in (True, False)],
        "eig": [
            Example((x,), {**eig, "compute_left_eigenvectors": left, "compute_right_eigenvectors": right})
            for x, left, right in [(general, False, False), (complex_, True, True), (stack, False, True)]
        ],
        "geqrf": [Example((x,), {}) for x in (tall, wide, complex_)],
        "geqp3": [Example((tall, np.zeros(3, np.int32)), {"use_magma": None})],
        "householder_product": [Example((vectors, factor), {}), Example((complex_, complex_[0]), {})],
        "ormqr": [
            Example((general, factor, floats(3, 2)), {"left": True, "transpose": True}),
            Example((general, factor, floats(2, 3)), {"left": False, "transpose": False}),
        ],
        "hessenberg": [Example((x,), {}) for x in (general, complex_)],
        "lu": [Example((x,), {}) for x in (general, stack, complex_, tall, wide)],
        "lu_pivots_to_permutation": [
            Example((np.array([[2, 2, 2], [0, 1, 3]], np.int32),), {"permutation_size": 4}),
            Example((np.zeros(0, np.int32),), {"permutation_size": 2}),
        ],
        "qr": [
            *[Example((x,), qr) for x in (general, tall, wide, complex_, stack)],
            Example((tall,), {**qr, "full_matrices": True}),
            *[Example((x,), {**qr, "pivoting": True}) for x in (tall, wide)],
        ],
        "schur": [
            Example((x,), {"compute_schur_vectors": v, "sort_eig_vals": False, "select_callable": None})
            for x, v in [(general, True), (complex_, False)]
        ],
        "svd": [
            *[Example((x,), svd) for x in (general, tall, wide, stack)],
            *[Example((x,), {**svd, "compute_uv": False}) for x in (complex_, tall)],
            Example((general,), {**svd, "full_matrices": True}),
        ],
        "triangular_solve": [
            Example((steep, floats(3, 2)), {**triangle, "left_side": True}, ((1,),)),
            Example(
                (steep, floats(3, 5)), {**triangle, "left_side": True, "lower": True, "unit_diagonal": True}, ((1,),)
            ),
            Example((steep, floats(2, 3)), {**triangle, "transpose_a": True}, ((1,),)),
            Example((steep + 1j, complexes(4, 3)), {**triangle, "transpose_a": True, "conjugate_a": True}, ((1,),)),
            Example((np.stack([steep] * 2), floats(2, 2, 3)), {**triangle, "lower": True}, ((1,),)),
        ],
        "tridiagonal": [Example((x,), {"lower": low}) for x in positive for low in (True, False)],
        "tridiagonal_solve": [
            Example((*diagonals, floats(4, 2)), {"perturb_singular": p}, ((3,),)) for p in (False, True)
        ],
    }


_EVEN, _AWAY = 1, 0
_CHECKPOINT = {"prevent_cse": True, "differentiated": False, "policy": None}
_DOT = {"precision": None, "preferred_element_type": None}


def examples() -> dict[str, list[Example]]:
    """Examples of every primitive, by name; made anew in x64 mode."""
    sum_like = ((0, 1),)
    mat, vec, cube = floats(3, 4), floats(4), floats(2, 3, 4)
    found: dict[str, list[Example]] = {
        **{name: _binary(low, high, linear) for name, (low, high, _, *linear) in FORMULAS_OF_TWO.items()},
        **{name: _binary() for name in ("eq", "ne", "lt", "le", "gt", "ge", "eq_to", "lt_to", "le_to")},
        **{name: _binary(0.5, 4.0) for name in ("igamma_grad_a", "igamma_second_a", "igamma_density")},
        **{name: _bits() for name in ("and", "or", "xor")},
        **{name: _bits(True) for name in ("shift_left", "shift_right_logical", "shift_right_arithmetic")},
        **{name: [Example((ints(3, 2),), {})] for name in ("not", "population_count", "clz")},
        "nextafter": [Example((floats(3), floats(3, seed=1)), {})],
        "complex": [Example((floats(3), floats(3, seed=1)), {}, sum_like)],
        "neg": [Example((floats(3, 2),), {}, ((0,),))],
        **{name: [Example((distinct(3, 2),), {})] for name in ("sign", "floor", "ceil", "is_finite", "stop_gradient")},
        "round": [Example((distinct(3, 2),), {"rounding_method": way}) for way in (_AWAY, _EVEN)],
        "abs": [Example((distinct(3, 2),), {}), Example((complexes(3),), {})],
        **{name: _unary(low, high, **dict(*params)) for name, (low, high, _, *params) in FORMULAS.items()},
        "integer_pow": [Example((floats(3, low=0.5),), {"y": y}) for y in (-2, 0, 1, 3, 7)],
        "real": [Example((complexes(3),), {}, ((0,),))],
        "imag": [Example((complexes(3),), {}, ((0,),))],
        "conj": [Example((complexes(3),), {}, ((0,),))],
        "clamp": [
            Example((floats(3), floats(3, seed=1), floats(3, seed=2) + 1), {}),
            Example((np.float64(-0.5), floats(2, 3), np.float64(0.5)), {}),
        ],
        "select_n": [
            Example((bools(3, 2), floats(3, 2), floats(3, 2, seed=1)), {}, ((1, 2),)),
            Example((np.True_, floats(3, 2), floats(3, 2, seed=1)), {}, ((1, 2),)),
            Example((ints(3, low=0, high=3), floats(3), floats(3, seed=1), floats(3, seed=2)), {}, ((1, 2, 3),)),
        ],
        "convert_element_type": [
            Example((floats(3, 2),), {"new_dtype": np.dtype(np.float32), "weak_type": False}),
            Example((floats(3, 2),), {"new_dtype": np.dtype(np.complex128), "weak_type": False}, ((0,),)),
            Example((ints(3),), {"new_dtype": np.dtype(np.float64), "weak_type": False}),
            Example((complexes(3),), {"new_dtype": np.dtype(bool), "weak_type": False}),
        ],
        "bitcast_convert_type": [
            Example((floats(3).astype(np.float32),), {"new_dtype": np.dtype(np.int32)}),
            Example((floats(3),), {"new_dtype": np.dtype(np.uint32)}),
            Example((ints(3, 2),), {"new_dtype": np.dtype(np.int64)}),
        ],
        "reshape": [Example((cube,), {"new_sizes": (4, 6), "dimensions": None}, ((0,),))],
        "transpose": [Example((cube,), {"permutation": (2, 0, 1)}, ((0,),))],
        "broadcast_in_dim": [
            Example((mat,), {"shape": (3, 2, 4), "broadcast_dimensions": (0, 2)}, ((0,),)),
            Example((floats(1, 4),), {"shape": (2, 3, 4), "broadcast_dimensions": (1, 2)}, ((0,),)),
            Example((floats(),), {"shape": (2, 3), "broadcast_dimensions": ()}, ((0,),)),
        ],
        "squeeze": [Example((floats(1, 3, 1),), {"dimensions": (0, 2)}, ((0,),))],
        "rev": [Example((cube,), {"dimensions": (0, 2)}, ((0,),))],
        "copy": [Example((mat,), {}, ((0,),))],
        "concatenate": [Example((mat, floats(3, 2)), {"dimension": 1}, ((0, 1),))],
        "pad": [
            Example((mat, np.float64(0.5)), {"padding_config": ((1, 0, 2), (0, 2, 1))}, ((0, 1),)),
            Example((mat, np.float64(0.5)), {"padding_config": ((-1, 1, 0), (2, -2, 0))}),
            Example((mat, np.float64(0)), {"padding_config": ((-1, 1, 0), (2, 1, 1))}, ((0,),)),
        ],
        "dim_as_value": [Example((), {"dim": 3})],
        "iota": [Example((), {"dtype": np.dtype(np.int32), "shape": (2, 3), "dimension": 1})],
        "gather": _gathers(),
        "scatter-add": _scatters(linear=((0, 2),)),
        "scatter": _scatters() + _scatters(unique=True, linear=((0, 2),)),
        "scatter-mul": _scatters(unique=True, linear=((0,),)),
        "scatter-min": _scatters(),
        "scatter-max": _scatters(),
        "slice": [
            Example((mat,), {"start_indices": (1, 0), "limit_indices": (3, 4), "strides": (1, 3)}, ((0,),)),
            Example((mat,), {"start_indices": (0, 2), "limit_indices": (3, 2), "strides": None}, ((0,),)),
        ],
        "split": [Example((mat,), {"sizes": (1, 0, n - 1), "axis": axis}, ((0,),)) for axis, n in enumerate(mat.shape)],
        "dynamic_slice": [
            Example((mat, np.int32(1), np.int32(9)), {"slice_sizes": (2, 3)}, ((0,),)),
            Example((mat, np.int32(-3), np.int32(0)), {"slice_sizes": (1, 4)}, ((0,),)),
        ],
        "dynamic_update_slice": [Example((mat, floats(2, 2), np.int32(2), np.int32(1)), {}, ((0, 1),))],
        "cumsum": [Example((floats(3, 5),), {"axis": 1, "reverse": r}, ((0,),)) for r in (False, True)],
        "cumprod": [Example((floats(3, 5),), {"axis": 1, "reverse": r}) for r in (False, True)],
        "cumlogsumexp": [Example((floats(3, 5),), {"axis": 0, "reverse": r}) for r in (False, True)],
        "lgamma": _unary(0.3, 4.0),
        "lgamma_of_xla": _unary(0.3, 4.0),
        "digamma": _unary(0.5, 4.0),
        "bessel_i0e": [Example((distinct(3, 8),), {})],
        "bessel_i1e": [Example((distinct(3, 8),), {})],
        "polygamma": [Example((np.array([0.0, 1.0, 2.0]), floats(3, low=0.5, high=4.0)), {}, fixed=(0,))],
        "polygamma_of_xla": [Example((np.array([0.0, 1.0, 2.0]), floats(3, low=0.5, high=4.0)), {}, fixed=(0,))],
        "zeta": [Example((floats(3, low=1.5, high=4.0), floats(3, low=0.5, high=4.0)), {})],
        "zeta_of_xla": [Example((floats(3, low=1.5, high=4.0), floats(3, low=0.5, high=4.0)), {})],
        "regularized_incomplete_beta": [
            Example((floats(3, low=0.5, high=3), floats(3, low=0.5, high=3), floats(3, low=0.1, high=0.9)), {}),
            Example((np.float64(2), np.float64(0.5), floats(2, 3, low=0.1, high=0.9)), {}),
        ],
        "betainc_grad": [
            Example((floats(3, low=0.5, high=3), floats(3, low=0.5, high=3), floats(3, low=0.1, high=0.9)), {"by": by})
            for by in (0, 1)
        ],
        "betainc_second": [
            Example((np.float64(2), np.float64(0.5), floats(2, 3, low=0.1, high=0.9)), {"by": by, "then": then})
            for by, then in ((0, 0), (0, 1), (1, 1))
        ],
        "reduce_precision": [Example((floats(3),), {"exponent_bits": 11, "mantissa_bits": 52}, ((0,),))],
        "cummax": [Example((distinct(3, 5),), {"axis": 0, "reverse": r}) for r in (False, True)],
        "cummin": [Example((distinct(3, 5),), {"axis": 0, "reverse": r}) for r in (False, True)],
        "dot_general": [
            Example((mat, floats(4, 2)), {"dimension_numbers": (((1,), (0,)), ((), ())), **_DOT}, ((0,), (1,))),
            Example((mat, vec), {"dimension_numbers": (((1,), (0,)), ((), ())), **_DOT}, ((0,), (1,))),
            Example((cube, floats(4, 5, 2)), {"dimension_numbers": (((2,), (0,)), ((0,), (2,))), **_DOT}, ((0,), (1,))),
            Example(
                (cube, floats(4, 2, 3)),
                {"dimension_numbers": (((2, 0), (0, 1)), ((), ())), **_DOT, "precision": (Precision.HIGHEST,) * 2},
                ((0,), (1,)),
            ),
        ],
        **_windows(),
        "fft": [
            Example((complexes(2, 3, 4),), {"fft_type": FftType.FFT, "fft_lengths": (4,)}, ((0,),)),
            Example((complexes(3, 4),), {"fft_type": FftType.IFFT, "fft_lengths": (3, 4)}, ((0,),)),
            Example((floats(3, 5),), {"fft_type": FftType.RFFT, "fft_lengths": (3, 5)}, ((0,),)),
            Example((floats(2, 4),), {"fft_type": FftType.RFFT, "fft_lengths": (4,)}, ((0,),)),
            Example((complexes(2, 3),), {"fft_type": FftType.IRFFT, "fft_lengths": (2, 4)}, ((0,),)),
            Example((complexes(2, 3),), {"fft_type": FftType.IRFFT, "fft_lengths": (5,)}, ((0,),)),
        ],
        "conv_general_dilated": _convolutions(),
        "reduce_sum": [Example((cube,), {"axes": (0, 2)}, ((0,),)), Example((cube,), {"axes": ()}, ((0,),))],
        "fast_max": [Example((distinct(2, 3, 4),), {"axes": (1,)})],
        "fast_min": [Example((distinct(2, 3, 4),), {"axes": (1,)})],
        "reduce_max": [Example((distinct(2, 3, 4),), {"axes": (1,)})],
        "reduce_min": [Example((distinct(2, 3, 4),), {"axes": (0, 1, 2)})],
        "reduce_prod": [Example((floats(2, 3, 4),), {"axes": (0, 2)}), Example((floats(2, 0),), {"axes": (1,)})],
        "reduce_and": [Example((bools(2, 3),), {"axes": (1,)})],
        "reduce_or": [Example((bools(2, 3),), {"axes": (1,)})],
        "reduce_xor": [Example((ints(2, 3),), {"axes": (1,)})],
        "argmax": [Example((distinct(3, 4),), {"axes": (a,), "index_dtype": np.dtype(np.int32)}) for a in (0, 1)],
        "argmin": [Example((distinct(3, 4),), {"axes": (a,), "index_dtype": np.dtype(np.int32)}) for a in (0, 1)],
        "sort": [
            Example((distinct(3, 4), floats(3, 4)), {"dimension": 1, "is_stable": True, "num_keys": 1}),
            Example((ints(8), distinct(8)), {"dimension": 0, "is_stable": True, "num_keys": 2}),
        ],
        "rng_bit_generator": [
            Example(
                (ints(4, low=0, high=99, dtype=np.uint32),),
                {"shape": (3,), "dtype": np.dtype(np.uint16), "algorithm": RandomAlgorithm.RNG_THREE_FRY},
                fixed=(0,),  # of a batch of keys the first makes all bits
            )
        ],
        "mulhi": _bits(),
        "common_count": [Example((np.int32(3),), {}, fixed=(0,))],
        "safe_rows": [Example((np.ones(3, bool), floats(3)), {"axes": (0,), "row": 0}, ((1,),))],
        # The mask is not mapped: alone, it gives the test for all rows together.
        "masked_test": [Example((bools(3), bools(3)), {}, fixed=(1,))],
        "stage": [Example((floats(3),), {}, ((0,),))],
        "layout_constraint": [Example((floats(2, 3),), {"major_to_minor": (1, 0)}, ((0,),))],
        "optimization_barrier": [Example((floats(3), ints(2)), {}), Example((floats(3), floats(2)), {}, ((0, 1),))],
        "platform_index": [Example((), {"platforms": (("tpu",), ("cpu",), None)})],
        "dce_sink": [Example((floats(3),), {"prevent_mlir_dce": False})],
        "scatter-apply": [
            Example(args, {**params, "func": _jaxpr(lambda v: v * 2.0, np.float64(1))})
            for args, params, *_ in _scatters()
        ],
        "rng_uniform": [Example((np.float64(0), np.float64(1)), {"shape": (2, 3)})],
        "threefry2x32": [Example(tuple(ints(4, low=0, high=99, dtype=np.uint32) for _ in range(4)), {})],
        "random_seed": [Example((ints(3),), {"impl": THREEFRY})],
        "random_wrap": [Example((ints(3, 2, low=0, dtype=np.uint32),), {"impl": THREEFRY})],
        "random_unwrap": [Example((keys(3),), {})],
        "random_clone": [Example((keys(3),), {})],
        "random_split": [Example((keys(3),), {"shape": (2,)}), Example((keys(),), {"shape": (2, 3)})],
        "random_fold_in": [Example((keys(3), ints(3, low=0, dtype=np.uint32)), {})],
        # Its derivative follows the distribution, not the rejections: test_random_rejection.py compares it with jax's.
        "random_gamma": [
            Example((keys(2), floats(2, 3, low=0.2)), {"log_space": x}, fixed=(1,)) for x in (False, True)
        ],
        "random_bits": [Example((keys(2),), {"bit_width": w, "shape": (3,)}) for w in (8, 16, 32, 64)],
    }
    return {**found, **_calls(), **_linear_algebra()}


#: Primitives of compat, which are there if its modules have been imported; its tests have them.
OF_COMPAT = {"xla_metadata_value"}
#: Primitives that only make sense inside of another transformation; `test_registry.py` says which test has them.
ELSEWHERE = {
    "psum": "test_vmap.py and test_pmap.py",
    "manual_cast": "test_mapped_partial_results.py of conformance",
    "psum_invariant": "test_shard_map.py of conformance",
    "pvary": "test_shard_map.py of conformance",
    "transfer": "test_shardings.py of conformance",
    "unreduced_psum": "test_mapped_partial_results.py of conformance",
    "pmax": "test_vmap.py and test_pmap.py",
    "pmin": "test_vmap.py and test_pmap.py",
    "axis_index": "test_vmap.py and test_pmap.py",
    **dict.fromkeys(
        ("all_gather", "all_gather_invariant", "reduce_scatter", "all_to_all", "ppermute"),
        "conformance/test_lax_collectives.py",
    ),
    **dict.fromkeys(
        ("pure_callback", "io_callback", "debug_callback", "debug_print", "inspect_sharding"), "test_callbacks.py"
    ),
    "ffi_call": "test_ffi.py (it calls what was registered)",
    "call_exported": "test_export.py (it calls what was exported)",
    "check": "test_debugging.py, and conformance/test_checkify.py",
    "custom_lin": "test_custom.py (it can only be transposed)",
    "padded_call": "conformance/test_pad_axes.py (its Jaxpr has symbolic shapes)",
    "ref_read": "test_references.py (it records an access, and is none of an array)",
    "ref_write": "test_references.py (it records an access, and is none of an array)",
}

#: Structural primitives that carry PRNG keys: (arguments, parameters).
WITH_KEYS = {
    "reshape": ((4,), {"new_sizes": (2, 2), "dimensions": None}),
    "transpose": ((2, 3), {"permutation": (1, 0)}),
    "broadcast_in_dim": ((3,), {"shape": (2, 3), "broadcast_dimensions": (1,)}),
    "squeeze": ((1, 3), {"dimensions": (0,)}),
    "rev": ((4,), {"dimensions": (0,)}),
    "copy": ((3,), {}),
    "slice": ((4,), {"start_indices": (1,), "limit_indices": (4,), "strides": (2,)}),
}
