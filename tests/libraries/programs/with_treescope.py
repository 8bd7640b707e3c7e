"""treescope: trees and arrays as text and pages."""

import jax
import jax.numpy as jnp
import treescope
from common import show

tree = {"a": jnp.arange(4.0), "b": [1, jax.ShapeDtypeStruct((2,), jnp.float32)]}
text = treescope.render_to_text(tree)
show("text", "dtype=float32" in text or "float32" in text, "'a'" in text)
show("page", len(treescope.render_to_html(tree)) > 1000)
