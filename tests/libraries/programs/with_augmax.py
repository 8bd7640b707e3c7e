"""augmax: augmentation of images."""

import augmax
import jax
import jax.numpy as jnp
from common import show

image = jnp.linspace(0, 1, 16 * 16 * 3).reshape(16, 16, 3) ** 2
key = jax.random.PRNGKey(1)
for transform in (
    augmax.Rotate(20),
    augmax.RandomCrop(8, 8),
    augmax.HorizontalFlip(),
    augmax.GaussianBlur(2),
    augmax.RandomSizedCrop(8, 8),
    augmax.RandomBrightness(),
    augmax.ColorJitter(),
    augmax.Rotate90(),
    augmax.RandomGrayscale(),
    augmax.Solarization(),
):
    chain = augmax.Chain(transform)
    show(type(transform).__name__, jax.jit(chain)(key, image))
chain = augmax.Chain(
    augmax.Rotate(),
    augmax.ByteToFloat(),
    augmax.Normalize(),
    input_types=[augmax.InputType.IMAGE, augmax.InputType.MASK],
)
images = (image * 255).astype(jnp.uint8)[None].repeat(3, 0)
masks = (image[..., 0] > 0.3)[None].repeat(3, 0).astype(jnp.uint8)
show("batch", jax.jit(jax.vmap(chain))(jax.random.split(key, 3), [images, masks]))
