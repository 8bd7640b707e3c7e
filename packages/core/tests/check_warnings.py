"""The warnings of `phlox.config.checks`, for tests of it."""

import warnings

from phlox.errors import CheckWarning


def told(run):
    """The texts of the checks' warnings while `run` runs."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [str(w.message) for w in caught if issubclass(w.category, CheckWarning)]
