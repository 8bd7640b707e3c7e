"""The rule `pad` of each primitive: the examples of the registry, with some lengths replaced by a name, give the results
of the unpadded operation, also if the padding holds nan and the largest integers; or the rule refuses."""

import numpy as np
import pytest

import phlox
import phlox.export
from padding_poison import poison  # noqa: F401  (a fixture of all tests here)
from phlox._ir.avals import shaped
from phlox._ir.dimensions import SymbolicScope, is_symbolic, variable
from phlox._ir.jaxpr import ClosedJaxpr, hoisted, jaxprs_in
from phlox._ops import all_primitives
from phlox._ops.control import padded_call
from phlox._trace.staging import stage
from phlox._trace.trace import typeof
from phlox.errors import PhloxError, SizesError
from registry_examples import ELSEWHERE, examples

#: Operations that refuse an axis of one of their examples.
REFUSED = {
    *("reduce", "reduce_window", "approx_top_k", "reshard"),
    *("cholesky_update", "eigh", "eig", "geqrf", "householder_product", "ormqr", "hessenberg", "qr", "schur", "svd"),
    *("tridiagonal", "tridiagonal_solve", "dce_sink", "composite"),
}
RANGES = (("n", 2, 8),)


def cases():
    """(primitive, number of its example), without those whose Jaxprs have shapes of numbers."""
    primitives = all_primitives()
    for name, uses in examples().items():
        if name in primitives and name not in ELSEWHERE:
            yield from ((name, i) for i, use in enumerate(uses) if not jaxprs_in(use.params))


def named(avals, length, which):
    """The types with a name for the `length` of axes: of all operands, or of operand `which`."""
    n = variable("n", SymbolicScope(["n >= 2", "n <= 8"]))
    return [
        shaped(tuple(n if d == length and which in (None, i) else d for d in a.shape), a.dtype, a.weak_type)
        for i, a in enumerate(avals)
    ]


def words(x):
    return np.asarray(phlox.random.key_data(x) if "key" in str(typeof(x).dtype) else x)


@pytest.mark.parametrize(("name", "number"), [*cases()])
def test_rule(name, number):
    primitive, use = all_primitives()[name], examples()[name][number]
    with phlox.enable_x64(True):
        avals = [typeof(x) for x in use.args]

        def flat(*args):
            out = primitive.bind(*args, **use.params)
            return out if primitive.multiple_results else [out]

        for length in sorted({n for a in avals for n in a.shape if 2 <= n <= 8}):
            for which in (None, *range(len(avals))):
                types = named(avals, length, which)
                if not any(map(is_symbolic, (n for a in types for n in a.shape))):
                    continue
                try:
                    closed = ClosedJaxpr(*stage(flat, types))
                except PhloxError:  # the lengths must be equal, or a parameter has the length as a number
                    continue
                try:
                    padded_call.padded_program(hoisted(closed), RANGES)
                except SizesError as error:
                    assert name in REFUSED, error
                    continue
                actual = padded_call.call_padded(closed, use.args, lengths=(("n", length),), ranges=RANGES)
                for x, y in zip(map(words, actual), map(words, flat(*use.args)), strict=True):
                    assert (x.shape, x.dtype) == (y.shape, y.dtype)
                    if x.dtype.kind in "fc":
                        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-13)
                    else:
                        np.testing.assert_array_equal(x, y)
