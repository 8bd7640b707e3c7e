"""``phlox.experimental.compilation_cache``: the cache of programs on disk under its former name; see `phlox.cache`."""

from phlox.extend import publish

from . import compilation_cache

__all__ = ["compilation_cache"]


publish(__name__)
