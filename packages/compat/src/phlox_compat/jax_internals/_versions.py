"""Versions of the JAX and jaxlib that phlox stands for."""

from . import JAX_VERSION

__version__ = _version = JAX_VERSION
__version_info__ = tuple(int(part) for part in JAX_VERSION.split("."))

#: the version of jaxlib, as a tuple
version = __version_info__
#: a number that jaxlib counts up; libraries only ask whether it is at least another
jaxlib_extension_version = 10_000
