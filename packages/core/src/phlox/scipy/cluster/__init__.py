"""``phlox.scipy.cluster``: vector quantization."""

from ..._base.public_names import on_demand, publish

with on_demand(__name__):
    from . import vq

publish(__name__)

__all__ = ["vq"]
