"""A plugin of pytest: of each file at most `PHLOX_SUITE_SAMPLE` tests are run, no two cases of one function.

The choice is random, and the same in each run: suites with thousands of cases of few functions take hours on jax.
"""

import os
import random

import pytest


@pytest.hookimpl(trylast=True)  # after the options -m and -k
def pytest_collection_modifyitems(items):
    number, draw = int(os.environ["PHLOX_SUITE_SAMPLE"]), random.Random(0)
    order = list(range(len(items)))
    draw.shuffle(order)
    cases = {}
    for i in order:
        cases.setdefault((items[i].cls, getattr(items[i], "originalname", items[i].name)), i)
    chosen = sorted(cases.values())
    if len(chosen) > number:
        chosen = sorted(draw.sample(chosen, number))
    items[:] = [items[i] for i in chosen]
