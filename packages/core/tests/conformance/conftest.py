"""The real jax compiles slowly: it may keep its programs on disk too, beside phlox's. Warm, it judges four times faster."""

import os

_folder = os.path.join(os.path.dirname(os.environ["PHLOX_COMPILATION_CACHE_DIR"]), "judge-programs")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", _folder)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
