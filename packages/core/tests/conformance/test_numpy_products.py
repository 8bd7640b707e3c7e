"""phlox.numpy, products of vectors, matrices and tensors."""

import jax
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import A, S, batches, call, function, gradients, row, second_derivatives, values, wide

PRODUCTS = [
    row("numpy.dot", call(A(3), A(3)), call(A(2, 3), A(3)), call(A(2, 3), A(3, 4)), call(A(2, 3, 4), A(4)),
        call(A(2, 3), A(4, 3, 2)), call(A(), A(2, 3)), call(A(2), S(2.5)), call(A(2), A(2, dtype="other")),
        call(A(0), A(0)), call(A(2, 0), A(0, 3)), call(A(2, 3), A(2, 3)),
        call(A(2, 3), A(3), preferred_element_type="float32"), call(A(2, 3), A(3), precision="highest"),
        call([1, 2], A(2)), twice=True),
    row("numpy.matmul", call(A(2, 3), A(3, 4)), call(A(3), A(3)), call(A(3), A(3, 2)), call(A(2, 3), A(3)),
        call(A(4, 2, 3), A(4, 3, 2)), call(A(4, 2, 3), A(3, 2)), call(A(4, 1, 2, 3), A(5, 3, 2)),
        call(A(2, 2, 3), A(3)), call(A(1, 2, 3), A(4, 3, 1)), call(A(2, 3), A(3, 2, dtype="other")),
        call(A(2, 0), A(0, 2)), call(A(2, 3), A(2, 3)), call(A(), A(2)), call(A(2, 2, 3), A(3, 3, 2)),
        call(A(2, 3), A(3, 2), precision="high"), call(A(2, 3), A(3, 2), preferred_element_type="float32"),
        twice=True),
    row("numpy.vdot", call(A(3), A(3)), call(A(2, 3), A(2, 3)), call(A(2, 3), A(6)), call(A(2), A(3)),
        call(A(2), A(2, dtype="other"))),
    row("numpy.inner", call(A(3), A(3)), call(S(2), S(2.5), preferred_element_type="float32"), call(A(2, 3), A(4, 3)), call(A(), A(3)), call(A(2, 3), A(2)),
        call(A(2), S(2.0))),
    row("numpy.outer", call(A(2), A(3)), call(A(2, 2), A(3)), call(A(), A(2)), call(A(2), A(3, dtype="other")),
        call(A(2), S(2))),
    row("numpy.tensordot", call(A(2, 3, 4), A(3, 4, 2)), call(A(2, 3), A(3, 4), 1), call(A(2, 3), A(4), 0),
        call(A(2, 3, 4), A(4, 3), ((1, 2), (1, 0))), call(A(2, 3), A(3, 2), (1, 0)),
        call(A(2, 3), A(3, 2), axes=([-1], [0])), call(A(2, 3), A(2, 3)), call(A(2, 3), A(4, 2), 1),
        call(A(2, 3), A(2), 2), call(A(2, 3), A(2, 3), ((0, 1), (0,))), call(A(2), A(2, dtype="other"), 1)),
    row("numpy.einsum", *[call(s, *xs) for s,
        *xs in [("ij,jk->ik", A(2, 3), A(3, 4)), ("ij,jk", A(2, 3), A(3, 4)), ("ij->ji", A(2, 3)), ("ij->", A(2, 3)),
        ("ij", A(2, 3)), ("ba", A(2, 3)), ("ii->i", A(3, 3)), ("ii", A(3, 3)), ("iij->j", A(2, 2, 3)),
        ("i,i->", A(3), A(3)), ("i,j->ij", A(2), A(3)), ("bij,bjk->bik", A(2, 2, 3), A(2, 3, 2)),
        ("...ij,...jk->...ik", A(2, 2, 3), A(2, 3, 2)), ("...ij,jk->...ik", A(2, 2, 3), A(3, 2)),
        ("...i->...", A(2, 3)), ("i...->...", A(2, 3)), ("ij,jk,kl->il", A(2, 3), A(3, 2), A(2, 4)),
        ("ij,ij,ij->i", A(2, 3), A(2, 3), A(2, 3)),
        ("ijk,ilm,njm,nlk->", A(2, 3, 2), A(2, 2, 3), A(2, 3, 3), A(2, 2, 2)), (" i j , j -> i ", A(2, 3), A(3)),
        ("ij,j->i", A(2, 3), A(3, dtype="other")), ("ij,jk->ik", A(2, 3), A(2, 4)), ("ij->ik", A(2, 3)),
        ("ij,j", A(2, 3)), ("i->ii", A(2)), ("ij,j->i", A(2, 3), S(1)), ("ij->ijj", A(2, 2)), ("i,->i", A(2), A()),
        ("bhqd,bhkd->bhqk", A(1, 2, 3, 2), A(1, 2, 4, 2)), ("ab,cd->dbca", A(2, 1), A(3, 2)),
        ("aab,bcc->ac", A(2, 2, 3), A(3, 2, 2)), ("ij,kj->ik", A(2, 0), A(3, 0)),
        ("i...,i...->i", A(2, 3), A(2, 3)), ("...i,...i->...", A(3, 3), A(3, 1)), ("i,i", A(1), A(3)),
        ("ij,ij->j", A(1, 3), A(4, 1))]], call("ij,jk->ik", A(2, 3), A(3, 2), precision="highest"),
        call("ij,jk->ik", A(2, 3), A(3, 2), preferred_element_type="float32"),
        call("ij,jk,kl->il", A(2, 3), A(3, 2), A(2, 4), optimize="greedy"),
        call("ij,jk,kl->il", A(2, 3), A(3, 2), A(2, 4), optimize=False),
        call(A(2, 3), [0, 1], A(3, 2), [1, 2], [0, 2]),
        *[call("ij,jk,kl,lm->im", A(2, 3), A(3, 4), A(4, 1), A(1, 3), optimize=how)
            for how in ("auto", "optimal", True, False, [(0, 1), (0, 1), (0, 1)], [(2, 3), (1, 2), (0, 1)])],
        call("ij,jk,kl", A(2, 3), A(3, 2), A(2, 4), optimize="eager", preferred_element_type="float32"),
        call("b...,bj,...->j", A(2, 3), A(2, 4), A(1)), call("ij,jk,kl->il", A(2, 3), A(3, 2), A(3, 4)),
        call("ij,ij,ij->i", A(2, 3), A(2, 1), A(1, 3)), call("ij,jk", A(2, 3), A(3, 2), out=1),
        call(A(2, 3), [0, 1], A(3, 2), [1, 2], A(2, 2), [2, 3], [0, 3])),
    row("method.dot", call(A(2, 3), A(3)), call(A(2, 3), A(3, 2))),
]  # fmt: skip

VECTORS = [
    row("numpy.vecdot", call(A(2, 3), A(3)), call(A(2, 3), A(2, 1), axis=0), call(A(3), A(2)), call(A(), A(3)),
        call(A(2), A(2, dtype="other")), call(A(2), A(2), preferred_element_type="float32")),
    row("numpy.matvec", call(A(2, 3), A(3)), call(A(2, 2, 3), A(2, 3)), call(A(2, 3), A(2)), call(A(2), A(2))),
    row("numpy.vecmat", call(A(3), A(3, 2)), call(A(2, 3), A(2, 3, 1)), call(A(2), A(3, 2)), call(A(2), A(2))),
    row("numpy.cross", call(A(3), A(3)), call(A(2, 3), A(3)), call(A(2), A(2)), call(A(2), A(3)), call(A(4, 3), A(4, 2)),
        call(A(3, 2), A(3, 2), axis=0), call(A(3, 2), A(2, 3), axisa=0, axisc=0), call(A(4), A(4)),
        dtypes=[d for d in judge.ALL if d != "bool"]),
    row("numpy.kron", call(A(2), A(3)), call(A(2, 2), A(1, 3)), call(A(2), A(2, 2)), call(A(), A(2, dtype="other"))),
]  # fmt: skip

TABLE = PRODUCTS + VECTORS

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_second_derivative = second_derivatives(TABLE)
test_vmap = batches(TABLE)
test_64_bits = wide(TABLE)


PATHS = {
    "a chain": ("ij,jk,kl->il", (2, 9), (9, 50), (50, 1)),
    "no result": ("ij,jk,kl", (2, 9), (9, 5), (5, 3)),
    "an ellipsis": ("...ij,jk,...kl->...il", (3, 2, 9), (9, 5), (3, 5, 3)),
    "two": ("ij,jk", (2, 3), (3, 4)),
    "many": ("ijk,ilm,njm,nlk,abc->", (2, 3, 2), (2, 2, 3), (2, 3, 3), (2, 2, 2), (2, 2, 2)),
}


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("optimize", ["auto", "optimal", "greedy", True, False])
def test_einsum_path(name, optimize):
    subscripts, *shapes = PATHS[name]
    operands = [np.ones(shape, np.float32) for shape in shapes]
    mine, report = phlox.numpy.einsum_path(subscripts, *map(phlox.numpy.asarray, operands), optimize=optimize)
    theirs, expected = jax.numpy.einsum_path(subscripts, *operands, optimize=optimize)
    assert mine == theirs
    assert str(report) == str(expected)
    found = phlox.numpy.einsum(subscripts, *operands, optimize=mine)
    np.testing.assert_allclose(found, jax.numpy.einsum(subscripts, *operands, optimize=theirs), rtol=1e-5)


@pytest.mark.parametrize("optimize", ["auto", False])
def test_einsum_contracts_in_the_order_of_the_path(optimize):
    """A product with a vector at the right end is small from that end on, and large from the left."""
    operands = [np.ones(shape, np.float32) for shape in [(30, 20), (20, 10), (10,)]]
    sizes = lambda eqns: sorted(v.aval.size for eqn in eqns if eqn.primitive.name == "dot_general" for v in eqn.outvars)
    case = lambda m: lambda *xs: m.numpy.einsum("ij,jk,k->i", *xs, optimize=optimize)
    mine = sizes(phlox.make_jaxpr(case(phlox))(*operands).jaxpr.eqns)
    assert mine == sizes(jax.make_jaxpr(case(jax))(*operands).jaxpr.eqns) == ([20, 30] if optimize else [30, 300])


@pytest.mark.parametrize(
    "lists",
    [
        ("pq", "pr", "qr"),
        ("pr", "pq"),
        (["a b", "c"], ["a b", "d"], ["c", "d"]),
        ([70, 3], [70, 2]),
        ([..., 9], [..., 1]),
    ],
)
def test_einsum_takes_any_labels_that_can_be_compared(lists):
    """penzai's models name them."""
    first, second, *result = map(list, lists)
    operands = np.arange(6.0).reshape(2, 3), np.arange(6.0, 12).reshape(2, 3)
    case = lambda m: m.numpy.einsum(operands[0], first, operands[1], second, *result)
    np.testing.assert_array_equal(case(phlox), case(jax))


def test_einsum_refuses_labels_that_cannot_be_compared():
    with pytest.raises(phlox.errors.ArgumentError, match="can be compared"):
        phlox.numpy.einsum(X, ["a", 1], X, [1, "a"])


def test_einsum_of_weak_operands_is_weak():
    run = lambda m: m.numpy.einsum("i,i", m.numpy.asarray(2.0)[None], m.numpy.asarray(3.0)[None])
    assert run(phlox).weak_type and run(jax).weak_type


def test_einsum_uses_the_product_it_is_given():
    seen = []

    def case(m):
        def dot(lhs, rhs, dimension_numbers, precision=None, preferred_element_type=None, **kwargs):
            seen.append((np.dtype(preferred_element_type), precision))
            return 2 * m.lax.dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)

        return m.numpy.einsum("ij,jk,kl", X, X.T, X, _dot_general=dot, precision="highest")

    judge.compare(case(phlox), case(jax))
    assert seen[:2] == seen[2:]


X = np.arange(6, dtype=np.float32).reshape(2, 3)
LAID_OUT = {
    "numpy.dot": lambda f, where: f(np.ones((8, 3)), np.ones((3, 2)), out_sharding=where),
    "numpy.matmul": lambda f, where: f(np.ones((8, 3)), np.ones((3, 2)), out_sharding=where),
    "numpy.tensordot": lambda f, where: f(np.ones((8, 3)), np.ones((3, 2)), 1, out_sharding=where),
    "numpy.linalg.tensordot": lambda f, where: f(np.ones((8, 3)), np.ones((3, 2)), axes=1, out_sharding=where),
    "numpy.einsum": lambda f, where: f("ij,jk,kl->il", np.ones((8, 3)), np.ones((3, 2)), X, out_sharding=where),
}


@pytest.mark.parametrize("name", LAID_OUT)
def test_out_sharding(name):
    f = function(phlox, name)
    expected = np.asarray(LAID_OUT[name](f, None))
    with phlox.set_mesh(phlox.make_mesh((8,), ("a",))):
        found = LAID_OUT[name](f, phlox.P("a"))
        assert found.sharding.spec == phlox.P("a", None)
        np.testing.assert_array_equal(found, expected)
        with pytest.raises((ValueError, TypeError)):
            LAID_OUT[name](f, phlox.P("b"))


def test_kron_of_bools():
    x, y = np.array([[True, False]]), np.array([[True], [True]])
    np.testing.assert_array_equal(phlox.numpy.kron(x, y), np.kron(x, y))
    assert phlox.numpy.kron(x, y).dtype == bool
