"""dm-pix: changes of an image, and distances between images."""

import dm_pix as pix
import jax
from common import show

key = jax.random.key(0)
image = jax.random.uniform(key, (16, 16, 3))
show("colors", pix.adjust_brightness(image, 0.1), pix.adjust_contrast(image, 1.5), pix.adjust_hue(image, 0.2))
show("spaces", pix.rgb_to_hsv(image), pix.rgb_to_grayscale(image))
show("filters", pix.gaussian_blur(image, 1.0, 3), pix.flip_left_right(image), pix.rotate(image, 0.5))
show("random", pix.random_crop(key, image, (4, 4, 3)), pix.random_brightness(key, image, 0.3))
show("distances", pix.psnr(image, image * 0.9), pix.ssim(image, image * 0.9), pix.mae(image, image * 0.9))
