"""``phlox.extend``: for packages that build on phlox. docs/extending.md shows how.

- New operations: `Primitive` defines one with all of its rules; `unary` and `binary` define elementwise ones;
  `lowered_as` makes a lowering rule from other operations. Rules use `ShapedArray`, `Zero`, `Linear` and `BatchAxis`,
  and write StableHLO text with `Function` and `Value`.
- Errors that point at the user's line: `hide_frames`, `user_location`, `tree_error`, `warn`.
- `publish`: a module whose errors for misspelt names say what was meant; `on_demand`: its imports wait until they are
  needed.
- `lenient_promotion`: library code that ignores the user's strict promotion flags.
- `path_matcher`, `path_text`, `values_by_path`, `shardings_by_path`: leaves of trees by patterns of their paths.
- `closed_call`: calls a Jaxpr as one unit.
- ``phlox.extend.core``: JAX's names, for ported code.
"""

from .._api.jit.closed_call import closed_call
from .._api.path_rules import path_matcher, path_text, shardings_by_path, values_by_path
from .._base.public_names import on_demand, publish
from .._base.pytree import Difference, tree_error
from .._base.source import Location, hide_frames, user_location, warn
from .._base.strictness import lenient_promotion
from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, primitive, primitives
from .._ops.elementwise.families import (
    ANY,
    COMPLEX,
    FLOAT,
    INEXACT,
    INTEGER,
    LINEAR,
    NUMBER,
    ZERO,
    binary,
    lowered_as,
    unary,
)
from .._transform.array_operations import Zero, insert_axis, instantiate, move_axis
from .._transform.batch import BatchAxis
from .._transform.transpose import Linear, is_linear
from .._xla.text import Function, Value
from . import core, random

__all__ = [
    "ANY",
    "COMPLEX",
    "FLOAT",
    "INEXACT",
    "INTEGER",
    "LINEAR",
    "NUMBER",
    "ZERO",
    "BatchAxis",
    "Difference",
    "Function",
    "Linear",
    "Location",
    "Primitive",
    "ShapedArray",
    "Value",
    "Zero",
    "binary",
    "closed_call",
    "core",
    "hide_frames",
    "insert_axis",
    "instantiate",
    "is_linear",
    "lenient_promotion",
    "lowered_as",
    "move_axis",
    "on_demand",
    "path_matcher",
    "path_text",
    "primitive",
    "primitives",
    "publish",
    "random",
    "shardings_by_path",
    "tree_error",
    "unary",
    "user_location",
    "values_by_path",
    "warn",
]


publish(__name__)
