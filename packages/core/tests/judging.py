"""What the tests that compare with jax have in common: its cache on disk, as it compiles slowly, and which cases run."""

import collections
import gc
import math
import os

import pytest

_folder = os.path.join(os.path.dirname(os.environ["PHLOX_COMPILATION_CACHE_DIR"]), "judge-programs")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", _folder)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


def leave_out_cases(config, items, folder):
    """Of each test below `folder`, runs every n-th case, and the first in any case."""
    import judge

    dropped, seen = set(), collections.Counter()
    for item in items:
        if folder not in item.path.parents:
            continue
        i = seen[item.path, item.originalname]
        seen[item.path, item.originalname] += 1
        share = judge.FACTOR if item.get_closest_marker("whole") else judge.FACTOR / 3
        if share < 1 and math.floor(i * share) == math.floor((i - 1) * share):
            dropped.add(item)
    config.hook.pytest_deselected(items=list(dropped))
    items[:] = [item for item in items if item not in dropped]


@pytest.fixture(autouse=True, scope="module")
def few_compiled_programs():
    """Forgets what a file compiled: a process may map 65530 pieces of memory, and each program takes several."""
    yield
    import jax

    import phlox

    phlox.clear_caches()
    jax.clear_caches()
    gc.collect()
