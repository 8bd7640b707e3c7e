"""``phlox.experimental.compilation_cache``: the cache of programs on disk under its former name; see `phlox.cache`."""
