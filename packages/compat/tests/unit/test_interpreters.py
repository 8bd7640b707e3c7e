"""Rules of primitives in JAX's tables: what they show, and what they refuse."""

import pytest

import phlox
from phlox import extend
from phlox.errors import MissingRuleError, UnsupportedError
from phlox.interpreters import ad, batching, mlir


def test_rules_that_fail_are_named():
    prim = extend.core.Primitive("test_mlir")
    prim.def_abstract_eval(lambda x: x)
    mlir.register_lowering(prim, lambda ctx, x: [ctx.builder.add(x, x)])
    with pytest.raises(UnsupportedError, match=r"test_mlir builds MLIR, and failed: AttributeError.*\n.*\n.*lower_fun"):
        phlox.jit(prim.bind)(1.0)
    mlir.register_lowering(prim, lambda ctx, x: [x])  # builds nothing
    assert phlox.jit(prim.bind)(1.0) == 1


def test_tables_show_what_primitives_have():
    sin = extend.primitive("sin")
    assert ad.primitive_jvps[sin] is sin.jvp
    assert sin in batching.primitive_batchers
    assert extend.primitive("floor") not in ad.primitive_transposes
    assert len(ad.primitive_transposes) == sum(p.transpose is not None for p in extend.primitives().values())
    prim = extend.core.Primitive("test_table")
    prim.def_abstract_eval(lambda x: x)
    mlir.register_lowering(prim, mlir.lower_fun(lambda x: 2 * x, multiple_results=False))
    ad.defjvp(prim, lambda t, x: 2 * t)
    assert float(phlox.grad(prim.bind)(1.0)) == 2
    del ad.primitive_jvps[prim]
    with pytest.raises(MissingRuleError, match="test_table"):
        phlox.grad(prim.bind)(1.0)


def test_symbolic_zeros_and_placeholders_have_no_leaves():
    # equinox maps derivative rules that return them beside arrays: lineax's second derivatives.
    zero, placeholder = (kind(phlox.typeof(1.0)) for kind in (ad.Zero, ad.UndefinedPrimal))
    assert phlox.tree.leaves([zero, placeholder]) == []
    out, same, also = phlox.vmap(lambda x: (2 * x, zero, placeholder))(phlox.numpy.ones(3))
    assert out.shape == (3,) and same.aval is zero.aval and ad.is_undefined_primal(also)
