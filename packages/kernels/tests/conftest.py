"""Tests of this folder run with the kernels, and leave phlox as if the package were not there."""

import sys

import pytest

import library


@pytest.fixture(scope="module", autouse=True)
def kernels():
    """The folder with the built package, which is first on the path."""
    import phlox
    from phlox._xla.kernels import registered

    def forget():
        sys.modules.pop("phlox_kernels", None)
        registered.cache_clear()
        phlox.clear_caches()

    folder = library.folder()
    sys.path.insert(0, folder)
    forget()
    yield folder
    sys.path.remove(folder)
    forget()
