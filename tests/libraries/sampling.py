"""A plugin of pytest: of each file at most `LIBRARY_TESTS` tests are run, one case of each function before a second one.

The choice is random, and the same in each run: suites with thousands of cases of few functions take hours on jax. Tests
that are skipped do not count. No test begins `LIBRARY_TEST_SECONDS` after the first, so that the report is written before
the process is stopped. If `LIBRARY_TEST_NAMES` is set, to names in JSON,
the other tests are left out.
"""

import collections
import json
import os
import random
import time

import pytest


class Sample:
    """The tests of a session that count so far, and the time of its end."""

    def __init__(self, tests, seconds):
        self.tests = tests
        self.end = time.monotonic() + seconds

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Stops the session after the last test of the sample, or when its time is over."""
        result = yield
        if self.tests == 0 or time.monotonic() > self.end:
            item.session.shouldstop = "the sample has run"
        return result

    def pytest_runtest_logreport(self, report):
        """Counts tests that were not skipped."""
        self.tests -= report.when == "call" and not report.skipped


def _is_named(item):
    """Whether `LIBRARY_TEST_NAMES`, names after the folder or class, has the test, or is not set."""
    names = os.environ.get("LIBRARY_TEST_NAMES")
    return names is None or any(name.endswith(f".{item.name}") for name in json.loads(names))


@pytest.hookimpl(trylast=True)  # after the options -m and -k
def pytest_collection_modifyitems(config, items):
    """Orders the tests at random: a case of each function, then a second one of each, and so on."""
    random.Random(0).shuffle(items)
    counts = collections.Counter()
    turns = []  # of each test, the number of cases of its function before it
    for item in items:
        function = item.cls, getattr(item, "originalname", item.name)
        turns.append(counts[function])
        counts[function] += 1
    order = sorted(range(len(items)), key=turns.__getitem__)
    items[:] = [items[i] for i in order if _is_named(items[i])]
    tests, seconds = int(os.environ["LIBRARY_TESTS"]), float(os.environ["LIBRARY_TEST_SECONDS"])
    config.pluginmanager.register(Sample(tests, seconds))
