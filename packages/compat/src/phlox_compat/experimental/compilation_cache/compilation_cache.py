"""``phlox.experimental.compilation_cache.compilation_cache``: where the cache of programs on disk is, as in JAX.

The cache is on from the start, in a folder of the user. `phlox.cache` says what is in it.
"""

from __future__ import annotations

import os

from phlox import cache, config
from phlox.extend import publish

__all__ = ["reset_cache", "set_cache_dir"]


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """Sets the folder of the cache: the flag `compilation_cache_dir`.

    Args:
      path: a folder, which only this user may write to. It is made if it does not exist.

    Returns:
      None.

    >>> import tempfile
    >>> before = phlox.config.compilation_cache_dir
    >>> set_cache_dir(tempfile.mkdtemp())
    >>> phlox.config.update("compilation_cache_dir", before)
    """
    config.update("compilation_cache_dir", os.fspath(path))


def reset_cache() -> None:
    """Forgets whether folders are usable, as at the start of the process. Nothing on disk is removed.

    Returns:
      None.

    >>> reset_cache()
    """
    cache.forget_folders()


publish(__name__)
