"""The names that the library timm gives to MLP-Mixer's weights."""

from __future__ import annotations

from . import parts

RULES = [
    ("stem.proj.*", "stem.*"),
    *parts("blocks.*.mlp_tokens", "blocks.*.patches.layers", {"fc1": "0", "fc2": "1"}),
    *parts("blocks.*.mlp_channels", "blocks.*.channels.layers", {"fc1": "0", "fc2": "1"}),
]
