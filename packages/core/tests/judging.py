"""What the tests that compare with jax have in common: its cache on disk, as it compiles slowly, and which cases run."""

import collections
import gc
import math
import os
import zlib

import pytest

_folder = os.path.join(os.path.dirname(os.environ["PHLOX_COMPILATION_CACHE_DIR"]), "judge-programs")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", _folder)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


def _is_chosen(name, i, step):
    """Whether case `i` of a test runs, of which the first and every `step`-th case run by default.

    Below a factor of 1 it is a share of those of the default, another one each day, so that in the end all have run;
    the first cases, which many tests have alone, run every third day.
    """
    import judge

    if judge.FACTOR < 1:
        first = not i and (zlib.crc32(name.encode()) - judge.DAY) % 3 == 0
        return first or (i - step * judge.DAY) % (step * round(1 / judge.FACTOR)) == 0
    share = judge.FACTOR / step
    return not i or share >= 1 or math.floor(i * share) != math.floor((i - 1) * share)


def leave_out_cases(config, items, folder):
    """Of each test below `folder`, runs some of the cases."""
    dropped, seen = set(), collections.Counter()
    for item in items:
        if folder not in item.path.parents:
            continue
        i = seen[item.path, item.originalname]
        seen[item.path, item.originalname] += 1
        if not _is_chosen(item.originalname, i, 1 if item.get_closest_marker("whole") else 3):
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
