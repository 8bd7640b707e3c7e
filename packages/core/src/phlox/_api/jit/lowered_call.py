"""Lowering of a traced call: which of its values become arguments of the program, and which are written into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..._base import config
from ..._base.pytree import tree_structure, treedef_tuple
from ..._base.source import warn
from ..._ir.avals import scalar_aval
from ..._ir.jaxpr import Jaxpr, only, prune, with_literals
from ..._trace.refs import accesses
from ..._xla.array import Array
from ..._xla.host_values import as_array, as_literal
from ..._xla.placement import aval_of
from ..._xla.program import Lowering, Program, lower
from .bound_call import BoundCall
from .entry import NUMBERS, Consts, Entry
from .options import Options, check_fit
from .references import ReferenceEntry
from .traced import FunctionTrace


class LoweredCall(NamedTuple):
    """A call lowered to text.

    Attributes:
      call: the call, with the values of the closed-over references as its last leaves.
      consts: the closed-over arrays that the program takes before the user's arguments.
      used_indices: indices of the leaves that the program reads.
      donated: indices of the leaves that the user donates.
      integer_dtypes: as of `traced`, for the leaves that are Python integers.
      written: numbers of the references whose new values the program returns after the result: first count those
        among the arguments, then the closed-over ones.
    """

    lowering: Lowering
    traced: FunctionTrace
    call: BoundCall
    consts: list[Array]
    used_indices: list[int]
    donated: frozenset[int]
    integer_dtypes: dict[int, Any]
    written: list[int]

    def entry(self, program: Program) -> Entry:
        """The entry that calls the compiled `program`."""
        consts, keys, out_tree, refs = Consts(self.consts), self.call.keys, self.traced.out_tree, self.traced.refs
        if self.written:
            # A pair of the user's result and the new values of references, which `ReferenceEntry.run` takes apart.
            out_tree = treedef_tuple([out_tree, tree_structure([0] * len(self.written))])
        kind = ReferenceEntry if refs or self.call.ref_indices else Entry
        self._warn_of_unused(program)
        deleted = frozenset(self.used_indices[i - len(self.consts)] for i in program.donated)
        entry = kind(program, consts, self.used_indices, keys, out_tree, deleted, self.integer_dtypes)
        entry.stale_values, entry.captured, entry.written = self.traced.stale_values, refs, self.written
        return entry

    def _warn_of_unused(self, program: Program) -> None:
        useless = sorted(self.lowering.donated - program.donated)
        if useless:
            types = ", ".join(str(aval_of(self.lowering.placements[i])) for i in useless)
            warn(f"Some donated buffers were not usable: {types}.\nNo output can take their place.", UserWarning)


def lower_call(
    call: BoundCall,
    traced: FunctionTrace,
    options: Options,
    donated: frozenset[int],
    repeatable: bool,
    platform: str | None = None,
) -> LoweredCall:
    """The traced call, lowered for the platform of its arguments or, to be read only, for another `platform`.

    Uncommitted scalars among the closed-over arrays become literals of the program, the others its first arguments.
    """
    in_shardings, out_shardings = options.in_shardings, options.out_shardings
    ins = in_shardings.spread((call.args, call.kwargs)) if in_shardings is not None else None
    outs = out_shardings.spread_over(traced.out_tree, traced.out_avals) if out_shardings is not None else None
    if ins is not None and not options.moves_arguments:
        call.check_shardings(ins)
    if outs is not None:
        check_fit("out_shardings", outs, traced.out_avals, traced.result_paths)
    jaxpr, refs, written = traced.closed.jaxpr, traced.refs, list(traced.written)
    if refs:
        call, jaxpr = call.with_values_of(refs), _with_references(jaxpr)
        # References that are passed come before those that are closed over, as in `ReferenceEntry.run`.
        written += [len(call.ref_indices) + refs.index(ref) for ref in accesses(traced.closed.jaxpr).written]
    # The shardings of references are not the user's, who names those of arguments and results.
    ins = None if ins is None else [*ins, *[None] * len(refs)]
    outs = None if outs is None else [*outs, *[None] * len(written)]
    consts, keys = [as_array(c) for c in traced.consts], call.keys
    jaxpr, used = _with_literals(jaxpr, consts, options.keep_unused)
    offset = len(consts)
    used_indices = [i for i in range(len(keys)) if used[offset + i]]
    used_consts = [c for c, u in zip(consts, used, strict=False) if u]
    # The program keeps the outer order: closed-over arrays first, then the leaves. `Entry` and donation count on it.
    jaxpr = jaxpr.replace(invars=only(jaxpr.invars, used))
    # The key of a Python number is its class; the program gets the array that the number becomes.
    leaf_types = [scalar_aval(keys[i]) if keys[i] in NUMBERS else keys[i] for i in used_indices]
    lowering = lower(
        jaxpr,
        jaxpr.name,
        [*[c._placement for c in used_consts], *leaf_types],
        device=options.device,
        donated=frozenset(len(used_consts) + n for n, i in enumerate(used_indices) if i in donated),
        results=[*traced.result_paths(), *["a reference"] * len(written)],
        in_shardings=None if ins is None else [None] * len(used_consts) + [ins[i] for i in used_indices],
        out_shardings=outs,
        repeatable=repeatable,
        num_consts=len(used_consts),
        platform=platform,
    )
    # A NumPy integer keeps its dtype and a Python float is none: only leaves that are Python ints can be too large.
    integer_dtypes = {i: dtype for i, dtype in traced.integer_dtypes.items() if keys[i] is int}
    return LoweredCall(lowering, traced, call, used_consts, used_indices, donated, integer_dtypes, written)


def _with_references(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` with the values of closed-over references as its last inputs, and their new values as last outputs."""
    state = accesses(jaxpr)
    invars, outvars = [*jaxpr.invars, *state.values.values()], [*jaxpr.outvars, *state.written.values()]
    return jaxpr.replace(invars=invars, outvars=outvars, eqns=state.eqns)


def _with_literals(jaxpr: Jaxpr, consts: Sequence[Array], keep_unused: bool) -> tuple[Jaxpr, list[bool]]:
    """`jaxpr` with literals for the scalars among `consts`, its first inputs; and for each input whether the program
    takes it."""
    pruned, used = prune(jaxpr)
    watches_keys = config.current().debug_key_reuse
    if watches_keys:  # what is drawn and not used counts, too
        pruned = jaxpr
    if keep_unused or watches_keys:
        used = [True] * len(used)
    # Reading a scalar waits until it is computed, so those that the program does not use are not read.
    numbers = [as_literal(c) if u else None for c, u in zip(consts, used, strict=False)]
    literals = {v: number for v, number in zip(pruned.invars, numbers, strict=False) if number is not None}
    # Literals take no inputs, but keep their place in `used`, which is indexed as the inputs of `jaxpr` are.
    used = [u and v not in literals for v, u in zip(pruned.invars, used, strict=True)]
    return with_literals(pruned, literals), used
