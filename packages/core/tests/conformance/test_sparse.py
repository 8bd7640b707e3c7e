"""Sparse arrays beside jax's: formats, conversions, operators, products, derivatives, batches, and `sparsify`."""

import jax
import jax.experimental.sparse
import numpy as np
import pytest
import scipy.sparse

import judge
import phlox
import phlox.experimental.sparse

DENSE = np.array([[0, 2, 0], [3, 0, 1], [0, 0, 0], [0, 4, 5]], np.float32)
CUBE = np.array(
    [[[0, 2, 0, 0], [3, 0, 1, 1], [0, 0, 0, 2]], [[1, 0, 0, 0], [0, 4, 5, 0], [2, 0, 0, 0]]],
    np.float32,
)
X = np.arange(6, dtype=np.float32).reshape(3, 2)
FORMATS = ("BCOO", "BCSR", "COO", "CSR", "CSC")
LAYOUTS = [{}, {"n_batch": 1}, {"n_dense": 1}]


def described(tree):
    """Each sparse array as its format, shape and layout, and the dense array; other arrays as they are."""
    is_sparse = lambda x: type(x).__name__ in FORMATS
    found = []
    for x in jax.tree.leaves(tree, is_leaf=lambda x: is_sparse(x) or isinstance(x, phlox.Array)):
        if is_sparse(x):
            layout = getattr(x, "n_batch", 0), getattr(x, "n_dense", 0)
            found.append((type(x).__name__, x.shape, str(x.dtype), x.nse, *layout))
            x = x.todense()
        found.append(np.asarray(x))
    return found


def both(program):
    mine, theirs = (described(program(m, m.experimental.sparse)) for m in (phlox, jax))
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        if isinstance(b, tuple):
            assert a == b
        else:
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


OPERATORS = {
    "conversion": lambda m, s, a: a,
    "neg and abs": lambda m, s, a: (-a, abs(a)),
    "power and quotient": lambda m, s, a: (a**2, a / 2),
    "sums": lambda m, s, a: (a + a.sort_indices(), a - 2 * a.sort_indices(), a + DENSE),
    "products of elements": lambda m, s, a: (a * DENSE, m.numpy.asarray(DENSE) * a, a * DENSE[1], a * DENSE[:, :1]),
    "products of sparse": lambda m, s, a: a * a.sort_indices(),
    "vectors": lambda m, s, a: (a @ m.numpy.asarray(X[:, 0]), m.numpy.arange(4.0) @ a),
    "matrices": lambda m, s, a: (a @ m.numpy.asarray(X), m.numpy.ones((2, 4)) @ a),
    "jit": lambda m, s, a: m.jit(lambda a, x: (a @ x, 2 * a))(a, m.numpy.asarray(X)),
    "reductions": lambda m, s, a: (a.sum(), a.sum(0), a.sum(-1), a.sum(axis=()), a.sum(1, keepdims=True)),
    "rows": lambda m, s, a: (a[1], a[1:3], list(a)),
    "columns": lambda m, s, a: (a[:, ::2], a[..., 1], a[1, 2]),
    "a new axis": lambda m, s, a: a[None],
    "slices": lambda m, s, a: s.bcoo_slice(a, start_indices=(1, 0), limit_indices=(4, 3), strides=(2, 1)),
    "dynamic slices": lambda m, s, a: s.bcoo_dynamic_slice(a, (m.numpy.int32(2), m.numpy.int32(1)), (2, 2)),
    "astype": lambda m, s, a: a.astype("int32"),
    "duplicates": lambda m, s, a: (a + a).sum_duplicates(nse=a.nse),
    "extraction": lambda m, s, a: s.bcoo_extract(a, m.numpy.asarray(DENSE + 1)),
    "gradients": lambda m, s, a: s.grad(lambda a: ((a @ m.numpy.arange(3.0)) ** 2).sum())(a),
    "values and gradients": lambda m, s, a: s.value_and_grad(lambda a, x: (a @ x).sum(), argnums=(0, 1))(
        a, m.numpy.asarray(X[:, 1])
    ),
    "gradients of a pytree": lambda m, s, a: (
        m.grad(lambda a: ((a @ m.numpy.arange(3.0)) ** 2).sum(), allow_int=True)(a).data
    ),
}


CASES = [
    (name, layout) for name in OPERATORS for layout in LAYOUTS if "gradients" not in name or "n_dense" not in layout
]


@pytest.mark.parametrize(("name", "layout"), CASES, ids=str)
def test_operations(name, layout):
    def program(m, s, **layout):
        return OPERATORS[name](m, s, s.BCOO.fromdense(m.numpy.asarray(DENSE), **layout))

    try:
        program(jax, jax.experimental.sparse, **layout)
    except NotImplementedError:  # jax contracts no dense axes, among others; then values are those without a layout
        mine = described(program(phlox, phlox.experimental.sparse, **layout))
        want = described(program(jax, jax.experimental.sparse))
        arrays = [[x.sum() for x in found if not isinstance(x, tuple)] for found in (mine, want)]
        np.testing.assert_allclose(*arrays, rtol=1e-5)
    else:
        both(lambda m, s: program(m, s, **layout))


PLAIN = {
    "transposes": lambda m, s, a: (a.T, a.transpose((0, 1)), a @ a.T),
    "shapes": lambda m, s, a: (a.reshape(2, 6), a.reshape((-1,)), a.reshape(4, 3, 1)),
    "jacobians": lambda m, s, a: [f(lambda a: a @ m.numpy.arange(3.0))(a) for f in (s.jacobian, s.jacfwd)],
    "concatenation": lambda m, s, a: [s.bcoo_concatenate([a, a], dimension=axis) for axis in (0, 1)],
    "layouts": lambda m, s, a: [
        a.update_layout(n_batch=b, n_dense=d, on_inefficient=None) for b, d in ((1, 0), (0, 1), (0, 0))
    ],
    "rows at indices": lambda m, s, a: a[m.numpy.array([0, 3, 1])],
    "functions of elements": lambda m, s, a: s.sparsify(lambda a: m.numpy.sin(m.numpy.sqrt(a + a)))(a),
    "columns at indices": lambda m, s, a: (
        a[:, m.numpy.array([2, 0])],
        a[m.numpy.array([1, 3]), m.numpy.array([0, 2])],
    ),
    "dense inside": lambda m, s, a: s.sparsify(lambda a: m.numpy.exp(s.todense(a)) + s.todense(2.0))(a),
    "dense in a batch": lambda m, s, a: m.vmap(s.sparsify(lambda a: s.todense(a) + 1))(
        a.update_layout(n_batch=1, on_inefficient=None)
    ),
    "scalars": lambda m, s, a: s.sparsify(lambda a: (a.mean(), m.numpy.linalg.norm(a), 3.0))(a),
    "keywords": lambda m, s, a: s.sparsify(m.numpy.mean)(a, axis=0, keepdims=True),
    "equal indices": lambda m, s, a: s.sparsify(lambda a: (a + a, a - 2 * a, a * 2 + m.numpy.sin(a)))(a),
    "products at equal indices": lambda m, s, a: s.sparsify(lambda a: (a * a, a * m.numpy.sin(a)))(a),
    "complex elements": lambda m, s, a: s.sparsify(lambda a: m.numpy.conj(a * 2j).imag)(a),
    "control flow": lambda m, s, a: s.sparsify(
        lambda a: m.lax.fori_loop(0, 3, lambda i, c: c * 2, m.lax.cond(True, lambda a: a * 2, lambda a: a * 3, a))
    )(a),
    "sparsified jit": lambda m, s, a: s.sparsify(m.jit(lambda a, x: a @ x + 1))(a, m.numpy.ones(3)),
    "sorted": lambda m, s, a: (a.T.sort_indices(), s.bcoo_rev(a, dimensions=(0, 1))),
    "broadcasts": lambda m, s, a: s.bcoo_broadcast_in_dim(a, shape=(2, 4, 3), broadcast_dimensions=(1, 2)),
}


@pytest.mark.parametrize("name", PLAIN)
def test_operations_without_layouts(name):
    both(lambda m, s: PLAIN[name](m, s, s.BCOO.fromdense(m.numpy.asarray(DENSE))))


BY_ROWS = {
    "elements": lambda m, a: (-a, m.numpy.sin(a), m.numpy.sqrt(abs(a)), a**2, a.astype("float16")),
    "more axes": lambda m, a: (m.numpy.stack([a, a]), m.numpy.broadcast_to(a, (2, 4, 3))),
    "rows": lambda m, a: m.lax.concatenate([a, a], 0),
}


@pytest.mark.parametrize("name", BY_ROWS)
def test_bcsr_stays_bcsr(name):
    both(lambda m, s: s.sparsify(lambda a: BY_ROWS[name](m, a))(s.BCSR.fromdense(m.numpy.asarray(DENSE))))


def test_bcsr_in_loops():
    """jax multiplies no BCSR by numbers."""
    s, dense = phlox.experimental.sparse, phlox.numpy.asarray(DENSE)
    eight = s.sparsify(lambda a: phlox.lax.fori_loop(0, 3, lambda _, c: c * 2, a / 1))(s.BCSR.fromdense(dense))
    assert isinstance(eight, s.BCSR)
    np.testing.assert_array_equal(eight.todense(), 8 * DENSE)


def test_products_at_equal_indices_have_as_many_elements():
    s, dense = phlox.experimental.sparse, phlox.numpy.asarray(DENSE)
    a = s.BCOO.fromdense(dense)
    square = phlox.jit(s.sparsify(lambda a: a * a))(a)
    assert square.nse == a.nse
    np.testing.assert_array_equal(square.todense(), DENSE * DENSE)
    twice = s.BCOO((phlox.numpy.ones(2), phlox.numpy.array([[1], [1]])), shape=(3,))  # one element, stored in two parts
    np.testing.assert_array_equal(s.sparsify(lambda a: a * a)(twice).todense(), [0, 4, 0])


def test_gathered_parts():
    def program(m, s, n_batch=0):
        a = s.BCOO.fromdense(m.numpy.asarray(CUBE), n_batch=n_batch)
        middle = m.lax.GatherDimensionNumbers(offset_dims=(0, 2), collapsed_slice_dims=(1,), start_index_map=(1,))
        return s.bcoo_gather(a, m.numpy.array([[2], [0]]), middle, (2, 1, 4))

    both(program)
    both(lambda m, s: program(m, s, n_batch=1))
    with pytest.raises(NotImplementedError, match="batching dimensions"):
        batched = phlox.lax.GatherDimensionNumbers((0,), (1,), (1,), operand_batching_dims=(0,))
        s = phlox.experimental.sparse
        s.bcoo_gather(s.eye(3), phlox.numpy.array([[1]]), batched, (1, 3))


@pytest.mark.parametrize("n_batch", [0, 1, 2])
def test_arrays_of_indices_beside_slices(n_batch):
    a = phlox.experimental.sparse.BCOO.fromdense(DENSE, n_batch=n_batch)
    for index in (np.s_[np.array([[1], [2]]), 1:], np.s_[:2, np.array([True, False, True])], np.s_[1:, [0, 2]]):
        np.testing.assert_array_equal(a[index].todense(), DENSE[index])


def test_repeated_elements_of_rows():
    def program(m, s):
        arrays = [[1.0, 2.0, 0.0, 3.0], [0, 0, 1, 1], [0, 3, 4]]
        a = s.BCSR(tuple(map(m.numpy.array, arrays)), shape=(2, 3))
        sums = [a.sum_duplicates(), a.sum_duplicates(remove_zeros=False), a.sum_duplicates(nse=2)]
        return [*sums, s.bcsr_sum_duplicates(a), m.jit(lambda a: a.sum_duplicates(3, False))(a)]

    both(program)


@pytest.mark.parametrize("kind", FORMATS)
def test_batches_of_operands(kind):
    a = getattr(phlox.experimental.sparse, kind).fromdense(phlox.numpy.asarray(DENSE))
    np.testing.assert_array_equal(phlox.vmap(lambda x: a @ x)(phlox.numpy.asarray(X.T)), (DENSE @ X).T)


def test_what_jax_lacks():
    """Values beside those of dense arrays: axes between others, dense minus sparse, and dense axes contracted."""
    s, dense = phlox.experimental.sparse, phlox.numpy.asarray(DENSE)
    a = s.BCOO.fromdense(dense)
    wider = s.bcoo_broadcast_in_dim(a, shape=(4, 2, 3), broadcast_dimensions=(0, 2))
    np.testing.assert_array_equal(wider.todense(), np.broadcast_to(DENSE[:, None], (4, 2, 3)))
    np.testing.assert_array_equal(dense + 1 - a, np.ones_like(DENSE))
    rows = s.BCOO.fromdense(dense, n_dense=1)
    gradient = s.grad(lambda a: (a @ phlox.numpy.arange(3.0)).sum())(rows).todense()
    np.testing.assert_array_equal(gradient, [[0, 1, 2], [0, 1, 2], [0, 0, 0], [0, 1, 2]])


def contractions():
    """Contracted and batch axes of a sparse array of shape (2, 3, 4), with a layout, drawn from a fixed seed."""
    random = judge.rng("sparse products")
    layouts = [{}, {"n_batch": 1}, {"n_dense": 1}, {"n_batch": 2}]
    for _ in range(8 * judge.CASES):
        order = random.permutation(3)
        contracted = int(random.integers(0, 3))
        batch = int(random.integers(0, 3 - contracted))
        axes = [int(i) for i in order[: contracted + batch]]
        ndim = len(axes) + int(random.integers(0, 2))
        places = [int(i) for i in random.permutation(ndim)[: len(axes)]]
        numbers = (axes[:contracted], places[:contracted]), (axes[contracted:], places[contracted:])
        yield layouts[int(random.integers(0, 4))], numbers, ndim


@pytest.mark.parametrize("case", list(contractions()), ids=str)
def test_drawn_products(case):
    layout, ((lc, rc), (lb, rb)), ndim = case
    shape = [3] * ndim
    for i, j in zip([*lc, *lb], [*rc, *rb], strict=True):
        shape[j] = CUBE.shape[i]
    other = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 5 - 1).astype(np.float32)
    want = jax.lax.dot_general(CUBE, other, ((lc, rc), (lb, rb)))
    s = phlox.experimental.sparse
    sparse = s.BCOO.fromdense(phlox.numpy.asarray(CUBE), **layout)
    found = s.bcoo_dot_general(sparse, other, dimension_numbers=((lc, rc), (lb, rb)))
    np.testing.assert_allclose(found, want, rtol=1e-6)
    found = s.bcoo_dot_general(sparse, s.BCOO.fromdense(other), dimension_numbers=((lc, rc), (lb, rb)))
    np.testing.assert_allclose(found.todense(), want, rtol=1e-6)
    swapped = s.bcoo_dot_general(other, sparse, dimension_numbers=((rc, lc), (rb, lb)))
    np.testing.assert_allclose(swapped, jax.lax.dot_general(other, CUBE, ((rc, lc), (rb, lb))), rtol=1e-6)


MATRICES = {
    "conversion": lambda m, s, a: (a, m.tree_util.tree_leaves(a)),
    "vector": lambda m, s, a: a @ m.numpy.asarray(X[:, 1]),
    "matrix": lambda m, s, a: m.jit(lambda a, x: a @ x)(a, m.numpy.asarray(X)),
    "dense operand": lambda m, s, a: m.grad(lambda x: ((a @ x) ** 2).sum())(m.numpy.asarray(X)),
    "batch of operands": lambda m, s, a: m.vmap(lambda x: a @ x)(m.numpy.asarray(X.T)),
}
#: jax has no batching rules for the simple formats
BATCHED = ("BCOO", "BCSR")
PAIRS = [(kind, name) for kind in FORMATS for name in MATRICES if kind in BATCHED or name != "batch of operands"]


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_formats(kind, name):
    both(lambda m, s: MATRICES[name](m, s, getattr(s, kind).fromdense(m.numpy.asarray(DENSE))))


@pytest.mark.parametrize("kind", ["BCOO", "BCSR"])
def test_from_scipy(kind):
    both(lambda m, s: getattr(s, kind).from_scipy_sparse(scipy.sparse.csr_matrix(DENSE)))


@pytest.mark.parametrize("kind", ["bcoo", "coo", "csr", "csc"])
def test_creation(kind):
    both(lambda m, s: [s.eye(3, 4, k=k, sparse_format=kind) for k in (0, 1, -1)])
    both(lambda m, s: s.empty((2, 3), sparse_format=kind))


@pytest.mark.parametrize(
    "options",
    [{}, {"n_batch": 1}, {"n_dense": 1}, {"nse": 0.5, "sorted_indices": True}, {"nse": 3, "unique_indices": False}],
    ids=str,
)
def test_random_arrays(options):
    options = {"dtype": "float32", **options}
    draw = lambda m, s: s.random_bcoo(m.random.key(0), (4, 3), **options)
    both(lambda m, s: (draw(m, s), m.tree_util.tree_leaves(draw(m, s))))


def test_batches():
    cube = lambda m: m.numpy.asarray(CUBE)
    both(lambda m, s: m.vmap(lambda a, x: a @ x)(s.BCOO.fromdense(cube(m), n_batch=1), m.numpy.ones((2, 4))))
    both(lambda m, s: m.vmap(lambda x: s.BCOO.fromdense(x, nse=6) @ m.numpy.ones(4))(cube(m)))
    both(lambda m, s: s.BCSR.fromdense(cube(m), n_batch=1))
    axes = (((2,), (1,)), ((0,), (0,)))
    batch = lambda m, s: s.BCSR.fromdense(cube(m), n_batch=1)
    both(lambda m, s: s.bcsr_dot_general(batch(m, s), m.numpy.ones((2, 4, 2)), dimension_numbers=axes))


@pytest.mark.parametrize("axis", [0, 1])
def test_examples_along_any_batch_axis(axis):
    """The parts of an example tell which batch axis it lacks."""
    both(lambda m, s: m.vmap(lambda a: a.todense(), in_axes=axis)(s.BCOO.fromdense(m.numpy.asarray(CUBE), n_batch=2)))
    both(lambda m, s: m.vmap(lambda a: a, axis, axis)(s.BCOO.fromdense(m.numpy.asarray(CUBE), n_batch=2)))
    both(
        lambda m, s: m.vmap(lambda x: s.BCOO.fromdense(x, nse=4, n_batch=1), axis, axis)(m.numpy.asarray(CUBE)),
    )


def test_texts_of_traced_and_invalid_arrays():
    s, texts = phlox.experimental.sparse, []
    a = s.BCOO.fromdense(DENSE)
    phlox.jit(lambda a: texts.append(repr(a)))(a)
    phlox.vmap(lambda a: texts.append(repr(a)))(s.BCOO.fromdense(DENSE, n_batch=1))
    a.indices = phlox.numpy.array([])
    assert texts == ["JaxprTracer[BCOO(float32[4, 3], nse=5)]", "BatchTracer[BCOO(float32[3], nse=2)]"]
    assert repr(a) == "BCOO(<invalid>)"


def test_of_fixed_size_under_jit():
    both(lambda m, s: m.jit(lambda x: s.BCOO.fromdense(x, nse=7))(m.numpy.asarray(DENSE)))
    both(
        lambda m, s: m.grad(lambda x: (s.BCOO.fromdense(x, nse=7) @ m.numpy.arange(3.0)).sum())(m.numpy.asarray(DENSE))
    )


def test_padding_and_duplicates():
    """Indices outside of the shape are padding, wherever the elements go."""
    data, indices = np.array([1.0, 2.0, 3.0, 4.0], np.float32), np.array([[0, 1], [3, 3], [2, 2], [0, 1]])

    def program(m, s):
        a = s.BCOO((m.numpy.asarray(data), m.numpy.asarray(indices)), shape=(3, 3))
        return a.todense(), a.T.todense(), a.sum(0).todense(), a @ m.numpy.ones(3), a.reshape(9).todense()

    both(program)
    both(lambda m, s: s.BCOO((m.numpy.asarray(data), m.numpy.asarray(indices)), shape=(3, 3)).sum_duplicates())


def test_elements_with_equal_indices_are_one_element():
    both(
        lambda m, s: abs(s.BCOO((m.numpy.array([1.0, -3.0]), m.numpy.array([[0, 1], [0, 1]])), shape=(2, 2))).todense()
    )


@pytest.mark.parametrize("layout", [{"n_batch": 2}, {"n_dense": 2}, {"n_batch": 1, "n_dense": 1}], ids=str)
@pytest.mark.parametrize("dense", [DENSE, np.zeros((0, 3), np.float32)], ids=["elements", "none"])
def test_products_without_sparse_axes(layout, dense):
    a = phlox.experimental.sparse.BCOO.fromdense(dense, **layout)
    np.testing.assert_array_equal((a * a).todense(), dense * dense)
    np.testing.assert_array_equal(a.sum(0).todense(), dense.sum(0))
    np.testing.assert_array_equal(a.update_layout(n_batch=0, n_dense=0).todense(), dense)


@pytest.mark.parametrize("shape", [(np.int64(12),), (-1,), ((3, -1),), ([2, 6],), (1, 4, 3), (2, 2, 3, 1), (6, 1, 2)])
def test_reshapes(shape):
    a = phlox.experimental.sparse.BCOO.fromdense(DENSE).reshape(*shape)
    np.testing.assert_array_equal(a.todense(), DENSE.reshape(*shape))


def test_reshapes_across_kinds_of_axes():
    s = phlox.experimental.sparse
    for layout, kinds in (({"n_batch": 1}, "batch and sparse"), ({"n_dense": 1}, "sparse and dense")):
        with pytest.raises(ValueError, match=f"cannot mix {kinds} dimensions"):
            s.BCOO.fromdense(DENSE, **layout).reshape(6, 2)
    assert issubclass(s.CuSparseEfficiencyWarning, s.SparseEfficiencyWarning)


def test_reshapes_of_long_axes():
    """The number of an element exceeds what its indices hold."""
    one = phlox.numpy.array([1.0])
    wide = phlox.experimental.sparse.BCOO((one, phlox.numpy.array([[99999, 5]])), shape=(100000, 100000))
    assert wide.reshape(1, 100000, 10, 10000).indices.tolist() == [[0, 99999, 0, 5]]
    with pytest.raises(OverflowError, match="int32"):
        wide.reshape(50000, 200000)
    narrow = phlox.experimental.sparse.BCOO((one, phlox.numpy.array([[19, 19]], "int8")), shape=(20, 20))
    assert narrow.reshape(10, 40).indices.tolist() == [[9, 39]]


def test_indices_that_are_too_narrow():
    s = phlox.experimental.sparse
    for kind in (s.BCOO, s.COO):
        with pytest.raises(OverflowError, match="300"):
            kind.fromdense(phlox.numpy.ones((300, 1)), index_dtype="uint8")
    for kind in (s.BCSR, s.CSR, s.CSC):
        with pytest.raises(OverflowError, match="400"):
            kind.fromdense(phlox.numpy.ones((20, 20)), index_dtype="uint8")


def test_powers_keep_zeros():
    s = phlox.experimental.sparse
    a = s.BCOO.fromdense(phlox.numpy.asarray(DENSE))
    np.testing.assert_allclose((a**2.5).todense(), DENSE**2.5, rtol=1e-6)
    for exponent in (-1.0, 0.0, 0, phlox.numpy.zeros(()), a):
        with pytest.raises(NotImplementedError, match=r"pow|dense"):
            a**exponent
    with pytest.raises(NotImplementedError, match="a positive number"):
        phlox.jit(lambda a, y: a**y)(a, 2.0)


def test_sampled_products():
    indices = np.array([[0, 1], [3, 3], [2, 0]])
    numbers = (((1,), (0,)), ((), ()))
    both(
        lambda m, s: s.bcoo_dot_general_sampled(
            m.numpy.asarray(DENSE), m.numpy.asarray(DENSE.T), m.numpy.asarray(indices), dimension_numbers=numbers
        )
    )


def test_systems_of_equations():
    arrays = [np.array([2.0, 1.0, 4.0, 3.0], np.float32), np.array([0, 1, 1, 2]), np.array([0, 2, 3, 4])]
    b = np.array([1.0, 2.0, 3.0], np.float32)

    def program(m, s):
        solve = lambda data: s.linalg.spsolve(data, *map(m.numpy.asarray, (*arrays[1:], b)))
        data = m.numpy.asarray(arrays[0])
        return solve(data), m.grad(lambda data: (solve(data) ** 2).sum())(data)

    both(program)


@pytest.mark.parametrize("derived", ["jacfwd", "jacrev", "hessian"])
def test_derivatives_of_solutions(derived):
    jnp, sparse = phlox.numpy, phlox.experimental.sparse
    columns, starts, b = jnp.array([0, 1, 0, 1]), jnp.array([0, 2, 4]), jnp.array([1, 2])
    point = jnp.array([2.0, 1.0, 0.5, 3.0]), b.astype(float)
    mine = getattr(phlox, derived)(lambda data, b: sparse.linalg.spsolve(data, columns, starts, b), (0, 1))(*point)
    dense = getattr(phlox, derived)(lambda data, b: jnp.linalg.solve(data.reshape(2, 2), b), (0, 1))(*point)
    phlox.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-5), mine, dense)
    # Integers on the right-hand side have solutions that are none.
    np.testing.assert_array_equal(
        sparse.linalg.spsolve(point[0], columns, starts, b), sparse.linalg.spsolve(point[0], columns, starts, point[1])
    )
    with pytest.raises(ValueError, match="a vector"):
        sparse.linalg.spsolve(point[0], columns, starts, jnp.eye(2))


def symmetric(eigenvalues):
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(len(eigenvalues),) * 2))[0]
    return ((rotation * eigenvalues) @ rotation.T).astype(np.float32)


@pytest.mark.parametrize(
    "eigenvalues",
    [np.logspace(0, -1, 40), np.logspace(2, -4, 30), np.r_[5, 5, np.linspace(0, 1, 28)], np.ones(20)],
    ids=["close", "far", "equal", "identity"],
)
def test_largest_eigenvalues(eigenvalues):
    dense, k = symmetric(eigenvalues), 3
    start = np.random.default_rng(1).normal(size=(len(dense), k)).astype(np.float32)
    theirs = jax.experimental.sparse.linalg.lobpcg_standard(dense, start)
    s, jnp = phlox.experimental.sparse, phlox.numpy
    sparse = s.BCOO.fromdense(jnp.asarray(dense))
    compiled = phlox.jit(s.linalg.lobpcg_standard, static_argnums=2)
    runs = [(dense, start), (sparse, start), (lambda x: jnp.asarray(dense) @ x, jnp.asarray(start), 50, 1e-7)]
    for theta, U, count in [*(s.linalg.lobpcg_standard(*run) for run in runs), compiled(dense, start, 60)]:
        scale = eigenvalues.max()
        np.testing.assert_allclose(theta, np.sort(eigenvalues)[: -k - 1 : -1], rtol=2e-6)
        np.testing.assert_allclose(theta, theirs[0], rtol=2e-6)
        np.testing.assert_allclose(dense @ U, U * theta, atol=1e-4 * scale)
        np.testing.assert_allclose(U.T @ U, np.eye(k), atol=1e-5)
        assert count <= int(theirs[2]) + 5


def test_largest_of_negative_eigenvalues():
    """jax gives nan."""
    lobpcg = phlox.experimental.sparse.linalg.lobpcg_standard
    theta, _, count = lobpcg(symmetric(-np.arange(1.0, 31.0)), np.eye(30, 2, dtype=np.float32))
    np.testing.assert_allclose(theta, [-1, -2], rtol=1e-4)
    assert count < 100
    with pytest.raises(ValueError, match="5 k < n"):
        lobpcg(np.eye(10, dtype=np.float32), np.ones((10, 2), np.float32))
    with pytest.raises(ValueError, match="A of shape"):
        lobpcg(np.eye(10, dtype=np.float32), np.ones((20, 2), np.float32))
    with pytest.raises(phlox.errors.DtypeError, match="A of dtype"):
        lobpcg(np.eye(10, dtype=np.float32), np.ones((10, 1), np.float16))
    with pytest.raises(phlox.errors.DtypeError, match="X of dtype"):
        lobpcg(np.eye(10, dtype=np.float32), np.ones((10, 1), int))


def test_what_is_printed():
    texts = [
        [repr(s.BCOO.fromdense(m.numpy.asarray(CUBE), n_batch=1, n_dense=1)), repr(s.eye(2, sparse_format="csr"))]
        for m, s in ((phlox, phlox.experimental.sparse), (jax, jax.experimental.sparse))
    ]
    assert texts[0] == texts[1]
    trees = [
        str(m.tree_util.tree_structure(s.BCOO.fromdense(m.numpy.asarray(DENSE))))
        for m, s in ((phlox, phlox.experimental.sparse), (jax, jax.experimental.sparse))
    ]
    assert trees[0] == trees[1]
    assert repr(phlox.tree.map(lambda x: None, phlox.experimental.sparse.eye(2))) == "BCOO(None, None)"


def test_errors_say_what_to_do():
    s = phlox.experimental.sparse
    a = s.BCOO.fromdense(phlox.numpy.asarray(DENSE))
    with pytest.raises(ValueError, match="last axis"):
        s.eye(3) @ phlox.numpy.ones(2)
    with pytest.raises(NotImplementedError, match="silent densification"):
        a + 1
    with pytest.raises(NotImplementedError, match="dense output"):
        1 / a
    with pytest.raises(NotImplementedError, match="comparisons"):
        a == a  # noqa: B015
    with pytest.raises(NotImplementedError, match="sparse rule for exp"):
        s.sparsify(phlox.numpy.exp)(a)
    with pytest.raises(s.SparseEfficiencyError, match="stores more elements"):
        a.update_layout(n_batch=1)
    with pytest.raises(ValueError, match=r"Invalid data.shape"):
        s.BCOO((np.ones(2), np.ones((3, 2), int)), shape=(3, 3))
    with pytest.raises(NotImplementedError, match="instead: BCOO"):
        -s.eye(2, sparse_format="csr")


@pytest.mark.parametrize("options", [{"padding": "SAME"}, {"padding": [(2, 1)]}, {"padding": [(-1, 3)]}], ids=str)
@pytest.mark.parametrize("kernel", ["sparse", "dense"])
def test_convolutions_of_sparse_vectors(kernel, options):
    s, vector = phlox.experimental.sparse, np.float32([[[0, 2, 0, 3, 0, 0, -1]]])
    window = np.float32([[[1, 0, 5]]])
    rhs = s.BCOO.fromdense(window, nse=4) if kernel == "sparse" else window
    for more in ({}, {"window_strides": (2,)}, {"rhs_dilation": (2,)}):
        arguments = {"window_strides": (1,)} | options | more
        expected = phlox.lax.conv_general_dilated(vector, window, **arguments)
        for layout in ({}, {"n_batch": 2}, {"n_dense": 1}):
            out = s.bcoo_conv_general_dilated(s.BCOO.fromdense(vector, **layout), rhs, **arguments)
            np.testing.assert_array_equal(out.todense(), expected)
            assert out.dtype == expected.dtype
    upsampled = {"window_strides": (1,), "padding": [(1, 1)], "lhs_dilation": (2,)}
    out = s.bcoo_conv_general_dilated(s.BCOO.fromdense(vector), rhs, **upsampled)
    np.testing.assert_array_equal(out.todense(), phlox.lax.conv_general_dilated(vector, window, **upsampled))
    with pytest.raises(ValueError, match="one vector and one kernel"):
        s.bcoo_conv_general_dilated(s.BCOO.fromdense(vector[0]), rhs, window_strides=(1,), padding="SAME")


@pytest.mark.parametrize("layout", [{"n_dense": 2}, {"n_batch": 2}], ids=str)
def test_all_axes_of_one_kind_are_reversed(layout):
    a = phlox.experimental.sparse.BCOO.fromdense(DENSE, **layout)
    np.testing.assert_array_equal(a.T.todense(), DENSE.T)
    assert (a.T.n_batch, a.T.n_dense) == (a.n_batch, a.n_dense)
