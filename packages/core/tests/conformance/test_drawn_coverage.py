"""No public function is forgotten by the tests `test_drawn_*`: each is in one of their tables, or stands here with the reason."""

import inspect

import jax
import jax.dtypes
import jax.image
import jax.lax.linalg
import jax.ops
import numpy as np
import pytest

import phlox
import phlox.dtypes
import phlox.image
import phlox.ops
from conformance import (
    test_drawn_elementwise,
    test_drawn_lax_structural,
    test_drawn_linalg,
    test_drawn_methods,
    test_drawn_reductions,
    test_drawn_shapes,
)
from conformance.drawn import AS_NUMPY, CASES, drawn
from conformance.harness import function
from conformance.test_ufuncs import NAMES as UFUNCS

TABLES = [
    table.TABLE
    for table in (
        test_drawn_elementwise,
        test_drawn_linalg,
        test_drawn_methods,
        test_drawn_reductions,
        test_drawn_shapes,
        test_drawn_lax_structural,
    )
]
MODULES = [
    "numpy",
    "numpy.linalg",
    "numpy.fft",
    "lax",
    "lax.linalg",
    "ops",
    "image",
    "dtypes",
    *[f"numpy.{name}" for name in UFUNCS],
]

#: What is not drawn, and where it is compared instead.
NOT_DRAWN = {
    "files and other processes' memory, in test_arrays and test_numpy_files": "numpy.from_dlpack numpy.fromfile numpy.load "
    "numpy.save numpy.savez",
    "text and its settings, in test_dtypes": "numpy.array_repr numpy.array_str numpy.get_printoptions numpy.printoptions "
    "numpy.set_printoptions",
    "a list of pairs and text, in test_numpy_products": "numpy.einsum_path",
    "every field for every dtype, in test_dtypes": "numpy.finfo numpy.iinfo dtypes.finfo dtypes.iinfo",
    "functions that return functions, in test_transforms and test_ufuncs": "numpy.frompyfunc numpy.vectorize",
    "whole programs with them are drawn in test_random_programs": "lax.cond lax.fori_loop lax.map lax.scan lax.switch "
    "lax.while_loop",
    "they take several functions that fit together, in test_lax_solves and test_lax_compiler": "lax.composite "
    "lax.custom_linear_solve lax.custom_root lax.platform_dependent",
    "they take the names of axes of meshes, in test_lax_collectives and test_meshes": "lax.all_gather lax.all_to_all "
    "lax.axis_index lax.axis_size lax.pbroadcast lax.pcast lax.pmax lax.pmean lax.pmin lax.ppermute lax.pshuffle lax.psum "
    "lax.psum_scatter lax.psum_scatter_start lax.pswapaxes lax.ragged_all_to_all lax.with_sharding_constraint "
    "lax.after_all lax.create_token "
    "lax.precv lax.psend",
    "one layout and few dtypes each, in test_lax_products": "lax.ragged_dot_general lax.scaled_dot",
    "which numbers it gives is open, in test_lax_windows": "lax.rng_uniform",
    "it has no result, in test_lax_compiler": "lax.dce_sink",
    "of jax 0.12 and not of jax 0.10, in test_jax_0_12": "lax.log2 lax.one_minus_square lax.polynomial numpy.minmax "
    "numpy.top_k",
    "an annotation": "lax.DotDimensionNumbers",
}  # fmt: skip


def public(module):
    """The functions that both libraries have in this module."""
    mine, theirs = function(phlox, module), function(jax, module)
    values = {name: getattr(mine, name) for name in dir(theirs) if hasattr(mine, name)}
    return {
        f"{module}.{name}"
        for name, value in values.items()
        if callable(value) and not inspect.isclass(value) and not name.startswith("_") and not name.endswith("_p")
    }


@pytest.mark.parametrize("module", MODULES)
def test_every_function_is_drawn(module):
    of_module = lambda paths: {path for path in paths if path.rpartition(".")[0] == module}
    paths, tables = public(module), of_module(path for table in TABLES for path in table)
    not_drawn = of_module(path for paths in NOT_DRAWN.values() for path in paths.split())
    assert not paths - tables - not_drawn, "neither drawn nor in NOT_DRAWN"
    assert not tables - paths, "drawn, but no public function"
    # Not of `paths`: some are of jax 0.12 only.
    names = dir(function(phlox, module))
    assert all(path.rpartition(".")[2] in names for path in not_drawn), "in NOT_DRAWN, but no public function"
    assert not tables & not_drawn, "drawn and in NOT_DRAWN"


def test_a_function_is_drawn_in_one_table():
    paths = [path for table in TABLES for path in table]
    assert len(paths) == len(set(paths))
    assert set(AS_NUMPY) <= set(paths)


def test_the_same_calls_are_drawn_each_time():
    for table in TABLES:
        for path in table:
            first, second = (drawn(path, CASES - 1, table)[1] for _ in range(2))
            plain = lambda call: repr(call).partition("<function")[0]
            assert plain(first) == plain(second)


def test_what_numpy_answers_is_there():
    for path in AS_NUMPY:
        assert callable(getattr(np, path.removeprefix("numpy.")))
