"""Which cases of these tests run, and the cache of the judge: as for the tests of core."""

import pathlib

from judging import few_compiled_programs as few_compiled_programs, leave_out_cases


def pytest_collection_modifyitems(config, items):
    leave_out_cases(config, items, pathlib.Path(__file__).parent)
