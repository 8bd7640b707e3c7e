"""What importing phlox does to a process: nothing that the user did not ask for."""

import json

from core_processes import run


def test_import_starts_nothing_and_writes_nothing(tmp_path):
    program = """
        import json, os, sys, threading
        import numpy  # which starts the threads of its linear algebra
        before = threading.active_count(), sorted(os.listdir("/proc/self/task")), dict(os.environ)
        import phlox
        import phlox.numpy
        from phlox._xla import devices
        changed = {k: v for k, v in os.environ.items() if before[2].get(k) != v}
        print(json.dumps({
            "clients": devices.started(),
            "threads": threading.active_count() - before[0],
            "tasks": len(os.listdir("/proc/self/task")) - len(before[1]),
            "environment": changed,
            "meta_path": [type(f).__module__ for f in sys.meta_path if type(f).__module__.startswith("phlox")],
        }))
    """
    home = tmp_path / "home"
    home.mkdir()
    out = run(program, HOME=str(home), XDG_CACHE_HOME=None, PHLOX_COMPILATION_CACHE_DIR=None, TF_CPP_MIN_LOG_LEVEL=None)
    found = json.loads(out.stdout)
    assert found["environment"].pop("TF_CPP_MIN_LOG_LEVEL", "1") == "1"
    assert found == {"clients": False, "threads": 0, "tasks": 0, "environment": {}, "meta_path": []}
    assert list(home.rglob("*")) == []
    assert out.stderr == ""


def test_import_brings_no_jax_no_scipy_no_unittest():
    out = run("import phlox, phlox.numpy, phlox.random, phlox.nn, phlox.lax", options=["-X", "importtime"])
    modules = {line.rsplit("|", 1)[1].strip() for line in out.stderr.splitlines() if line.startswith("import time:")}
    tops = {name.split(".")[0] for name in modules}
    assert "phlox" in tops
    assert not tops & {"jax", "scipy", "unittest", "torch", "tensorflow", "matplotlib", "rich"}
    assert "jaxlib.mlir" not in modules


def test_what_few_programs_need_waits_until_it_is_needed():
    program = """
        import sys, phlox
        import phlox.numpy as jnp
        phlox.jit(lambda x: x + 1)(1.0)
        waiting = "logging", "jaxlib.xla_client", "phlox.numpy._indexing.reading", "phlox._ops.linalg.algorithms"
        print([name for name in waiting if name in sys.modules])
        import logging
        logging.basicConfig(level=logging.DEBUG)
        print(phlox.jit(lambda x: x + 2)(jnp.ones(3))[1], jnp.linalg.cholesky(4 * jnp.eye(1)))
        print([name for name in waiting if name in sys.modules])
    """
    out = run(program)
    before, numbers, after = out.stdout.splitlines()
    assert (before, numbers) == ("[]", "3.0 [[2.]]")
    assert after == "['logging', 'jaxlib.xla_client', 'phlox.numpy._indexing.reading']"
    assert "DEBUG:phlox:" in out.stderr  # who reads the log later than he imported phlox misses nothing from then on


def test_numpy_does_not_wait_for_lax():
    program = """
        import sys, phlox.numpy as jnp
        for name in dir(jnp):
            getattr(jnp, name)
        print(jnp.add(1, 2), "phlox.lax" in sys.modules)
    """
    assert run(program).stdout.strip() == "3 False"


def test_the_first_computation_brings_no_jax_either():
    program = """
        import sys
        import numpy as np, phlox, phlox.numpy as jnp, ml_dtypes
        x = jnp.ones((3, 3), "bfloat16")
        np.asarray(x), str(x @ x), phlox.jit(phlox.grad(lambda x: (x * x).sum()))(jnp.ones(3))
        y = phlox.pmap(lambda x: x + 1)(np.arange(float(phlox.device_count())))
        np.asarray(y), y.addressable_shards, y[0], np.from_dlpack(jnp.ones(2)), jnp.from_dlpack(np.ones(2, "float32"))
        print([name for name in sys.modules if name.split(".")[0] in ("jax", "scipy")])
    """
    assert run(program).stdout.strip() == "[]"


def test_linear_algebra_leaves_the_import_of_scipys_to_the_user():
    """Two of its modules are enough, and it is whole when it is imported afterwards."""
    program = """
    import sys, numpy as np, phlox
    a = np.array([[2.0, 1.0], [1.0, 3.0]], np.float32)
    assert phlox.numpy.linalg.solve(a, a[0]).tolist() == [1, 0]
    assert not [name for name in sys.modules if name.startswith("scipy.linalg")]
    import scipy.linalg, scipy.linalg.cython_lapack
    assert "dgemm" in scipy.linalg.cython_blas.__pyx_capi__ and "dgetrf" in scipy.linalg.cython_lapack.__pyx_capi__
    assert np.allclose(scipy.linalg.expm(np.zeros((2, 2))), np.eye(2))
    assert np.allclose(phlox.numpy.linalg.eigvals(a), np.linalg.eigvals(a), atol=1e-5)
    """
    run(program)


def test_first_result_without_a_home(tmp_path):
    out = run(
        "import phlox.numpy as jnp; print(jnp.ones(2) + 1)",
        HOME=str(tmp_path / "missing" / "home"),
        XDG_CACHE_HOME=None,
        PHLOX_COMPILATION_CACHE_DIR=None,
    )
    assert out.stdout.strip() == "[2. 2.]"


def test_a_process_that_ends_while_computing_ends_quietly():
    out = run("import phlox, phlox.numpy as jnp; x = phlox.pmap(lambda x: x @ x)(jnp.ones((1, 500, 500)))")
    assert out.stderr == ""


def test_nothing_that_programs_print_is_lost_at_exit():
    out = run("""
        import phlox, phlox.numpy as jnp
        @phlox.jit
        def f(x):
            for _ in range(20):
                x = x @ x / 300
            phlox.debug.print("sum {}", x.sum())
        for _ in range(5):
            f(jnp.ones((300, 300)))
    """)
    assert out.stdout.count("sum 90000.0") == 5
    assert out.stderr == ""
