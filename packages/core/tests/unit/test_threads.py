"""Eight threads at once compute what one does: while functions are traced, compiled, forgotten and thrown away.

Threads take turns here after every few instructions, so that each gap between looking and writing is met.
"""

import contextlib
import functools
import gc
import sys
import threading

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import lax
from phlox._api.jit.counting import CallCounter
from phlox._base import config

THREADS = 8


@pytest.fixture(autouse=True)
def threads_take_turns_often():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def together(*jobs):
    """The results of the jobs, each in a thread of its own; they start at once. An error in one is raised here."""
    barrier = threading.Barrier(len(jobs))
    results, errors = [None] * len(jobs), []

    def work(i, job):
        try:
            barrier.wait(60)
            results[i] = job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=item, daemon=True) for item in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]
    return results


def same(results, expected):
    for result in results:
        leaves, structure = phlox.tree.flatten(result)
        wanted, wanted_structure = phlox.tree.flatten(expected)
        assert structure == wanted_structure
        for x, y in zip(leaves, wanted, strict=True):
            assert phlox.typeof(x) is phlox.typeof(y)
            np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-6)


def program(k=1.0, forward=False):
    """A function never traced before: control flow, a jitted function, a custom rule (a `forward` one, or in reverse)."""
    tripled = (phlox.custom_jvp if forward else phlox.custom_vjp)(lambda x: 3 * x)
    if forward:
        tripled.defjvp(lambda primals, tangents: (tripled(*primals), 5 * tangents[0]))
    else:
        tripled.defvjp(lambda x: (3 * x, None), lambda _, ct: (5 * ct,))

    @phlox.jit
    def inner(x):
        return jnp.sin(x) * k

    def f(x):
        def step(c, y):
            c = lax.cond(jnp.sum(c) > 1, inner, tripled, c)
            return c, {"y": y + jnp.max(c)}

        c, ys = lax.scan(step, x, jnp.arange(3.0))
        return jnp.sum(inner(c)) + jnp.sum(ys["y"])

    return f


X = np.array([0.1, 0.2, 0.3], np.float32)
ROUNDS = 4


def test_one_function_for_the_first_time():
    for turn in range(ROUNDS):
        f = phlox.jit(phlox.value_and_grad(program(turn)))
        expected = phlox.jit(phlox.value_and_grad(program(turn)))(X)
        same(together(*[lambda: f(X)] * THREADS), expected)


def test_many_types_of_arguments_for_one_function():
    f = phlox.jit(lambda x: {"a": x * 2, "b": jnp.sum(x)})
    arguments = [np.ones(n % 4 + 1, dtype) for n in range(THREADS) for dtype in (np.float32, np.int32)]
    jobs = [lambda x=x: f(x) for x in arguments[:THREADS]]
    for result, x in zip(together(*jobs), arguments, strict=False):
        same([result], phlox.jit(lambda x: {"a": x * 2, "b": jnp.sum(x)})(x))


TRANSFORMED = [
    lambda f: f,
    phlox.grad,
    lambda f: lambda x: phlox.vmap(f)(jnp.stack([x, x + 1])),
    lambda f: lambda x: phlox.jvp(f, (x,), (jnp.ones_like(x),)),
    lambda f: phlox.jit(phlox.vmap(phlox.grad(lambda y: f(jnp.ones(3) * y)))),
    lambda f: phlox.grad(phlox.checkpoint(f)),
    lambda f: phlox.jacfwd(phlox.grad(lambda x: jnp.sum(jnp.sin(x) ** 2))),
    lambda f: lambda x: phlox.linearize(f, x)[1](x),
]


def test_different_transformations_of_one_function():
    shared, alone = program(forward=True), program(forward=True)
    expected = [transform(alone)(jnp.asarray(X)) for transform in TRANSFORMED]
    for _ in range(2):
        results = together(*[lambda t=t: t(shared)(jnp.asarray(X)) for t in TRANSFORMED])
        for result, wanted in zip(results, expected, strict=True):
            same([result], wanted)


def test_operations_compiled_at_once():
    def operations(n):
        x = jnp.arange(float(n))
        i = lax.iota("int32", n)
        return [lax.sin(x), x[1:] * 2, x.at[0].add(3.0), lax.sort(-x), jnp.where(x > 1, x, 0), lax.add(i, i), x @ x]

    for n in (11, 12, 13):
        results = together(*[functools.partial(operations, n)] * THREADS)
        same(results[1:], results[0])
        np.testing.assert_array_equal(results[0][1], np.arange(1.0, n) * 2)


def test_settings_of_one_thread():
    """64 bits in some threads only, in one function."""
    f = phlox.jit(lambda x: x * 2 + jnp.arange(3))

    def job(wide):
        for _ in range(20):
            with phlox.enable_x64(wide):
                out = f(1.5)
                assert out.dtype == ("float64" if wide else "float32")
                assert jnp.sin(0.5).dtype == out.dtype
                assert jnp.array([1]).dtype == ("int64" if wide else "int32")
        return out

    results = together(*[functools.partial(job, n % 2 == 0) for n in range(THREADS)])
    for result in results:
        np.testing.assert_array_equal(result, [3, 4, 5])


def test_settings_of_the_process():
    """Two threads that set different flags: neither is lost."""

    def job(name, values):
        for value in values * 200:
            phlox.config.update(name, value)
            assert config.read(name) == value

    flags = {
        "numpy_rank_promotion": ["warn", "allow"],
        "default_matmul_precision": ["high", None],
        "traceback_filtering": ["off", "auto"],
        "compilation_cache_max_size": [1 << 20, 1 << 30],
    }
    together(*[functools.partial(job, name, values) for name, values in flags.items()])


def test_a_scope_that_threads_share():
    import contextvars

    for turn in range(50):
        with config.scope(numpy_rank_promotion="warn"):
            contexts = [contextvars.copy_context() for _ in range(THREADS)]
            phlox.config.update("compilation_cache_max_size", (1 << 30) + turn)
            results = together(*[lambda c=c: c.run(config.read, "numpy_rank_promotion") for c in contexts])
        assert results == ["warn"] * THREADS


def test_caches_are_cleared_while_others_run():
    f, expected = phlox.jit(program()), program()(X)
    done = threading.Event()

    def clear():
        while not done.is_set():
            phlox.clear_caches()

    def run():
        results = []
        for _ in range(3):
            results += [f(X), phlox.jit(program())(X)]
            _ = [phlox.jit(lambda x: x)._jit._store for _ in range(200)]  # the table of functions grows and shrinks
        return results

    def run_and_tell():
        try:
            return run()
        finally:
            done.set()

    *results, _ = together(*[run_and_tell] * (THREADS - 1), clear)
    for several in results:
        same(several, expected)


def test_calls_are_counted_while_others_count():
    # Portions of one or two calls end at once in all threads; a thread that finds the next one empty too, goes on.
    def count():
        for counter in counters:
            counter.count()

    for _ in range(50):
        counters = [CallCounter() for _ in range(100)]
        for counter in counters:
            counter.check_soon()
        together(*[count] * THREADS)


def test_functions_that_die():
    def job():
        for n in range(30):
            phlox.jit(lambda x: x + 1)
            phlox.eval_shape(lambda x: x * 2, X)
            if n % 10 == 0:
                gc.collect()
        return phlox.jit(lambda x: x + 1)(X)

    same(together(*[job] * THREADS), phlox.jit(lambda x: x + 1)(X))


def test_random_keys():
    def draw(seed):
        key = phlox.random.key(seed)
        first, second = phlox.random.split(key)
        return phlox.random.normal(first, (3,)), phlox.random.randint(second, (2,), 0, 100)

    results = together(*[functools.partial(draw, seed) for seed in range(THREADS)])
    for seed, result in enumerate(results):
        same([result], draw(seed))


def test_classes_are_registered_while_others_flatten():
    tree = {"a": [1.0, (2.0, None)], "b": X}

    def register():
        for n in range(50):
            made = type(f"Made{n}", (), {})
            phlox.tree_util.register_pytree_node(made, lambda x: ((1, 2), None), lambda aux, children: made())
            assert phlox.tree.leaves([made(), tree])[:2] == [1, 2]

    def flatten():
        for _ in range(200):
            leaves, structure = phlox.tree.flatten(tree)
            assert phlox.tree.unflatten(structure, leaves)["a"] == tree["a"]
            phlox.tree.map(lambda x: x, tree)

    together(*[register, flatten] * (THREADS // 2))


def test_the_cache_on_disk(tmp_path, recwarn):
    """One program written by all, read back, and removed meanwhile."""

    def job(clears):
        with config.scope(compilation_cache_dir=str(tmp_path), enable_compilation_cache=True):
            out = []
            for n in range(5):
                out.append(phlox.jit(lambda x, n=n: jnp.cos(x) * n)(X))
                if clears:
                    phlox.cache.clear()
            return out

    results = together(*[functools.partial(job, n == 0) for n in range(THREADS)])
    same(results[1:], results[0])
    with config.scope(compilation_cache_dir=str(tmp_path), enable_compilation_cache=True):
        phlox.jit(lambda x: jnp.cos(x) * 77)(X)
        assert phlox.cache.info().entries > 0, "the cache was turned off"
    assert not [w for w in recwarn if "PHLOX_ENABLE_COMPILATION_CACHE" in str(w.message)]


def test_a_traced_value_of_another_thread():
    """Each thread has a current trace of its own: operations beside one that traces run at once."""
    inside, outside = threading.Event(), threading.Event()

    @phlox.jit
    def f(x):
        inside.set()
        assert outside.wait(60)
        return x + 1

    def beside():
        assert inside.wait(60)
        try:
            return jnp.sin(1.0) + 1
        finally:
            outside.set()

    traced, direct = together(lambda: f(X), beside)
    np.testing.assert_allclose(traced, X + 1)
    assert isinstance(direct, phlox.Array)


def test_errors_stay_in_their_thread():
    def job(fails):
        f = phlox.jit(lambda x: x.reshape(7) if fails else x.reshape(3, 1))
        for _ in range(10):
            with contextlib.suppress(TypeError, ValueError) if fails else contextlib.nullcontext():
                assert f(X).shape == (3, 1)
                assert not fails

    together(*[functools.partial(job, n % 2 == 0) for n in range(THREADS)])


def test_one_function_with_references_of_many_types():
    for _ in range(ROUNDS):

        @phlox.jit
        def f(ref, x):
            ref[...] = ref[...] + x
            return ref[...] * 2 if ref.ndim == 1 else {"sum": jnp.sum(ref[...]), "ref": ref[...]}

        def job(n, f=f):
            ref = phlox.new_ref(jnp.zeros((2, n) if n % 2 else (n,)))
            return [f(ref, float(n)) for _ in range(3)], ref[...]

        for n, (outs, final) in enumerate(together(*[lambda n=n: job(n) for n in range(THREADS)])):
            shape = (2, n) if n % 2 else (n,)
            wanted = [np.full(shape, n * k, np.float32) for k in (1, 2, 3)]
            np.testing.assert_array_equal(final, wanted[-1])
            for out, value in zip(outs, wanted, strict=True):
                same([out], {"sum": value.sum(), "ref": value} if n % 2 else value * 2)


def test_one_function_that_closes_over_references():
    for _ in range(ROUNDS):
        refs = [phlox.new_ref(jnp.zeros(2)) for _ in range(3)]

        @phlox.jit
        def f(x, refs=refs):  # each type of arguments uses other references
            used = refs[: x.shape[0]]
            return sum(ref[...] for ref in used) + jnp.sum(x)

        jobs = [lambda n=n, f=f: f(jnp.ones(n % 3 + 1)) for n in range(THREADS)]
        for n, out in enumerate(together(*jobs)):
            np.testing.assert_array_equal(out, np.full(2, n % 3 + 1, np.float32))


def test_the_structure_of_results_belongs_to_the_types_of_arguments():
    @phlox.jit
    def f(ref, x):
        ref[...] += 1
        return (x, ref[...]) if x.shape[0] == 1 else {"x": x}

    for n in (1, 2, 1, 2):
        out = f(phlox.new_ref(0.0), jnp.ones(n))
        assert type(out) is (tuple if n == 1 else dict)
