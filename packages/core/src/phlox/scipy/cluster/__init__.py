"""``phlox.scipy.cluster``: vector quantization."""

from typing import TYPE_CHECKING

from ..._base.lazy_imports import on_demand

if TYPE_CHECKING:
    from . import vq

__getattr__, __dir__ = on_demand(__name__, "vq")

__all__ = ["vq"]
