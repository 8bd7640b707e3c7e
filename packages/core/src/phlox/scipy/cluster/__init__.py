"""``phlox.scipy.cluster``: vector quantization."""

from typing import TYPE_CHECKING

from ..._base.public_names import publish

if TYPE_CHECKING:
    from . import vq

publish(__name__, "vq")

__all__ = ["vq"]
