"""vmap over each argument and each axis of it, into each axis, nested, and of grad: for every public function of arrays.

The judge is a loop over the examples, through phlox itself, and the real jax. No function is forgotten: what has no
example is on a list, with the reason.
"""

import functools

import jax
import numpy as np
import pytest

import judge
import phlox
from conformance.examples import examples, functions
from conformance.harness import _derivative, outcome

#: What takes no arrays of which there could be a batch.
NO_ARRAYS = {
    "makes an array of numbers and shapes": """
        numpy.arange numpy.bartlett numpy.blackman numpy.hamming numpy.hanning numpy.kaiser numpy.diag_indices numpy.empty
        numpy.eye numpy.identity numpy.indices numpy.ones numpy.zeros numpy.tri numpy.tril_indices numpy.triu_indices
        numpy.mask_indices numpy.fromfunction numpy.fft.fftfreq numpy.fft.rfftfreq lax.broadcasted_iota lax.empty lax.iota
        lax.rng_uniform lax.shape_as_value""",
    "reads or writes files and buffers": """
        numpy.from_dlpack numpy.frombuffer numpy.fromfile numpy.fromiter numpy.fromstring numpy.load numpy.save
        numpy.savez""",
    "tells of types and shapes, or prints": """
        numpy.array_repr numpy.array_str numpy.broadcast_shapes numpy.can_cast numpy.finfo numpy.iinfo numpy.isdtype
        numpy.iscomplexobj numpy.isrealobj numpy.isscalar numpy.issubdtype numpy.iterable numpy.promote_types
        numpy.result_type numpy.get_printoptions numpy.printoptions numpy.set_printoptions numpy.shape numpy.ndim
        numpy.size lax.broadcast_shapes lax.conv_dimension_numbers lax.conv_general_permutations
        lax.conv_general_shape_tuple lax.conv_shape_tuple lax.conv_transpose_shape_tuple lax.dtype lax.padtype_to_pads
        lax.reduce_window_shape_tuple lax.DotDimensionNumbers
        numpy.einsum_path""",
    "has results whose lengths depend on the elements": "numpy.trim_zeros",
    "has no batching rule in jax either": "lax.ragged_all_to_all",
    "makes the bits of a batch at once (test_random_bits_of_a_batch)": "lax.rng_bit_generator",
    "is not there in XLA for the CPU": "lax.mulhi",
    "has no batching rule in jax, and one here (test_lax_collectives.py)": "lax.psum_scatter_start",
    "is new in jax 0.12 (test_jax_0_12.py)": """
        numpy.minmax numpy.top_k lax.log2 lax.one_minus_square lax.polynomial""",
    "calls functions, and is no function of jax (test_loop_derivatives.py)": "lax.fixed_point",
    "concerns devices and the order of effects": """
        lax.with_sharding_constraint lax.psend lax.precv lax.create_token lax.after_all""",
}
EXEMPT = {name for names in NO_ARRAYS.values() for name in names.split()}
#: Functions with batching rules of some depth, which have more examples.
DEEP = {
    "lax.gather", "lax.scatter", "lax.scatter_add", "lax.dynamic_slice", "lax.dynamic_update_slice",
    "lax.conv_general_dilated", "lax.reduce_window", "lax.dot_general", "lax.sort", "lax.linalg.triangular_solve",
    "lax.fft", "lax.linalg.svd",
}  # fmt: skip
FUNCTIONS = [f for f in functions() if f not in EXEMPT]


def test_no_function_is_forgotten():
    forgotten = [f for f in FUNCTIONS if not examples(f, count=1)]
    assert not forgotten, (
        f"vmap of {', '.join(forgotten)} is not tested: PROGRAMS in conformance/programs.py, or FORMULAS in registry_examples.py, has a row"
    )


def test_exempt_functions_exist():
    assert not [f for f in EXEMPT if not callable(functools.reduce(getattr, f.split("."), phlox))]


# --- batches and what they should be ------------------------------------------------------------------------------------


def signed(axis, ndim, position):
    """An axis, counted from the end every other time."""
    return axis if position % 2 else axis - ndim


def batch(args, which, axes):
    """Arguments where those named by `axes` are stacked along them; `which` says of what."""
    stacked = list(args)
    for i, axis in axes.items():
        stacked[i] = np.stack([w[i] for w in which], axis)
    return stacked


def second(example):
    """Another example of the same types."""
    return [
        judge._perturbed(x, judge.rng("second", example.what, i)) if isinstance(x, np.ndarray) else x
        for i, x in enumerate(example.args)
    ]


def patterns(example, rank):
    """(in_axes, out_axes) that cover each axis of each argument alone, all arguments together, each axis of the results."""
    arrays, args = example.arrays, example.args
    found = [{i: axis} for i in arrays for axis in range(args[i].ndim + 1)]
    if len(arrays) > 1:
        found.append({i: (place + 1) % (args[i].ndim + 1) for place, i in enumerate(arrays)})
    for position, axes in enumerate(found):
        given = {i: signed(axis, args[i].ndim + 1, position + i) for i, axis in axes.items()}
        yield given, signed(position % (rank + 1), rank + 1, position // 2)


def in_axes(axes, count):
    return tuple(axes.get(i) for i in range(count))


def stack(results, out_axes):
    """Results of examples, as vmap should return them; an axis that counts from the end does so for each result."""
    return phlox.tree.map(lambda *xs: np.stack([np.asarray(x) for x in xs], out_axes), *results)


def same(mine, wanted, what, tolerance):
    assert phlox.tree.structure(mine) == phlox.tree.structure(wanted), what
    for x, y in zip(phlox.tree.leaves(mine), phlox.tree.leaves(wanted), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert (x.shape, x.dtype) == (y.shape, y.dtype), f"{what}: {x.dtype}{x.shape}, examples give {y.dtype}{y.shape}"
        judge.same_values(x, y, tolerance=tolerance, what=f"{what} (for jax read: the loop)")


def differentiable(example):
    """Whether jax has the gradient of an example; then phlox must. The batch of an elementwise one is elementwise."""
    if example.elementwise or not example.differentiable or not example.floats:
        return False
    gradient = _derivative(example.run, jax, example.floats, False)
    return outcome(lambda m: m.eval_shape(gradient, *example.args), jax, ())[1] is None


def values_and_gradients(m, example):
    """A function of the arguments: its results and, where there are any, the gradients."""
    parts = [functools.partial(example.run, m)]
    if differentiable(example):
        parts.append(_derivative(example.run, m, example.floats, False))
    return parts


def vmaps(m, example, cases):
    """A function that does all that is to be compared at once, because compiling takes the time."""
    run, *gradient = values_and_gradients(m, example)
    count = len(example.args)

    def all_of(stacks, nested):
        found = [m.vmap(run, in_axes(a, count), out)(*xs) for (a, out), xs in zip(cases, stacks, strict=True)]
        if example.elementwise:
            return found, [], []
        first, rest = (
            dict.fromkeys(part, 0) for part in (example.arrays[:1], example.arrays[1:] or example.arrays[:1])
        )
        inner = m.vmap(run, in_axes(rest, count))
        twice = m.vmap(inner, in_axes(dict.fromkeys(first, -1), count), -1)(*nested)
        return found, twice, [m.vmap(g, in_axes(cases[-1][0], count))(*stacks[-1]) for g in gradient]

    return all_of


def inputs_of(example, cases, other):
    """The stacked arguments of each case, and of nested batches: the first array outside, the others inside."""
    args, arrays = example.args, example.arrays
    stacks = [batch(args, (args, other), axes) for axes, _ in cases]
    if len(arrays) > 1:
        nested = batch(args, (args, other), {i: -1 if i == arrays[0] else 0 for i in arrays})
    else:
        rows = [batch(args, pair, {arrays[0]: 0}) for pair in ((args, other), (other, args))]
        nested = batch(args, rows, {arrays[0]: -1})
    return stacks, nested


def check(example):
    args, other, count = example.args, second(example), len(example.args)
    single = phlox.jit(lambda *xs: [f(*xs) for f in values_and_gradients(phlox, example)])
    plain = {which: single(*[(args, other)[w][i] for i, w in enumerate(which)]) for which in chosen(example)}
    ranks = [np.ndim(x) for x in phlox.tree.leaves(plain[(0,) * count][0])]
    assert ranks, "an example without results"
    cases = list(patterns(example, min(ranks)))
    stacks, nested = inputs_of(example, cases, other)
    mine = phlox.jit(vmaps(phlox, example, cases))(stacks, nested)
    for (axes, out), found in zip(cases, mine[0], strict=True):
        wanted = [plain[tuple(int(i in axes) * k for i in range(count))][0] for k in (0, 1)]
        same(found, stack(wanted, out), f"{example.what}: vmap {axes} -> {out}", example.tolerance)
    everything = [plain[tuple(int(i in example.arrays) * k for i in range(count))] for k in (0, 1)]
    if mine[2]:
        same(mine[2][0], stack([w[1] for w in everything], 0), f"{example.what}: vmap of grad", example.tolerance)
    if not example.elementwise:
        same(mine[1], nested_results(example, plain), f"{example.what}: nested vmap", example.tolerance)
    theirs = outcome(lambda m: m.eval_shape(vmaps(m, example, cases), stacks, nested), jax, ())
    if theirs[1] is None:  # where jax has a batching rule
        same_types(mine, theirs[0], example.what)


def nested_results(example, plain):
    """Element (j, ..., k): the first array from example k, the others from example j; or, of one array alone, j xor k."""
    count, arrays = len(example.args), example.arrays

    def at(j, k):
        which = [0] * count
        for i in arrays[1:]:
            which[i] = j
        which[arrays[0]] = k if arrays[1:] else j ^ k
        return plain[tuple(which)][0]

    return stack([stack([at(j, k) for j in (0, 1)], 0) for k in (0, 1)], -1)


def same_types(mine, theirs, what):
    for x, y in zip(phlox.tree.leaves(mine), jax.tree.leaves(theirs), strict=True):
        types = [(t.shape, str(t.dtype), bool(t.weak_type)) for t in (x, y)]
        assert types[0] == types[1], f"{what}: {types[0]}, jax has {types[1]}"


def chosen(example):
    """Which of two examples each argument is taken from: none, the first array or the others from the second, all."""
    count, arrays = len(example.args), example.arrays
    sets = [(), arrays, arrays[1:], *[(i,) for i in arrays]]
    return dict.fromkeys(tuple(int(i in s) for i in range(count)) for s in sets)


@pytest.mark.parametrize("path", FUNCTIONS)
def test_vmap(path):
    for example in examples(path, count=3 if path in DEEP else 1):
        check(example)


@pytest.mark.parametrize("axis", [0, 1])
def test_random_bits_of_a_batch(axis):
    """Those of the first key, for all examples, as in jax."""
    keys = np.moveaxis(np.arange(12, dtype=np.uint32).reshape(3, 4), 0, axis)
    mine, theirs = (m.vmap(lambda k, m=m: m.lax.rng_bit_generator(k, (2,)), axis)(keys) for m in (phlox, jax))
    judge.compare(mine, theirs, exact=True)


def test_split_has_a_parameter_axis_too():
    run = lambda m: m.vmap(lambda x: m.numpy.split(x, 2))(np.arange(8.0, dtype=np.float32).reshape(2, 4))
    for mine, theirs in zip(run(phlox), run(jax), strict=True):
        np.testing.assert_array_equal(mine, theirs)
