"""What all tests have in common: how XLA compiles them, where compiled programs are kept, how many devices there are.

XLA reads its environment once, so this must come before the first import of jaxlib. Optimisation level 0 halves the
time to compile, and tests do not measure speed. Eight virtual devices serve pmap; everything else uses the first one.
"""

import collections
import datetime
import os

import pytest

#: How many cases run: names of PHLOX_TEST_CASES, and the factors that they stand for.
SIZES = {"few": "0.1", "default": "1", "all": "3"}
size = os.environ.get("PHLOX_TEST_CASES", "default")
os.environ["PHLOX_TEST_CASES"] = SIZES.get(size, size)
#: What of the tests runs, where not all do, depends on the number of the day.
os.environ.setdefault("PHLOX_TEST_ROTATION", str(datetime.date.today().toordinal()))

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_force_host_platform_device_count=8")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
_cache = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "phlox")
os.environ.setdefault("PHLOX_COMPILATION_CACHE_DIR", os.path.join(_cache, "test-programs"))


#: Where networks are compiled, and packages installed, a third of the tests takes as long as all of another package.
ROTATING = ("packages/models/tests", "packages/examples/tests", "tests/install")


def pytest_collection_modifyitems(config, items):
    """With less than the default cases, runs a third of the tests of each file in these folders, others each day."""
    if float(os.environ["PHLOX_TEST_CASES"]) >= 1:
        return
    day, dropped, files = int(os.environ["PHLOX_TEST_ROTATION"]), set(), collections.defaultdict(list)
    for item in items:
        if item.nodeid.startswith(ROTATING):
            files[item.path].append(item)
    for tests in files.values():
        step = min(3, len(tests))
        dropped.update(item for i, item in enumerate(tests) if (i - day) % step)
    config.hook.pytest_deselected(items=list(dropped))
    items[:] = [item for item in items if item not in dropped]


@pytest.fixture(autouse=True)
def settings_are_restored():
    """Tests of one kind share a process: a flag that one sets must not reach the next."""
    try:
        from phlox._base import config
    except ImportError:  # the test is about something else, and phlox is not installed
        yield
        return
    before = config.global_settings
    yield
    config.global_settings = before
