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

from .._api.jit.closed_call import closed_call as closed_call
from .._api.path_rules import (
    path_matcher as path_matcher,
    path_text as path_text,
    shardings_by_path as shardings_by_path,
    values_by_path as values_by_path,
)
from .._base.public_names import on_demand as on_demand, publish as publish
from .._base.pytree import Difference as Difference, tree_error as tree_error
from .._base.source import (
    Location as Location,
    hide_frames as hide_frames,
    user_location as user_location,
    warn as warn,
)
from .._base.strictness import lenient_promotion as lenient_promotion
from .._ir.avals import ShapedArray as ShapedArray
from .._ir.primitive import Primitive as Primitive, primitive as primitive, primitives as primitives
from .._ops.elementwise.families import (
    ANY as ANY,
    COMPLEX as COMPLEX,
    FLOAT as FLOAT,
    INEXACT as INEXACT,
    INTEGER as INTEGER,
    LINEAR as LINEAR,
    NUMBER as NUMBER,
    ZERO as ZERO,
    binary as binary,
    lowered_as as lowered_as,
    unary as unary,
)
from .._transform.array_operations import (
    Zero as Zero,
    insert_axis as insert_axis,
    instantiate as instantiate,
    move_axis as move_axis,
)
from .._transform.batch import BatchAxis as BatchAxis
from .._transform.transpose import Linear as Linear, is_linear as is_linear
from .._xla.text import Function as Function, Value as Value
from . import core as core, random as random

publish(__name__)
