"""The sizes of a U-Net, from a configuration of our own or from that of diffusers' ``UNet2DModel``."""

from __future__ import annotations

from typing import Any, NamedTuple

from phlox.errors import ArgumentError

from ._config import Config


class Sizes(NamedTuple):
    """The sizes of a `UNet`.

    Attributes:
      channels, outputs: the number of channels of the images and of the predictions.
      widths: the number of channels at each resolution, the highest first.
      vector: the length of the vectors of time.
      blocks: at each resolution.
      down_attention, up_attention: whether the blocks at each resolution have attention, in the order of their use.
      middle_attention: whether the lowest resolution has it between the two halves.
      heads: of attention; None: so many that a head has `head_size` features.
      head_size: the number of features of a head, or None for one head.
      groups, epsilon: of the norms.
      dropout: the fraction that is dropped in training.
      classes: the number of labels, 0 for a model without them.
      padding: of the convolutions that halve height and width.
      time_scale: a factor of the times.
      time_options: arguments of `time_features`.
    """

    channels: int
    outputs: int
    widths: tuple[int, ...]
    vector: int
    blocks: int
    down_attention: tuple[bool, ...]
    up_attention: tuple[bool, ...]
    middle_attention: bool = True
    heads: int | None = None
    head_size: int | None = None
    groups: int = 32
    epsilon: float = 1e-5
    dropout: float = 0.0
    classes: int = 0
    padding: Any = 1
    time_scale: float = 1.0
    time_options: tuple[tuple[str, Any], ...] = ()

    def num_heads(self, features: int) -> int:
        """The number of heads of attention with so many features."""
        if self.heads is not None:
            return self.heads
        return features // self.head_size if self.head_size else 1


def sizes(config: Config) -> Sizes:
    """The sizes that a configuration describes. Raises `ArgumentError` for entries that are not understood."""
    return _of_diffusers(config) if config.model_type == "UNet2DModel" else _of_our_own(config)


def _of_our_own(c: Config) -> Sizes:
    n, channels = c.integer("features"), c.integer("channels", 3)
    widths = tuple(n * factor for factor in c.integers("factors", (1, 2, 4)))
    numbers = c.get("attention", [len(widths) - 1])
    attention = tuple(number in numbers for number in range(len(widths)))
    return Sizes(
        channels, channels, widths, 4 * n, c.integer("blocks", 2), attention, attention[::-1],
        heads=c.integer("heads", 1), groups=c.integer("groups", 8), dropout=c.number("dropout", 0.0),
        classes=c.integer("classes") if c.get("classes") else 0, time_scale=c.number("time_scale", 1.0),
    )  # fmt: skip


#: entries of diffusers' configurations for which one value is understood, which is that of files that lack them
_FIXED = {
    "act_fn": "silu",
    "attn_norm_num_groups": None,
    "center_input_sample": False,
    "class_embed_type": None,
    "downsample_type": "conv",
    "mid_block_scale_factor": 1,
    "mid_block_type": "UNetMidBlock2D",
    "resnet_time_scale_shift": "default",
    "time_embedding_type": "positional",
    "upsample_type": "conv",
}


def _of_diffusers(c: Config) -> Sizes:
    c.check_fixed(_FIXED)
    widths = c.integers("block_out_channels", (224, 448, 672, 896))
    classes = c.integer("num_class_embeds") if c.get("num_class_embeds") is not None else 0
    # Without padding diffusers puts a row and a column of zeros behind the image.
    padding = c.get("downsample_padding", 1) or ((0, 1), (0, 1))
    options = {"cosines_first": c.flag("flip_sin_to_cos", True), "shift": c.number("freq_shift", 0)}
    return Sizes(
        c.integer("in_channels", 3), c.integer("out_channels", 3), widths,
        c.integer("time_embedding_dim", 4 * widths[0]), c.integer("layers_per_block", 2),
        _attention(c, "down_block_types", ("DownBlock2D", *("AttnDownBlock2D",) * 3)),
        _attention(c, "up_block_types", (*("AttnUpBlock2D",) * 3, "UpBlock2D")),
        middle_attention=c.flag("add_attention", True), head_size=c.get("attention_head_dim", 8),
        groups=c.integer("norm_num_groups", 32), epsilon=c.number("norm_eps", 1e-5), dropout=c.number("dropout", 0.0),
        classes=classes, padding=padding, time_options=tuple(options.items()),
    )  # fmt: skip


def _attention(c: Config, name: str, default: tuple[str, ...]) -> tuple[bool, ...]:
    """Whether each of these kinds of blocks has attention."""
    kinds, plain = c.get(name, default), "DownBlock2D" if name.startswith("down") else "UpBlock2D"
    for kind in kinds:
        if kind not in (plain, f"Attn{plain}"):
            raise ArgumentError(
                f"config.json: {name!r} has {kind!r}, which the U-Net of phlox_models does not have",
                instead=f"{plain!r} or {'Attn' + plain!r}",
                name=name,
            )
    return tuple(kind != plain for kind in kinds)
