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
