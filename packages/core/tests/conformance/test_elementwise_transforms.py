"""Elementwise functions, many in one program, as compiling takes the time: nested vmap, vmap of grad, second derivatives.

The judges are the function of whole arrays, through phlox itself, and the real jax, which says too by which arguments a
function can be differentiated: by the others phlox refuses it with an error of the same kind.
"""

import functools

import jax
import numpy as np
import pytest

import judge
import phlox
from conformance.examples import elementwise, examples, functions
from conformance.harness import outcome, same_kind
from conformance.test_batched import EXEMPT
from conformance.test_first_and_second_derivatives import double

#: How many functions share a program.
GROUP = 16
PATHS = [f for f in functions() if f in elementwise() and f not in EXEMPT]
GROUPS = [PATHS[i : i + GROUP] for i in range(0, len(PATHS), GROUP)]
REAL, COMPLEX = ("float32", "int32"), ("complex64",)

groups = pytest.mark.parametrize("paths", GROUPS, ids=lambda paths: f"{paths[0]}...{paths[-1]}")
dtypes = pytest.mark.parametrize("prefer", [REAL, COMPLEX], ids=["real", "complex"])


def grids(example):
    """The arguments with all arrays as (2, 3) elements."""
    return [np.resize(x, (2, 3)) if isinstance(x, np.ndarray) else x for x in example.args]


def found(paths, prefer, wide=False):
    """The first example of each function; of complex numbers those of lax that take them."""
    chosen = [p for p in paths if prefer == REAL or p.startswith("lax.")]
    every = [e for path in chosen for e in examples(path, prefer, 1, wide) if e.elementwise]
    return [e for e in every if prefer == REAL or any(e.args[i].dtype.kind == "c" for i in e.arrays)]


def total(m, example):
    """The sum of the real parts and, twice, of the imaginary parts."""

    def f(*xs):
        out = [m.numpy.asarray(x) for x in m.tree.leaves(example.run(m, *xs))]
        return sum((m.numpy.real(x) + 2 * m.numpy.imag(x)).sum() for x in out if x.dtype.kind not in "biu")

    return f


def slopes(m, example, argnums):
    return m.grad(total(m, example), argnums)


def curves(m, example, argnums):
    """Reverse over reverse: the gradient of the weighed sum of all parts of the gradient."""

    def f(*xs):
        parts = slopes(m, example, argnums)(*xs)
        return sum((i + 1) * (m.numpy.real(g) + 2 * m.numpy.imag(g)).sum() for i, g in enumerate(parts))

    return m.grad(f, argnums)


#: What jax says of derivatives that phlox has.
FURTHER = (
    "Betainc gradient with respect to a and b",
    "Differentiation rule for 'igamma_grad_a' not implemented",
    "Differentiation rule for 'nextafter' not implemented",
    "Reverse-mode differentiation does not work for lax.while_loop",
    "gt does not accept dtype complex",  # of the larger of complex numbers
)


def differentiated(example, derivative):
    """The sets of arguments by which jax has this derivative: all floats together, or else some of them alone."""
    whole = [example.floats] if example.floats else []
    for argnums in [*whole, *[(i,) for i in example.floats if len(example.floats) > 1]]:
        error = outcome(lambda m, n: m.eval_shape(derivative(m, example, n), *grids(example)), jax, [argnums])[1]
        if error is None:
            yield argnums
            if argnums == example.floats:
                return
        elif not any(text in str(error) for text in FURTHER):
            mine = outcome(lambda m, n: m.eval_shape(derivative(m, example, n), *grids(example)), phlox, [argnums])[1]
            same_kind(mine, error, f"{example.what}: {derivative.__name__} by {argnums}")


def mapped(m, run, args, arrays):
    """`run`, of numbers, for all elements: rows outside; of the second array and others the axes change places."""
    axes = lambda first, rest: tuple(
        (first if i == arrays[0] else rest) if i in arrays else None for i in range(len(args))
    )
    turned = [x.T if i in arrays[1:] else x for i, x in enumerate(args)]
    return m.vmap(m.vmap(run, axes(0, 0)), axes(0, -1))(*turned)


def crossed(m, run, args, arrays):
    """`run` for each element of a row of the first array, outside, with each of a column of the others, inside."""
    outer = tuple(0 if i == arrays[0] else None for i in range(len(args)))
    inner = tuple(-1 if i in (arrays[1:] or arrays) else None for i in range(len(args)))
    given = [
        x.T if arrays == [i] else x[0] if i == arrays[0] else x[:, 0] if i in arrays else x for i, x in enumerate(args)
    ]
    return m.vmap(m.vmap(run, inner), outer, -1)(*given)


def crossing(m, args, arrays):
    """The arguments that `crossed` puts together, as whole arrays."""
    if len(arrays) == 1:
        return args
    rows = lambda i, x: m.numpy.broadcast_to(x[0] if i == arrays[0] else x[:, :1], (2, 3))
    return [rows(i, x) if i in arrays else x for i, x in enumerate(args)]


def batched(m, args, example, gradients):
    """Nested vmap of values and of gradients."""
    run, arrays = functools.partial(example.run, m), example.arrays
    return crossed(m, run, args, arrays), [mapped(m, slopes(m, example, n), args, arrays) for n in gradients]


def at_once(m, args, example, gradients):
    """What `batched` should give: the function of whole arrays."""
    return example.run(m, *crossing(m, args, example.arrays)), [slopes(m, example, n)(*args) for n in gradients]


def program(m, run, parts):
    """All in one program."""
    together = lambda given: [run(m, args, *part) for args, part in zip(given, parts, strict=True)]
    return m.jit(together)([grids(example) for example, *_ in parts])


@dtypes
@groups
def test_batches(paths, prefer):
    parts = [(e, list(differentiated(e, slopes))) for e in found(paths, prefer)]
    mine, wanted, theirs = program(phlox, batched, parts), program(phlox, at_once, parts), program(jax, batched, parts)
    for (example, _), x, y, z in zip(parts, mine, wanted, theirs, strict=True):
        for a, b in zip(phlox.tree.leaves(x), phlox.tree.leaves(y), strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype), example.what
            judge.same_values(
                np.asarray(a),
                np.asarray(b),
                tolerance=example.tolerance,
                what=f"{example.what} (for jax read: at once)",
            )
        judge.compare(x, z, tolerance=example.tolerance, what=example.what)


def derivatives(m, args, example, gradients, seconds):
    """First and second derivatives at some points, each on its own."""
    arrays = example.arrays
    first = [mapped(m, slopes(m, example, n), args, arrays) for n in gradients]
    return first, [mapped(m, curves(m, example, n), args, arrays) for n in seconds]


@dtypes
@groups
@double
def test_second_derivatives(paths, prefer):
    parts = [(e, *(list(differentiated(e, d)) for d in (slopes, curves))) for e in found(paths, prefer, wide=True)]
    mine, theirs = program(phlox, derivatives, parts), program(jax, derivatives, parts)
    for (example, *_), x, y in zip(parts, mine, theirs, strict=True):
        judge.compare(x, y, weak=False, tolerance=1e-9, what=example.what)
