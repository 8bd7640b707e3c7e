"""The first use of phlox in a process may come from eight threads at once."""

from core_processes import run


def test_threads_start_phlox_together(tmp_path):
    program = """
    import sys, threading
    import numpy as np
    import phlox, phlox.numpy as jnp

    sys.setswitchinterval(1e-6)
    barrier = threading.Barrier(8)
    results, shardings = [None] * 8, [None] * 8

    def work(i):
        barrier.wait()
        x = jnp.arange(3.0)
        shardings[i] = x.sharding
        results[i] = np.asarray(phlox.jit(phlox.grad(lambda x: jnp.sum(jnp.sin(x) * phlox.random.normal(phlox.random.key(1)))))(x))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert all((r == results[0]).all() for r in results), results
    assert len(set(map(id, shardings))) == 1, "an array's place is one object"
    """
    run(program, PHLOX_COMPILATION_CACHE_DIR=str(tmp_path))


def test_the_first_derivative_of_an_index():
    program = """
    import numpy as np, phlox
    print(phlox.grad(lambda x: x[np.array([0, 0, 2])].sum())(phlox.numpy.ones(3)))
    """
    assert run(program).stdout == "[2. 0. 1.]\n"


def test_operations_that_rules_name_are_there():
    # Rules that run inside of `shard_map` name primitives that it loads or declares. "while" is named by loops only.
    program = """
    import re, sys, pathlib
    import phlox, phlox.numpy
    from phlox._ir.primitive import _on_demand, primitives
    files = [m.__file__ for name, m in sys.modules.items() if name.startswith("phlox.") and getattr(m, "__file__", None)]
    names = {n for file in files for n in re.findall(r'primitive\\("([^"]+)"\\)', pathlib.Path(file).read_text())}
    import phlox._ops.spmd.shard_map
    print(len(names) > 10, sorted(names - {*primitives(), *_on_demand, "while"}))
    """
    assert run(program).stdout == "True []\n"
