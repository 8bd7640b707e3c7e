"""The private names of core that this package uses: the only module that imports from private modules of phlox.

What stands in the place of jax must read and replace things that no user of phlox should see: the current trace, hidden
frames, the generated call paths, the table of missing names. tests/repository/test_imports.py checks that no other
module does so.
"""

from phlox._api.batching.mappable import register_vmappable, unregister_vmappable
from phlox._api.batching.vmap import flat_axes
from phlox._api.derivatives import grad
from phlox._api.derivatives.backward_rules import GradAccum, ValAccum
from phlox._api.derivatives.remat import saved_residuals
from phlox._api.jit import arguments, calling, user_functions
from phlox._base import config
from phlox._base.absent import UNAVAILABLE, reason
from phlox._base.native import hlo, native
from phlox._base.pytree import check_same, placeholders
from phlox._base.source import HiddenPaths, InnerScope, is_internal, scope_text, within
from phlox._ir.dtypes import ExtendedDtype
from phlox._ir.effects import IOEffect, no_effects
from phlox._ir.jaxpr import hoist_consts, prune
from phlox._ir.primitive import current_trace
from phlox._operands.checks import check as check_arrays
from phlox._operands.promotion import promote_dtypes, promote_inexact, promoted, promoted_inexact
from phlox._ops import all_primitives
from phlox._ops.control.remat import name_p as NAME
from phlox._ops.elementwise.arithmetic import add_any
from phlox._ops.host.check import JaxException
from phlox._ops.random.keys import KeyDtype
from phlox._trace.axes import axis_env
from phlox._trace.refs import AbstractRef
from phlox._trace.staging import JaxprTrace, JaxprTracer, stage
from phlox._transform.array_operations import add as add_tangents
from phlox._transform.batch import BatchTrace, BatchTracer
from phlox._transform.jvp import JVPTrace, JVPTracer
from phlox._transform.linearize import TangentTrace
from phlox._xla import program
from phlox._xla.array import ArrayImpl
from phlox._xla.bindings import context as mlir_context, module as mlir_module, parse as parse_module
from phlox._xla.callbacks import call_host, on_host
from phlox._xla.devices import _clients as clients, client
from phlox._xla.platforms import platform_of
from phlox._xla.sharding import NamedSharding, SingleDeviceSharding
from phlox._xla.text import dense as dense_text
from phlox.numpy._indexing.ds import Slice, ds
from phlox.numpy._indexing.refs import RefView

__all__ = [
    "NAME",
    "UNAVAILABLE",
    "AbstractRef",
    "ArrayImpl",
    "BatchTrace",
    "BatchTracer",
    "ExtendedDtype",
    "GradAccum",
    "HiddenPaths",
    "IOEffect",
    "InnerScope",
    "JVPTrace",
    "JVPTracer",
    "JaxException",
    "JaxprTrace",
    "JaxprTracer",
    "KeyDtype",
    "NamedSharding",
    "RefView",
    "SingleDeviceSharding",
    "Slice",
    "TangentTrace",
    "ValAccum",
    "add_any",
    "add_tangents",
    "all_primitives",
    "arguments",
    "axis_env",
    "call_host",
    "calling",
    "check_arrays",
    "check_same",
    "client",
    "clients",
    "config",
    "current_trace",
    "dense_text",
    "ds",
    "flat_axes",
    "grad",
    "hlo",
    "hoist_consts",
    "is_internal",
    "mlir_context",
    "mlir_module",
    "native",
    "no_effects",
    "on_host",
    "parse_module",
    "placeholders",
    "platform_of",
    "program",
    "promote_dtypes",
    "promote_inexact",
    "promoted",
    "promoted_inexact",
    "prune",
    "reason",
    "register_vmappable",
    "saved_residuals",
    "scope_text",
    "stage",
    "unregister_vmappable",
    "user_functions",
    "within",
]
