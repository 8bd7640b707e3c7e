"""The names of the weights of diffusers' ``UNet2DModel``."""

from __future__ import annotations

from . import parts
from ._diffusers import ATTENTION, BLOCK


def _blocks(theirs: str, ours: str) -> list[tuple[str, str]]:
    return [
        *parts(f"{theirs}.resnets.*", f"{ours}.*.block", BLOCK),
        (f"{theirs}.attentions.*.group_norm.*", f"{ours}.*.attention.norm.*"),
        *parts(f"{theirs}.attentions.*", f"{ours}.*.attention.attention", ATTENTION),
    ]


RULES = [
    *parts("time_embedding", "time.layers", {"linear_1": "0", "linear_2": "1"}),
    ("class_embedding.*", "labels.*"),
    ("conv_in.*", "first.*"),
    ("conv_norm_out.*", "norm.*"),
    ("conv_out.*", "last.*"),
    ("down_blocks.*.downsamplers.0.conv.*", "down.*.sample.*"),
    ("up_blocks.*.upsamplers.0.conv.*", "up.*.sample.*"),
    *_blocks("down_blocks.*", "down.*.blocks"),
    *_blocks("mid_block", "middle"),
    *_blocks("up_blocks.*", "up.*.blocks"),
]
