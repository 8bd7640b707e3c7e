"""Names that phlox does not have: parts of JAX, functions of NumPy and SciPy that JAX lacks too, and misspelt names.

The tables say why, and what to write instead. Names of JAX stand for those of phlox too: ``jax.lax`` is `phlox.lax`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable

_KERNELS = (
    "kernels are interpreted, under as_jax only, and not compiled for the hardware",
    "pallas_call(..., interpret=True) under as_jax; operations of jax.lax; or a kernel of your own by jax.ffi",
)
#: parts of JAX that phlox does not have: why, and what to use
UNAVAILABLE: dict[str, tuple[str, str]] = {
    "jax.experimental.pallas": _KERNELS,
    "jax.experimental.pallas.mosaic_gpu": _KERNELS,
    "jax.experimental.pallas.tpu_sc": _KERNELS,
    "jax.experimental.pallas.fuser": _KERNELS,
    "jax.experimental.pallas.ops": ("these kernels are not there", "jax.nn.dot_product_attention, jax.lax.ragged_dot"),
    "jax.experimental.colocated_python": (
        "there are no Python processes beside the devices of another host",
        "jax.experimental.io_callback, which runs on the host of the device",
    ),
    "jax.experimental.array_serialization": (
        "files of sharded arrays are the subject of another package",
        "phlox_optim.checkpoint, or orbax",
    ),
    "jax.experimental.custom_partitioning": (
        "the compiler does not ask Python how to split an operation over devices; as_jax runs the function",
        "jax.shard_map, in which each device computes its part",
    ),
    "jax.experimental.compute_on": (
        "a program is compiled for devices of one kind",
        "jax.pure_callback for a part on the host; jax.device_put between programs of different devices",
    ),
    "jax.experimental.gda_serialization": ("jax has removed it", "phlox_optim.checkpoint"),
    "jax.experimental.host_callback": ("jax has removed it", "jax.pure_callback, jax.experimental.io_callback"),
    "jax.experimental.jax2tf": ("TensorFlow graphs are not written", "jax.export"),
    "jax.experimental.mosaic": ("kernels are not written in Python here", "operations of jax.lax, or jax.ffi"),
    "jax.experimental.topologies": (
        "programs are compiled for devices that are there",
        "jax.jit(f).lower(x).compile(), or jax.export for another platform",
    ),
    "jax.experimental.shard_alike": (
        "the compiler is told shardings, not that two of them are equal",
        "jax.lax.with_sharding_constraint of both with one sharding, or jax.sharding.reshard",
    ),
    "jax.experimental.xla_metadata": (
        "operations carry no attributes of the user's",
        "jax.named_scope for names in profiles; compiler_options of jax.jit for flags of XLA",
    ),
    "jax.experimental.scheduling_groups": (
        "the compiler is not told which operations to schedule together",
        "jax.lax.optimization_barrier, which orders operations",
    ),
    "jax.experimental.control_deps": (
        "operations have no order beside that of their values",
        "jax.lax.optimization_barrier, which orders operations",
    ),
    "jax.experimental.fused": ("what is fused is the compiler's choice", "jax.jit"),
    "jax.experimental.roofline": (
        "there is no model of devices' speeds",
        "jax.jit(f).lower(x).compile().cost_analysis(), and jax.profiler.trace",
    ),
    "jax.experimental.source_mapper": (
        "programs are not mapped to lines in files",
        "jax.jit(f).lower(x).as_text(debug_info=True), which has the lines of the operations",
    ),
    "jax.experimental.transfer": (
        "arrays do not move between programs that were started apart",
        "jax.distributed.initialize, after which several processes are one program",
    ),
    "jax.extend.ifrt_programs": ("programs of the runtime are not built in Python here", "jax.jit"),
    "jax.tools": ("these tools are not there", "jax.jit(f).lower(x).as_text()"),
}

_HOST = "{home}.{name} of NumPy arrays, by np.asarray(x), and in jit by jax.pure_callback"
#: names that NumPy or SciPy has and JAX has not. Module of JAX | names | what to write instead;
#: lines that begin with blanks continue the line before
_LINES = """
jax.numpy | loadtxt genfromtxt fromregex | jax.numpy.asarray(np.{name}(...))
jax.numpy | savetxt savez_compressed tofile memmap | np.{name}(..., np.asarray(x))
jax.numpy | random | jax.random, whose functions take a key: jax.random.normal(jax.random.key(0), shape)
jax.numpy | matrix asmatrix mat bmat | arrays, and x @ y for products
jax.numpy | nditer ndenumerate ndindex nested_iters | jax.vmap or jax.lax.scan; np.{name}(np.asarray(x)) on the host
jax.numpy | copyto putmask | y = jax.numpy.where(mask, values, x), as arrays cannot be changed in place
jax.numpy | product cumproduct sometrue alltrue | jax.numpy.prod, jax.numpy.cumprod, jax.numpy.any, jax.numpy.all
jax.numpy | msort in1d trapz row_stack | jax.numpy.sort, jax.numpy.isin, jax.numpy.trapezoid, jax.numpy.vstack
jax.numpy | float complex bool8 int0 uint0 | Python's types, or jax.numpy.float32
jax.numpy | float128 longdouble clongdouble complex256 | jax.numpy.float64 with jax.enable_x64(True)
jax.numpy | require ascontiguousarray asfortranarray asanyarray | jax.numpy.asarray(x), as arrays have no memory
  order
jax.numpy | testing | np.testing, which takes arrays of devices too
jax.numpy | seterr errstate geterr | jax.debug_nans(True), which finds the operation that made a nan
jax.numpy | ma | jax.numpy.where(mask, x, fill), and where= of reductions
jax.numpy | lib polynomial | jax.numpy.polyval and its relatives
jax.scipy.linalg | lstsq pinv norm | jax.numpy.linalg.{name}
jax.scipy.linalg | matrix_balance null_space orth logm sinm cosm tanm coshm sinhm tanhm signm eig eigvals eigvalsh
  rq qz ordqz cdf2rdf solve_banded solveh_banded cho_solve_banded cholesky_banded solve_discrete_are
  solve_continuous_are solve_lyapunov solve_discrete_lyapunov | {host}
jax.scipy.integrate | solve_ivp odeint ode RK45 RK23 DOP853 Radau BDF LSODA | jax.experimental.ode.odeint; the
  library diffrax, by phlox.adopt("diffrax"); {host}
jax.scipy.integrate | quad_vec dblquad tplquad nquad fixed_quad romberg simps simpson cumtrapz newton_cotes |
  jax.scipy.integrate.trapezoid of values on a grid; jax.scipy.integrate.quad of phlox; {host}
jax.scipy.optimize | curve_fit least_squares nnls lsq_linear | jax.scipy.optimize.minimize of the sum of squares;
  the libraries optimistix and jaxopt; {host}
jax.scipy.optimize | root root_scalar fsolve brentq bisect newton fixed_point broyden1 broyden2 anderson
  newton_krylov ridder toms748 | jax.lax.custom_root around a solver of your own; the library optimistix; {host}
  with jac=jax.jacobian(f)
jax.scipy.optimize | minimize_scalar fmin fmin_bfgs fmin_l_bfgs_b fmin_cg fmin_ncg fmin_powell fmin_slsqp
  fmin_cobyla line_search | jax.scipy.optimize.minimize; the library optax; jac=jax.grad(f) for {host}
jax.scipy.optimize | linprog milp linear_sum_assignment quadratic_assignment differential_evolution basinhopping
  brute dual_annealing shgo direct approx_fprime check_grad Bounds LinearConstraint NonlinearConstraint rosen
  rosen_der | {host}
jax.scipy.signal | find_peaks find_peaks_cwt argrelextrema argrelmax argrelmin peak_prominences peak_widths |
  jax.numpy.where((x[1:-1] > x[:-2]) & (x[1:-1] > x[2:])) for local maxima; {host}
jax.scipy.signal | butter cheby1 cheby2 ellip bessel firwin firwin2 remez iirfilter iirdesign freqz sosfreqz zpk2sos
  tf2zpk tf2sos savgol_coeffs group_delay buttord | {host}: filters are designed once, on the host
jax.scipy.signal | lfilter sosfilt filtfilt sosfiltfilt lfilter_zi deconvolve | jax.lax.scan over the samples;
  jax.scipy.signal.fftconvolve for filters of finite response; {host}
jax.scipy.signal | savgol_filter medfilt medfilt2d wiener order_filter decimate resample resample_poly upfirdn |
  jax.scipy.signal.convolve with the filter's coefficients; {host}
jax.scipy.signal | spectrogram periodogram coherence lombscargle cwt ricker morlet chirp sawtooth square gausspulse
  | jax.scipy.signal.stft and welch; {host}
jax.scipy.spatial | KDTree cKDTree ConvexHull Delaunay Voronoi SphericalVoronoi HalfspaceIntersection procrustes
  geometric_slerp | distances by jax.numpy.linalg.norm(x[:, None] - y[None], axis=-1), and jax.lax.top_k; {host}
jax.scipy.spatial | distance distance_matrix minkowski_distance | jax.numpy.linalg.norm(x[:, None] - y[None],
  axis=-1); {host}
jax.scipy.interpolate | interp1d interp2d griddata interpn RectBivariateSpline UnivariateSpline BSpline
  make_interp_spline splrep splev PchipInterpolator Akima1DInterpolator BarycentricInterpolator RBFInterpolator Rbf
  LinearNDInterpolator NearestNDInterpolator CubicHermiteSpline lagrange | jax.numpy.interp, and the classes of
  jax.scipy.interpolate; {host}
jax.scipy.ndimage | label find_objects center_of_mass binary_dilation binary_erosion binary_fill_holes
  distance_transform_edt rotate zoom affine_transform shift watershed_ift | jax.scipy.ndimage.map_coordinates,
  jax.image.resize, jax.lax.reduce_window; {host}
jax.scipy.stats | ttest_ind ttest_rel ttest_1samp ks_2samp kstest mannwhitneyu wilcoxon chi2_contingency chisquare
  f_oneway shapiro anderson pearsonr spearmanr kendalltau linregress entropy zscore describe bootstrap boxcox qmc
  binned_statistic permutation_test | {host}
jax.scipy | io constants datasets fftpack misc odr differentiate | {host}
jax.scipy.special | ellipk ellipe ellipj airy mathieu_a lpmv legendre hermite jacobi chebyt | {host}
jax.random | seed rand randn random random_sample standard_normal shuffle | jax.random.normal(jax.random.key(0),
  shape) and jax.random.uniform: a key in the place of a global seed, and jax.random.split for further numbers
jax.random | RandomState default_rng Generator SeedSequence get_state set_state | jax.random.key(seed), and
  jax.random.split(key) for further numbers
jax.numpy.linalg | LinAlgError | nan in the result, which jax.debug_nans(True) finds
jax | tensor from_numpy | jax.numpy.asarray(x)
jax | relu gelu softmax sigmoid log_softmax one_hot tanh | jax.nn.{name}
"""


def _elsewhere() -> dict[str, str]:
    """Full name of JAX -> what to write instead."""
    alternatives: dict[str, str] = {}
    for line in _LINES.replace("\n  ", " ").strip().splitlines():
        module, names, instead = (part.strip() for part in line.split(" | "))
        home = {"jax.numpy": "np"}.get(module, module.removeprefix("jax."))
        for name in names.split():
            text = instead.replace("{host}", _HOST).replace("{home}", home).replace("{name}", name)
            alternatives[f"{module}.{name}"] = text
    return alternatives


def reason(jax_name: str) -> tuple[str, str]:
    """Why phlox lacks a name of JAX, and what to use instead."""
    return _listed(jax_name) or _unlisted(jax_name)


def _listed(jax_name: str) -> tuple[str, str] | None:
    parts = jax_name.split(".")
    # From the whole name to the first parts: the most exact entry counts.
    for count in range(len(parts), 1, -1):
        if entry := UNAVAILABLE.get(".".join(parts[:count])):
            return entry
    elsewhere = _elsewhere()
    for count in range(len(parts), 1, -1):
        if instead := elsewhere.get(".".join(parts[:count])):
            return "neither jax nor phlox has it", instead
    return None


def _unlisted(jax_name: str) -> tuple[str, str]:
    if "_src" in jax_name.split("."):
        return "it is private in jax, and phlox has nothing of this name", "a public function of jax"
    return "phlox has nothing of this name", "docs/libraries.md lists what is there"


def listed(full_name: str) -> tuple[str, str] | None:
    """As `reason`, for a name of phlox and in its words; None if the tables do not have the name."""
    # The tables are written in names of JAX, as users of both look for them.
    entry = _listed("jax" + full_name.removeprefix("phlox"))
    return entry and (entry[0], entry[1].replace("jax.", "phlox."))


#: modules in which a name is looked up that another module lacks
_MODULES = [
    "phlox",
    "phlox.numpy",
    "phlox.lax",
    "phlox.nn",
    "phlox.random",
    "phlox.numpy.linalg",
    "phlox.scipy.special",
    "phlox.tree",
]


def explain(module: str, name: str, names: Iterable[str]) -> tuple[str, str]:
    """What to say about a name that a public module lacks, and what to write instead. `names` are those it has."""
    full_name = f"{module}.{name}"
    # From the surest answer to a guess: a listed name, a name of another module, NumPy's or SciPy's, a misspelt one.
    if entry := listed(full_name):
        return f"the program uses {full_name}: {entry[0]}", entry[1]
    what = f"module {module!r} has no attribute {name!r}"
    if name.startswith("_"):
        return what, ""
    homes = [home for home in _MODULES if home != module and name in dir(importlib.import_module(home))]
    if homes:
        return f"{what}. Did you mean: '{homes[0]}.{name}'?", f"{homes[0]}.{name}"
    if home := _original(module, name):
        host = _HOST.format(home=home, name=name).replace("jax.", "phlox.")
        return f"the program uses {full_name}: neither jax nor phlox has it", host
    if close := _closest(name, names):
        return f"{what}. Did you mean: {close!r}?", f"{module}.{close}"
    return what, ""


def _original(module: str, name: str) -> str:
    """The name of NumPy's or SciPy's module of this path, if it has the name."""
    original = module.removeprefix("phlox.")
    if original.partition(".")[0] not in ("numpy", "scipy"):
        return ""
    try:
        exists = hasattr(importlib.import_module(original), name)
    except ImportError:
        return ""
    return original.replace("numpy", "np") if exists else ""


def _closest(name: str, names: Iterable[str]) -> str:
    import difflib

    lower = {other.lower(): other for other in names}
    # 0.7: a letter or two may be wrong. Less similar names would mislead.
    close = difflib.get_close_matches(name.lower(), lower, 1, 0.7)
    return lower[close[0]] if close else ""


def imports(code: bytes, offset: int) -> bool:
    """Whether the instruction at `offset` is that of ``from module import name``."""
    import opcode

    # Python calls `__getattr__` from this instruction for an import, and from LOAD_ATTR for an attribute.
    return offset >= 0 and code[offset] == opcode.opmap["IMPORT_FROM"]
