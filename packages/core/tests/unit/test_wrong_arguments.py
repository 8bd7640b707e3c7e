"""Public functions that are given nonsense, drawn from a fixed seed: what they raise says what was wrong.

It is an error of phlox, or one of Python's that speaks of the argument (a TypeError for a missing or unknown parameter,
for an object of another kind, a ValueError): no failed assertion, no missing attribute, no index out of range, no text
of the compiler's.
"""

import dataclasses
import inspect
import warnings

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
import phlox.scipy.linalg
import phlox.scipy.special
import phlox.scipy.stats
from judge import CASES, rng
from phlox import errors


class Odd:
    """An object that is nothing to any function."""


NONSENSE = [
    None, "x", -1, 7, 2.5, 1j, [0], [], (), (1, 2), [[1, 2], [3]], {}, Odd(), object, np.zeros((2, 3)), np.zeros(0),
    np.array("s"), np.array([None]), True, jnp.zeros((2, 2)), jnp.arange(3), slice(1), lambda x: x, float("inf"),
    float("nan"), jnp.int8, "float32", range(2),
]  # fmt: skip
SENSE = [jnp.ones((2, 3)), jnp.arange(4), jnp.ones((2, 2)), phlox.random.key(0)]
MODULES = {
    "numpy": jnp,
    "numpy.linalg": jnp.linalg,
    "numpy.fft": jnp.fft,
    "lax": phlox.lax,
    "random": phlox.random,
    "nn": phlox.nn,
    "scipy.special": phlox.scipy.special,
    "scipy.linalg": phlox.scipy.linalg,
    "scipy.stats.norm": phlox.scipy.stats.norm,
    "tree": phlox.tree,
}
#: they read or write files, change how NumPy prints, or may run for ever
LEFT_OUT = {"load", "save", "savez", "fromfile", "frombuffer", "fromstring", "set_printoptions", "while_loop"}
#: NumPy's own functions, or opt_einsum's, which say it in their words
NOT_OURS = {"numpy.array_repr", "numpy.array_str", "numpy.einsum_path"}
UNCLEAR = (AssertionError, AttributeError, LookupError, ArithmeticError, UnboundLocalError, errors.CompilationError)


def functions(module):
    for name in sorted(getattr(module, "__all__", None) or dir(module)):
        found = getattr(module, name, None)
        plain = callable(found) and not inspect.isclass(found) and not inspect.ismodule(found)
        if plain and not name.startswith("_") and not name.endswith("_p") and name not in LEFT_OUT:
            yield name, found


def parameters(function):
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


@pytest.mark.parametrize("where", MODULES)
def test_nonsense_is_told(where):
    for name, function in functions(MODULES[where]):
        given = parameters(function)
        required = sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in given)
        optional = [p.name for p in given if p.default is not p.empty and p.kind is not p.POSITIONAL_ONLY]
        for draw in range(2 * CASES):
            r = rng("nonsense", where, name, draw)
            kinds = [NONSENSE if r.random() < 0.6 else SENSE for _ in range(max(1, required))]
            args = [kind[r.integers(len(kind))] for kind in kinds]
            kwargs = {}
            if optional and r.random() < 0.5:
                kwargs[optional[r.integers(len(optional))]] = NONSENSE[r.integers(len(NONSENSE))]
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    function(*args, **kwargs)
            except Exception as error:
                if f"{where}.{name}" in NOT_OURS:
                    continue
                told = isinstance(error, errors.PhloxError) or str(error).strip()
                clear = not isinstance(error, UNCLEAR) or (
                    isinstance(error, errors.PhloxError) and not isinstance(error, errors.CompilationError)
                )
                assert told and clear, f"{where}.{name} of {args}, {kwargs}: {error!r}"


EYES = [jnp.eye(2), jnp.eye(2)]
#: calls that were answered with an empty assertion, an index out of range, or a missing attribute
NAMED = {
    "matrix_transpose": lambda: jnp.matrix_transpose([0]),
    "ravel_multi_index": lambda: jnp.ravel_multi_index(None, -1),
    "array_split": lambda: jnp.array_split(jnp.arange(3), None),
    "argsort": lambda: jnp.argsort(jnp.arange(3), stable=2),
    "histogramdd": lambda: jnp.histogramdd(jnp.arange(3.0)),
    "split into no parts": lambda: jnp.split(jnp.arange(3), 0),
    "split before half an element": lambda: jnp.split(jnp.arange(3), [1.5]),
    "lexsort by no keys at once": lambda: jnp.lexsort(jnp.ones((2, 3)), batch_size=0),
    "fftshift": lambda: jnp.fft.fftshift(1.0, axes=-1),
    "glu": lambda: phlox.nn.glu(7),
    "dtype of text": lambda: jnp.astype(jnp.ones(2), np.array("s")),
    "unflatten": lambda: phlox.tree.unflatten([0], [1]),
    "dot_general over an axis from the end": lambda: phlox.lax.dot_general(*EYES, (((-1,), (0,)), ((), ()))),
    "dot_general over an axis twice": lambda: phlox.lax.dot_general(*EYES, (((1,), (0,)), ((1,), (0,)))),
    "sort of nothing": lambda: phlox.lax.sort(()),
    "cumlogsumexp along a part of an axis": lambda: phlox.lax.cumlogsumexp(jnp.ones(2), 0.5),
    "approx_max_k of a part that is larger than the whole": lambda: phlox.lax.approx_max_k(
        jnp.ones(3), 1, reduction_input_size_override=2
    ),
    "associative_scan of nothing": lambda: phlox.lax.associative_scan(lambda a, b: a, ()),
    "map with a negative batch": lambda: phlox.lax.map(lambda x: x, jnp.ones(2), batch_size=-1),
    "fft over four axes": lambda: phlox.lax.fft(jnp.ones((2, 2, 2, 2)), "fft", (2, 2, 2, 2)),
    "conv_general_permutations of two words": lambda: phlox.lax.conv_general_permutations(("NHWC", "HWIO")),
    "padding for a window that stands still": lambda: phlox.lax.padtype_to_pads((5,), (2,), (0,), "SAME"),
    "rem of bools": lambda: phlox.lax.rem(True, True),
    "round by an unknown method": lambda: phlox.lax.round(1.0, 7),
    "index_take of one axis of two": lambda: phlox.lax.index_take(EYES[0], [np.array([0])], (0, 1)),
    "argnums": lambda: phlox.grad(lambda x: x, argnums=0.5)(1.0),
    "static_argnums": lambda: phlox.jit(lambda x: x, static_argnums=0.0),
    "static_argnames": lambda: phlox.jit(lambda x: x, static_argnames=3),
    "static_argnums of make_jaxpr": lambda: phlox.make_jaxpr(lambda x: x, static_argnums=1),
    "a process that is not there": lambda: phlox.local_devices(process_index=3),
    "axis_names of shard_map": lambda: phlox.shard_map(jnp.sin, mesh=None, out_specs=phlox.P(), axis_names="x"),
    "shard_map by name": lambda: phlox.shard_map(lambda x: x, mesh=None, out_specs=phlox.P())(x=1.0),
    "named_call": lambda: phlox.named_call(jnp.sin, name=3),
    "registered fields that the constructor computes": lambda: phlox.tree_util.register_dataclass(
        dataclasses.make_dataclass("Computed", [("a", int), ("b", int, dataclasses.field(init=False))])
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_named_calls(name):
    with pytest.raises(errors.PhloxError) as raised:
        NAMED[name]()
    assert not isinstance(raised.value, errors.CompilationError)


IMAGE, KERNEL = np.ones((1, 1, 4), np.float32), np.ones((1, 1, 2), np.float32)
CONV_DIMS = ("NHC", "HIO", "NHC")
#: functions of a number in a parameter that takes whole ones
WHOLE = {
    "slice": lambda n: phlox.lax.slice(jnp.arange(4), (n,), (3,)),
    "slice, limit": lambda n: phlox.lax.slice(jnp.arange(4), (0,), (n,)),
    "slice, stride": lambda n: phlox.lax.slice(jnp.arange(4), (0,), (3,), (n,)),
    "transpose": lambda n: phlox.lax.transpose(EYES[0], (n, 0)),
    "rev": lambda n: phlox.lax.rev(EYES[0], (n,)),
    "pad": lambda n: phlox.lax.pad(jnp.arange(4.0), 0.0, ((n, 0, 0),)),
    "broadcast_in_dim": lambda n: phlox.lax.broadcast_in_dim(jnp.arange(4), (2, 4), (n,)),
    "top_k": lambda n: phlox.lax.top_k(jnp.arange(4), n),
    "reduce": lambda n: phlox.lax.reduce(EYES[0], 0.0, phlox.lax.add, (n,)),
    "ppermute": lambda n: phlox.vmap(lambda x: phlox.lax.ppermute(x, "i", [(0, n), (1, 0)]), axis_name="i")(EYES[0]),
    "collapse": lambda n: phlox.lax.collapse(EYES[0], n),
    "conv": lambda n: phlox.lax.conv(IMAGE, KERNEL, (n,), "SAME"),
    "conv, padding": lambda n: phlox.lax.conv(IMAGE, KERNEL, (1,), [(n, 0)]),
    "conv, dilation": lambda n: phlox.lax.conv_general_dilated(IMAGE, KERNEL, (1,), "SAME", rhs_dilation=(n,)),
    "conv, groups": lambda n: phlox.lax.conv_general_dilated(IMAGE, KERNEL, (1,), "SAME", feature_group_count=n),
    "patches": lambda n: phlox.lax.conv_general_dilated_patches(IMAGE, (n,), (1,), "SAME"),
    "reduce_window": lambda n: phlox.lax.reduce_window(jnp.arange(4.0), 0.0, phlox.lax.add, (n,), (1,), "SAME"),
    "reduce_window, stride": lambda n: phlox.lax.reduce_window(jnp.ones(4), 0.0, phlox.lax.add, (2,), (n,), "SAME"),
    "index_take": lambda n: phlox.lax.index_take(EYES[0], [np.array([0])], (n,)),
    "unroll": lambda n: phlox.lax.scan(lambda c, x: (c, x), 0.0, EYES[0], unroll=n),
    "unroll of fori_loop": lambda n: phlox.lax.fori_loop(0, 2, lambda i, x: x, 0.0, unroll=n),
    "batch_size": lambda n: phlox.lax.map(lambda x: x, EYES[0], batch_size=n),
    "max_steps": lambda n: phlox.lax.while_loop(lambda x: x < 1, lambda x: x + 1, 0, max_steps=n),
    "permutation_size": lambda n: phlox.lax.linalg.lu_pivots_to_permutation(jnp.array([0]), n),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers(name):
    WHOLE[name](np.int64(1))
    for number in (1.0, 1.5, np.float32(1)):
        with pytest.raises((errors.ArgumentError, errors.OptionError), match=r"integer|pair of numbers"):
            WHOLE[name](number)


#: functions of one number for each axis, where there is one axis
PER_AXIS = {
    "conv": lambda n: phlox.lax.conv(IMAGE, KERNEL, n, "VALID"),
    "conv_transpose": lambda n: phlox.lax.conv_transpose(
        IMAGE, KERNEL, n, "SAME", dimension_numbers=("NCH", "IOH", "NCH")
    ),
    "conv_transpose, dilation": lambda n: phlox.lax.conv_transpose(
        IMAGE, KERNEL, (1,), "SAME", rhs_dilation=n, dimension_numbers=("NCH", "IOH", "NCH")
    ),
    "conv_shape_tuple": lambda n: phlox.lax.conv_shape_tuple((8, 3, 10), (4, 3, 3), n, "VALID"),
    "conv_shape_tuple, pairs": lambda n: phlox.lax.conv_shape_tuple((8, 3, 10), (4, 3, 3), n, [(0, 0)]),
    "conv_transpose_shape_tuple": lambda n: phlox.lax.conv_transpose_shape_tuple(
        (8, 10, 3), (3, 3, 4), n, "SAME", CONV_DIMS
    ),
    "reduce_window": lambda n: phlox.lax.reduce_window(
        jnp.ones(4), 0.0, phlox.lax.add, (2,), (1,), "SAME", window_dilation=n
    ),
}


@pytest.mark.parametrize("name", PER_AXIS)
def test_one_number_for_each_axis(name):
    PER_AXIS[name]((1,))
    for numbers in ((), (1, 1)):
        with pytest.raises(errors.ShapeError):
            PER_AXIS[name](numbers)


#: functions of a parameter that lists something, given a single number
SEQUENCES = {
    "expand_dims": lambda n: phlox.lax.expand_dims(EYES[0], n),
    "squeeze": lambda n: phlox.lax.squeeze(jnp.ones((2, 1)), n),
    "reduce_sum": lambda n: phlox.lax.reduce_sum(EYES[0], n),
    "reduce_max": lambda n: phlox.lax.reduce_max(EYES[0], n),
    "split": lambda n: phlox.lax.split(EYES[0], n),
    "tile": lambda n: phlox.lax.tile(jnp.arange(4), n),
    "pad": lambda n: phlox.lax.pad(jnp.arange(4.0), 0.0, n),
    "reshape": lambda n: phlox.lax.reshape(EYES[0], (4,), dimensions=n),
    "fft": lambda n: phlox.lax.fft(jnp.ones(4), "fft", n),
    "dynamic_slice": lambda n: phlox.lax.dynamic_slice(jnp.arange(4), n, (2,)),
    "dynamic_update_slice": lambda n: phlox.lax.dynamic_update_slice(jnp.arange(4), jnp.arange(2), n),
    "conv, stride": lambda n: phlox.lax.conv(IMAGE, KERNEL, n, "VALID"),
    "conv, dilation": lambda n: phlox.lax.conv_general_dilated(IMAGE, KERNEL, (1,), "SAME", rhs_dilation=n),
    "patches": lambda n: phlox.lax.conv_general_dilated_patches(IMAGE, n, (1,), "SAME"),
    "reduce_window, padding": lambda n: phlox.lax.reduce_window(jnp.ones(4), 0.0, phlox.lax.add, (2,), (1,), n),
    "dot_general": lambda n: phlox.lax.dot_general(EYES[0], EYES[0], n),
    "dot_general, pairs": lambda n: phlox.lax.dot_general(EYES[0], EYES[0], ((n,), (n,))),
    "numpy.transpose": lambda n: jnp.transpose(EYES[0], n),
    "numpy.rot90": lambda n: jnp.rot90(EYES[0], axes=n),
    "numpy.fft.fft2": lambda n: jnp.fft.fft2(EYES[0], axes=n),
    "numpy.fft.fftn": lambda n: jnp.fft.fftn(EYES[0], s=n),
    "numpy.histogram": lambda n: jnp.histogram(EYES[0], range=n),
    "numpy.choose": lambda n: jnp.choose(jnp.array([0]), n),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_number_where_several_are_listed(name):
    for number in (1, np.array(1)):
        with pytest.raises(errors.ArgumentError, match=r"must be (a sequence|two pairs), .*got"):
            SEQUENCES[name](number)
