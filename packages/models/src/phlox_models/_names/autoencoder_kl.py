"""The names of the weights of diffusers' ``AutoencoderKL``."""

from __future__ import annotations

from . import parts
from ._diffusers import ATTENTION, BLOCK


def _half(half: str, levels: str, sampler: str) -> list[tuple[str, str]]:
    """The rules of the encoder or the decoder."""
    return [
        *parts(half, half, {"conv_in": "first", "conv_norm_out": "norm", "conv_out": "last"}),
        (f"{half}.{levels}.*.{sampler}.0.conv.*", f"{half}.levels.*.sample.*"),
        *parts(f"{half}.{levels}.*.resnets.*", f"{half}.levels.*.blocks.*", BLOCK),
        *parts(f"{half}.mid_block.resnets.0", f"{half}.middle.first", BLOCK),
        *parts(f"{half}.mid_block.resnets.1", f"{half}.middle.last", BLOCK),
        (f"{half}.mid_block.attentions.0.group_norm.*", f"{half}.middle.attention.norm.*"),
        *parts(f"{half}.mid_block.attentions.0", f"{half}.middle.attention.attention", ATTENTION),
    ]


RULES = [
    ("quant_conv.*", "quant.*"),
    ("post_quant_conv.*", "post_quant.*"),
    *_half("encoder", "down_blocks", "downsamplers"),
    *_half("decoder", "up_blocks", "upsamplers"),
]
