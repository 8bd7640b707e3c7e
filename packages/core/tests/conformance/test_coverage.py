"""No public function is forgotten: each has a row in a table, or a test of its own that names it. Signatures are jax's."""

import functools

import jax
import jax.ad_checkpoint
import jax.custom_batching
import jax.custom_derivatives
import jax.experimental.checkify
import jax.experimental.jet
import jax.export
import jax.ffi
import jax.flatten_util
import jax.image
import jax.monitoring
import jax.ops
import jax.scipy.cluster.vq
import jax.scipy.fft
import jax.scipy.integrate
import jax.scipy.interpolate
import jax.scipy.linalg
import jax.scipy.ndimage
import jax.scipy.optimize
import jax.scipy.signal
import jax.scipy.sparse.linalg
import jax.scipy.spatial.transform
import jax.scipy.special
import jax.scipy.stats
import jax.stages
import jax.test_util
import pytest

import phlox
import phlox.experimental.jet
import phlox.test_util
from conformance import (
    test_arrays,
    test_callbacks,
    test_checkify,
    test_closures,
    test_configuration,
    test_custom,
    test_custom_batching,
    test_custom_rules,
    test_derivatives,
    test_dtypes,
    test_experimental,
    test_fft,
    test_image,
    test_indexing,
    test_jax_0_12,
    test_jaxprs,
    test_jet,
    test_lax_collectives,
    test_lax_compiler,
    test_lax_control_flow,
    test_lax_convolutions,
    test_lax_elementwise,
    test_lax_out_sharding,
    test_lax_products,
    test_lax_solves,
    test_lax_structural,
    test_lax_windows,
    test_linalg,
    test_meshes,
    test_nn,
    test_numpy_creation,
    test_numpy_elementwise,
    test_numpy_files,
    test_numpy_indexing,
    test_numpy_polynomials,
    test_numpy_products,
    test_pad_axes,
    test_random_distributions,
    test_random_keys,
    test_random_rejection,
    test_random_samplers,
    test_refs,
    test_remat,
    test_scipy_filters,
    test_scipy_interpolate,
    test_scipy_optimize,
    test_scipy_others,
    test_scipy_sparse,
    test_scipy_spatial,
    test_scipy_stats,
    test_stages,
    test_transforms,
    test_trees,
    test_ufuncs,
)
from conformance.coverage import differing_signatures, member, not_named
from conformance.examples import TESTS, has_formula

TABLES = [*TESTS, test_nn, test_ufuncs]
ROWS = {row.path for module in TABLES for row in module.TABLE}

#: What has no rows has tests of its own, in these files.
ELSEWHERE = {
    "numpy": [
        test_dtypes,
        test_arrays,
        test_transforms,
        test_numpy_products,
        test_numpy_creation,
        test_numpy_elementwise,
        test_numpy_files,
        test_numpy_indexing,
        test_numpy_polynomials,
        test_jax_0_12,
        test_ufuncs,
    ],
    "lax": [
        test_jax_0_12,
        test_lax_collectives,
        test_lax_control_flow,
        test_lax_convolutions,
        test_fft,
        test_lax_compiler,
        test_lax_elementwise,
        test_lax_out_sharding,
        test_lax_products,
        test_lax_structural,
        test_lax_solves,
        test_lax_windows,
    ],
    "lax.linalg": [test_linalg],
    "scipy.integrate": [test_scipy_others, test_scipy_filters],
    "scipy.interpolate": [test_scipy_interpolate, test_scipy_filters],
    "scipy.ndimage": [test_scipy_others, test_scipy_filters],
    "scipy.linalg": [test_linalg],
    "scipy.stats": [test_scipy_stats],
    "scipy.optimize": [test_scipy_optimize],
    "scipy.sparse.linalg": [test_scipy_sparse],
    "scipy.spatial.transform": [test_scipy_spatial],
    "nn": [test_nn],
    "nn.initializers": [test_nn],
    "image": [test_image],
    "random": [test_jax_0_12, test_random_keys, test_random_samplers, test_random_distributions, test_random_rejection],
    "ref": [test_refs],
    "sharding": [test_meshes, test_lax_collectives],
    "tree": [test_trees],
    "tree_util": [test_trees],
    "experimental.jet": [test_jet],
    "test_util": [test_derivatives],
    "dtypes": [test_dtypes],
    "flatten_util": [test_trees],
    "ad_checkpoint": [test_remat],
    "custom_batching": [test_custom_batching],
    "custom_derivatives": [test_closures, test_custom, test_custom_rules],
    "checkpoint_policies": [test_remat],
    "": [
        test_transforms,
        test_pad_axes,
        test_custom,
        test_jaxprs,
        test_arrays,
        test_lax_collectives,
        test_dtypes,
        test_indexing,
        test_remat,
        test_closures,
        test_meshes,
        test_refs,
        test_stages,
        test_configuration,
        test_callbacks,
        test_derivatives,
        test_jax_0_12,
    ],
    "scipy.special": [test_jax_0_12],
    "stages": [test_stages],
    "export": [test_jax_0_12, test_stages],
    "ffi": [test_stages],
    "experimental.checkify": [test_checkify],
    "experimental.random": [test_experimental],
    "monitoring": [test_configuration],
}
DISTRIBUTIONS = (
    "bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r laplace logistic "
    "multinomial multivariate_normal nbinom norm pareto poisson t truncnorm uniform vonmises wrapcauchy"
)
MODULES = [
    "ops",
    "numpy.fft",
    "numpy.linalg",
    "scipy.special",
    *(f"scipy.stats.{name}" for name in DISTRIBUTIONS.split()),
    "scipy.fft",
    "scipy.signal",
    "scipy.cluster.vq",
    *ELSEWHERE,
]

#: Names that say nothing of values: annotations, settings, handles of devices and caches. Their tests are in tests/unit.
NO_VALUES = {
    "KeyEntry", "KeyPath", "PyTreeDef", "Initializer", "ConvGeneralDilatedDimensionNumbers", "DotDimensionNumbers", "PrecisionLike", "Precision", "ScatterDimensionNumbers", "TypePromotionError",
    "adopt", "cache", "clear_caches", "config", "print_saved_residuals", "copy_to_host_async", "Device", "default_matmul_precision", "disable_jit", "NamedSharding",
    "numpy_rank_promotion", "P", "Shard",
    "Error", "ErrorCategory", "init_error",
    "live_arrays", "print_environment_info",
    "device_put_replicated", "device_put_sharded", "Infer",
    "Key", "UnreducedKind",  # types
    "broadcast_prefix", "itemsize_bits", "fixed_point",  # not in jax
    "record", "tag", "show", "explain_memory", "explain_sharding", "where_time", "checks",  # not in jax
}  # fmt: skip


@pytest.mark.parametrize("path", MODULES)
def test_every_function_is_compared(path):
    missing = [
        name
        for name in not_named(path, ELSEWHERE.get(path, []))
        if name not in NO_VALUES and (f"{path}.{name}" if path else name) not in ROWS
        if not has_formula(path, name)
        if not (path == "tree_util" and name.removeprefix("tree_") in phlox.tree.__all__)
    ]
    assert not missing, (
        f"no test compares {', '.join(missing)} of {path or 'phlox'}: a row of the tests of its kind in conformance does, or "
        "one of FORMULAS in registry_examples.py if jax has no such function"
    )


def test_rows_name_functions_that_exist():
    for path in ROWS:
        first, _, name = path.partition(".")
        assert hasattr(phlox.Array, name) if first == "method" else member(phlox, path) is not None, path


@pytest.mark.parametrize("path", MODULES)
def test_signatures(path):
    """The same names in the same order, so that calls written for jax are understood."""
    wrong = differing_signatures(path)
    assert not wrong, f"{len(wrong)} of {path or 'phlox'}: " + "; ".join(wrong)


#: modules whose functions have jax's `__name__`, and what jax calls otherwise
NAMED = [
    "",
    "numpy",
    "numpy.linalg",
    "numpy.fft",
    "lax",
    "lax.linalg",
    "nn",
    "random",
    "tree",
    "tree_util",
    "ops",
    "image",
]
NAMED += ["scipy.special", "scipy.stats", "scipy.linalg", "scipy.signal", "scipy.fft", "nn.initializers"]
NAMED_OTHERWISE = {"Array", "P", "checking_leaks", "ds", "ndarray", "random_gamma_grad"}
NAMED_OTHERWISE |= {"Key", "local_devices", "process_count"}  # jax 0.12 has objects without a name here


@pytest.mark.parametrize("module", NAMED)
def test_names_of_functions(module):
    """Aliases too: `acos` is no `arccos`, in programs, profiles and pickles."""
    theirs, mine = (functools.reduce(getattr, filter(None, module.split(".")), m) for m in (jax, phlox))
    differ = {
        name
        for name in dir(theirs)
        if not name.startswith("_") and callable(getattr(theirs, name)) and hasattr(mine, name)
        if getattr(getattr(theirs, name), "__name__", None) != getattr(getattr(mine, name), "__name__", None)
    }
    assert not differ - NAMED_OTHERWISE
