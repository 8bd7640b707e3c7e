"""phlox.numpy, products of vectors, matrices and tensors."""

from conformance.harness import A, S, batches, call, gradients, row, second_derivatives, values, wide

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
    row("numpy.inner", call(A(3), A(3)), call(A(2, 3), A(4, 3)), call(A(), A(3)), call(A(2, 3), A(2)),
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
        ("i...,i...->i", A(2, 3), A(2, 3))]], call("ij,jk->ik", A(2, 3), A(3, 2), precision="highest"),
        call("ij,jk->ik", A(2, 3), A(3, 2), preferred_element_type="float32"),
        call("ij,jk,kl->il", A(2, 3), A(3, 2), A(2, 4), optimize="greedy"),
        call("ij,jk,kl->il", A(2, 3), A(3, 2), A(2, 4), optimize=False),
        call(A(2, 3), [0, 1], A(3, 2), [1, 2], [0, 2])),
    row("method.dot", call(A(2, 3), A(3)), call(A(2, 3), A(3, 2))),
]  # fmt: skip

TABLE = PRODUCTS

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_second_derivative = second_derivatives(TABLE)
test_vmap = batches(TABLE)
test_64_bits = wide(TABLE)
