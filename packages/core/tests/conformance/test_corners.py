"""Functions at the corners of their operands: a tenth of the rows of docs/corners.md, another one each day.

PHLOX_TEST_CORNERS chooses: a digit is a tenth, `all` is all, as in ``PHLOX_TEST_CORNERS=all python -m pytest
packages/core/tests/conformance/test_corners.py -k numpy.exp2``, which runs a row of another day again.
"""

import datetime
import os

import jaxlib
import numpy as np
import pytest

import corner_page
import corners
import phlox.nn
import phlox.numpy
import phlox.scipy.special
from corner_functions import FUNCTIONS

CHOICE = os.environ.get("PHLOX_TEST_CORNERS", str(datetime.date.today().toordinal() % 10))
NAMES = list(FUNCTIONS)[slice(None) if CHOICE == "all" else slice(int(CHOICE), None, 10)]

#: Marks of rounding errors near the tolerance: another processor may have another one.
ROUNDING = {"r", "h"}


@pytest.mark.whole
@pytest.mark.parametrize("name", NAMES)
def test_row(name):
    """No difference is unexplained, and with the jaxlib of the page its marks are those of the page."""
    marks, unexplained = corner_page.cells(name)
    assert not unexplained, "\n".join(map(str, unexplained[:20]))
    if jaxlib.__version__ != corner_page.version():
        return
    row = corner_page.rows().get(name)
    assert row is not None, f"docs/corners.md has no row {name}; python scripts/corners.py writes the page again"
    shown = dict(zip(corners.COLUMNS, row, strict=True))
    for column in corners.COLUMNS:
        listed = set(shown[column].replace("·", "").split())
        changed = {mark for mark in marks.get(column, set()) ^ listed if mark.rstrip("'") not in ROUNDING}
        assert not changed, f"{column}: {sorted(changed)}; python scripts/corners.py writes the page again"
        assert bool(shown[column]) == (column in marks), f"{column}: python scripts/corners.py writes the page again"


def test_page_has_a_row_for_each_function():
    assert list(corner_page.rows()) == list(FUNCTIONS)


#: Functions without a row, and why.
LEFT_OUT = {
    "numpy": {
        **dict.fromkeys(("matmul", "matvec", "vecdot", "vecmat"), "sums of products"),
        **dict.fromkeys(("divmod", "modf", "frexp"), "several results, each with a row or that of another function"),
        **dict.fromkeys(("degrees", "radians"), "rad2deg and deg2rad"),
        "ldexp": "its second operand is an exponent",
        "spacing": "the distance of neighbours: `nextafter`",
    },
    "nn": {
        **dict.fromkeys(("dot_product_attention", "scaled_dot_general", "scaled_matmul"), "sums of products"),
        **dict.fromkeys(("get_scaled_dot_general_config", "initializers", "on_demand"), "no functions of numbers"),
        **dict.fromkeys(("one_hot", "glu", "standardize"), "composed of functions with a row"),
        **dict.fromkeys(("logmeanexp", "logsumexp"), "`scipy.special.logsumexp`"),
        **dict.fromkeys(("swish", "hard_swish"), "other names of silu and hard_silu"),
    },
    "scipy.special": {
        **dict.fromkeys(("softmax", "log_softmax"), "those of phlox.nn"),
        **dict.fromkeys(("lpmn", "lpmn_values", "sph_harm_y", "bernoulli"), "orders are integers"),
        "erfcinv": "`ndtri` of half of the operand; test_jax_0_12.py",
        "wofz": "of complex numbers, without a twin in NumPy; test_special_values.py",
    },
}


@pytest.mark.parametrize("module", LEFT_OUT)
def test_each_function_has_a_row_or_a_reason(module):
    listed = {name.partition(" ")[0].removeprefix(f"{module}.") for name in FUNCTIONS if name.startswith(f"{module}.")}
    library = phlox
    for part in module.split("."):
        library = getattr(library, part)
    names = {name for name in dir(library) if not name.startswith("_") and name != "TYPE_CHECKING"}
    if module == "numpy":  # the elementwise functions, each by one of its names
        names = {name for name in names if isinstance(getattr(np, name, None), np.ufunc)}
        listed |= {name for name in names if any(getattr(np, name) is getattr(np, x, None) for x in listed)}
    assert names - listed - set(LEFT_OUT[module]) == set()
