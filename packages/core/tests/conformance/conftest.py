"""The list of where one jax contradicts the other.

phlox answers as jax 0.12 does in what `NEWER` lists, which cannot be judged by 0.10.2. In what `CHANGED` lists it
answers as jax 0.10.2 does.
"""

import pathlib
import re

import pytest

from judging import few_compiled_programs as few_compiled_programs, leave_out_cases

CHANGED = {
    r"test_gradient\[numpy\.hypot\(": "the derivative of hypot at (0, 0) is nan",
    r"test_gradient\[(numpy\.(maximum|minimum)|lax\.(max|min)|lax\.cum(max|min)|nn\.(log_)?softmax|(method|numpy)\.a?(max|min))\(.*(complex64|2j)": (
        "the larger of complex numbers has no derivative"
    ),
    r"test_program\[jit inline\]": "an inlined function is printed as a call",
    r"test_program_of_(gradient|jvp)\[(clip|maximum|one more use)\]": "the derivative of max is another",
    r"test_programs_print_alike\[(scan|map|fori_loop)\]": "scan prints other parameters",
    r"test_program\[(scan that .*|made number in a loop)\]": "scan prints other parameters",
    r"test_meshes.py::test_like_jax\[dynamic_slices\]": "a ds with a traced start is an AssertionError",
    r"test_convention\[(hypot at 0-|det.* rank .*-second)": (
        "derivatives of hypot at (0, 0) and second ones of det at singular matrices are others"
    ),
    r"test_gradient\[scipy\.stats\.cauchy\.(ppf|isf)\(S\(0\.5": "the derivative of quantiles is 0 at the median",
    r"test_drawn_linalg\.py::.*\[lax\.linalg\.(cholesky_update|symmetric_product)-": "narrow floats are refused",
    r"test_drawn_.*\[numpy\.nanquantile-8\]": "quantiles of no elements meet other errors",
    r"test_signatures\[|test_updates_take_the_arguments": "functions have further options, and policies other names",
}

#: Where phlox answers as jax 0.12 does, and jax 0.10.2 otherwise.
NEWER = {
    r"test_64_bits\[numpy\.tri\(|test_drawn_\w+\.py::.*\[numpy\.tri-": "tri is of float32 in 64-bit mode",
    r"test_weak_types_of_arrays\[hypot\]|\[numpy\.hypot\(.*S\(": "hypot of weakly typed arrays is weakly typed",
    r"\[numpy\.sinc\(Special": "sinc at infinity is 0, not nan",
    r"\[numpy\.log2\(": "log2 of a Python number is not weak, and results are rounded otherwise",
    r"\[numpy\.(broadcast_arrays|atleast_[123]d|meshgrid)\(": "several arrays come back as a list",
    r"\[numpy\.cross\(.*A\[(4,)?2\]": "cross products of vectors with two elements are numbers",
    r"test_drawn_\w+\.py::.*\[numpy\.(cross|atleast_[123]d|hypot|log2|polyval)-": "what is drawn meets all of these",
    r"\[numpy\.polyval\(.*(bool|Special)": "polynomials of bools are computed, and 0 times infinity is nan in them",
    r"test_gradient\[.*linalg\.cholesky\(": "the derivative of cholesky is of the triangle that is read",
    r"test_value\[lax\.igammac?\(np\.float32\(inf\)": "igamma(inf, x) is 0, not nan",
    r"test_sampler(_of_many_keys)?\[multinomial": "the shape of a multinomial is without the axis of categories",
    r"test_value\[scipy\.stats\.uniform\.cdf\(S\(": "cdf of a Python number is weak, as it is under jit",
    r"test_gradient\[(lax|numpy)\.sign\(.*complex64": "the sign of complex numbers has a derivative",
    r"test_elementwise_transforms\.py::.*lax\.sign-complex": "the sign of complex numbers has a derivative",
    r"test_convention\[arctanh at the edge-second": "the second derivative of atanh at 1 is another",
    r"\[numpy\.nan(quantile|percentile|median)\(A\[0": "nan-quantiles of no elements are nan",
    r"test_gradient\[(lax|numpy)\.(nextafter|spacing)\(": "nextafter has a derivative",
    r"test_first_and_second_derivatives\.py::test_(none|real)\[(lax|numpy)\.(nextafter|spacing)": "nextafter has a derivative",
    r"\[numpy\.(nonzero|argwhere|where|flatnonzero)\(.*fill_value=": "what fills places is never weak",
    r"test_initializer\[normal|test_variance_scaling\[normal-": "normal numbers are rounded otherwise, those of narrow floats once less",
    r"test_drawn_methods\.py::.*\.reduceat-": "reduceat converts to its dtype",
    r"test_types_of_results\[(lax|numpy|scipy)\.linalg\.": "half precision is refused when it is traced",
    r"test_specs_have_an_entry_for_each_axis_of_a_result\[reshape of partial": "specs of partial results do not name sums",
    r"test_refused_with_the_class_of_jax\[(a type with too many|auto_axes of manual)": "more is refused, by other classes",
    r"test_one_element_is_whole": "slices of one element of a split axis are refused",
    r"test_a_batch_that_is_split_over_another_axis\[None": "a batch may be split over another axis",
    r"test_names_in_compiled_programs_are_those_of_jax\[checkpoint": "operations of checkpoint have its name",
    r"test_large_arrays_are_printed_without_elements\[262144": "arrays of 1 MiB are printed without elements",
    r"test_memory_spaces_like_jax\[less precise": "the result of reduce_precision of a scalar stays in host memory",
    r"test_types_in_spaces_like_jax\[(descriptions|references)": "descriptions and references have memory spaces",
    r"test_checkify\.py::.*\[(all_checks-)?(again|thrown)\]": "a nan that came earlier than a failed check is told",
}

#: What jax does not judge, in any version.
JUDGED_ELSEWHERE = {
    r"test_(gradient|second_derivative)\[.*Special\(": "derivatives at corners are judged by mpmath, see test_corners and docs/corners.md",
    r"test_gradient\[lax\.linalg\.eigh\(G": "of equal eigenvalues, where jax has nan, see test_equal_eigenvalues",
    r"test_64_bits\[scipy\.linalg\.eigh_tridiagonal\(A\[6\],A\[5\]\)-complex": "vectors are determined up to a phase",
    r"test_gradient\[numpy\.linalg\.lstsq\(G\[2,2\]": "of a singular matrix, see test_rank_deficient_least_squares",
    r"\[numpy\.sinc\(Special\(\)\)-complex": "0 where pi times the operand overflows, jax has nan",
    r"\[lax\.clamp\(.*complex": "complex numbers have no order, and jax's results are in none",
    r"\[(numpy|lax|method)\.(nan)?arg(max|min)\(.*complex64": "complex numbers have NumPy's order, which jax refuses to compile",
    r"\[(lax\.|scipy\.special\.)?(digamma|psi)\(Special": "digamma of 0 is -inf, see docs/corners.md",
    r"\[scipy\.special\.i[01]\(Special": "infinite at infinity, where jax has nan: see docs/corners.md",
    r"\[scipy\.special\.loggamma\(Special": "infinite at 0, where jax has nan",
    r"test_(value|64_bits)\[lax\.zeta\(np\.float32\((2\.0|30\.0|inf)": "defined at infinity, where jax has nan",
    r"test_(values|derivatives)\[not a number-nearest": "nan as in SciPy, see test_the_nearest_of_unknown_points_is_nan",
    r"test_value\[lax\.random_gamma_grad\(np\.float32\((1e-30|30\.0)": "where the density underflows, jax has few digits",
    r"test_(value|64_bits)\[lax\.polygamma\(np\.float32\((1|2|30)\.0": "0 at infinity, where jax has nan",
    r"\[scipy\.special\.(gamma|factorial|i[01]e?)\(.*bfloat16": "rounded once from 32 bits, jax's are neighbours: see docs/corners.md",
    r"test_vmap\[numpy\.digitize\(A\[2,3\],A\[4\]\)-bfloat16": "bins of examples are in no order, and results not defined",
    r"\[numpy\.kron\(.*bool": "kron of bools is NumPy's, where jax refuses NumPy arrays and takes its own",
    r"\[numpy\.vander\(A\[3\],0\)-uint": "a matrix without columns, where jax converts -1 to an unsigned integer",
    r"test_gradient\[scipy\.stats\.gumbel_[lr]\.(log)?pdf\(.*:float32": "jax multiplies by a float0 and raises",
    r"test_gradient\[numpy\.pad\(A\[3\],\(7, 8\),.*'odd'.*bfloat16": "sums of twenty terms of both signs, rounded in another order",
    r"test_gradient\[(numpy|lax)\.(pow|power)\(A\[4\],A\[4\]": "the derivative of 0**0 by the base is 0, where jax has nan, see docs/corners.md",
    r"test_like_jax\[numpy\.full(_like)?-7\]": "both refuse a complex number for real arrays, and take an array of it",
    r"test_like_jax\[numpy\.logspace-1\]": "half precision, rounded in another order",
    r"test_like_jax\[numpy\.linalg\.vector_norm-5\]": "8 bits, rounded once",
    r"test_like_jax\[numpy\.modf-1\]": "the fraction of infinity is 0, as in NumPy, where jax has nan",
    r"test_drawn_.*\[numpy\.percentile-7\]": "percentiles of no elements, where an index of jax fails",
    r"test_of_arrays\[method\.(flatten-[35]|reshape-5)\]": "the orders A and K, which jax lacks, see test_order_in_memory",
    r"test_at\[at\.(max-15|subtract-13)\]": "an index into an axis of size 0 is refused, as by NumPy",
    r"test_of_ufuncs\[numpy\.logaddexp2\.reduce-3\]": "8 bits, rounded once",
    r"test_of_ufuncs\[numpy\.maximum\.reduce-[45]\]": "a dtype by its name, where jax takes it for an array",
    r"test_like_jax\[numpy\.frexp-5\]": "8 bits, which jax cannot take apart, see test_parts_of_all_numbers_of_8_bits",
    r"test_like_jax\[numpy\.nanpercentile-7\]": "percentages of half precision are divided in float32, as in NumPy",
    r"test_(value|64_bits)\[nn\.standardize\(.*complex": "by the mean of abs(x)**2, where jax refuses to clip the variance of NumPy arrays",
    r"\[nn\.standardize\(A\[2,3\],mean=.*(int|bool)": "differences of floats; in jax those of unsigned integers wrap, and bools have none",
    r"\[nn\.standardize\(A\[2,3\](,0)?\)-b?float16": "rounded once, where jax squares and subtracts in half precision",
    r"test_gradient\[nn\.standardize\(A\[2,3\],0\).*bfloat16": "of two numbers it is near 0, a difference of rounded numbers",
    r"\[(lax|numpy)\.exp2\(Special.*float16": "exp2 of half precision is rounded once, see test_exp2_of_half_precision",
}


def pytest_collection_modifyitems(config, items):
    import jax

    leave_out_cases(config, items, pathlib.Path(__file__).parent)
    reasons = dict(JUDGED_ELSEWHERE)
    if jax.__version_info__ >= (0, 11):
        reasons |= {pattern: f"in jax {jax.__version__}, {change}" for pattern, change in CHANGED.items()}
    if jax.__version_info__ < (0, 12):
        reasons |= {pattern: f"in jax {jax.__version__}, {difference}" for pattern, difference in NEWER.items()}
    for item in items:
        for pattern, reason in reasons.items():
            if re.search(pattern, item.nodeid):
                item.add_marker(pytest.mark.skip(reason=reason))
