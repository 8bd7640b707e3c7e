"""`Runner`, the compiled program of a bucket, and `Plan`, how calls of one size run it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._base import config
from ..._base.pytree import PyTreeDef
from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import hoisted
from ..._ir.substitution import aval_for
from ..._ops.control.host_padding import cutter, length_array, padder
from ..._ops.control.padded_call import Lengths, padded_program
from ..._trace.interpret import eval_jaxpr
from ..._xla.array import ArrayImpl
from ..jit.bound_call import BoundCall
from ..jit.calling import function_of
from ..jit.entry import aval_of_leaf
from ..jit.inlining import Inline
from ..jit.jit_function import JitFunction
from ..jit.options import Options, Prefix

if TYPE_CHECKING:
    from .sized_function import Program, Trial


class Figures(NamedTuple):
    """Calls of a program, the elements of their arguments and results, and those of the padded ones."""

    calls: int
    elements: int
    padded_elements: int

    @property
    def padding(self) -> float:
        """The share of elements that are padding."""
        return 1 - self.elements / self.padded_elements if self.padded_elements else 0.0


class Runner:
    """The program of a bucket, compiled with the options of `jit`.

    Its arguments are the true lengths and the padded leaves of a call.

    Attributes:
      ranges: the range of each name of a size.
      function: the jitted function of padded arrays.
      length_avals, in_avals: the types of the true lengths, and the padded types of the leaves.
      out_avals, padded_out_avals: the types of the results, with symbolic lengths and padded.
      donated: the leaves that the user donates.
      plans: the plans made from it, which count their calls.
    """

    def __init__(self, program: Program, options: Options, call: BoundCall, donated: frozenset[int]):
        closed, self.ranges = program.closed, program.ranges
        self.out_tree = program.out_tree
        padded = padded_program(hoisted(closed), self.ranges)
        count, consts = len(self.ranges), closed.consts

        def body(*values: Any) -> list[Any]:
            operands = [*values[:count], *consts, *values[count:]]
            return eval_jaxpr(padded.jaxpr, padded.consts, *operands)

        body.__name__ = body.__qualname__ = closed.jaxpr.name
        self.length_avals: list[ShapedArray] = padded.in_avals[:count]
        self.in_avals: list[ShapedArray] = padded.in_avals[count + len(consts) :]
        self.out_avals: list[ShapedArray] = closed.out_avals
        self.padded_out_avals: list[ShapedArray] = padded.out_avals
        self.donated = donated
        self.function = function_of(JitFunction(body, self._options(options, call, padded.out_avals)))
        self.plans: list[Plan] = []

    def _options(self, options: Options, call: BoundCall, out_avals: Sequence[ShapedArray]) -> Options:
        """The options of the function of padded arrays."""
        count = len(self.ranges)
        ins, outs = options.in_shardings, options.out_shardings
        if ins is not None:
            # The lengths come first among the arguments, and lie wherever new arrays do.
            ins = Prefix.of("in_shardings", ((*[None] * count, *ins.spread((call.args, call.kwargs))), None))
        if outs is not None:
            outs = Prefix.of("out_shardings", outs.spread_over(self.out_tree, out_avals))
        return options._replace(
            static_argnums=(),
            static_argnames=(),
            donate_argnums=tuple(count + i for i in sorted(self.donated)),
            donate_argnames=(),
            inline=Inline.AUTO,
            in_shardings=ins,
            out_shardings=outs,
            # Numbers of leaves: names of the user's parameters mean nothing to the function of leaves.
            verbatim=("donate",),
        )

    def plan(self, lengths: Lengths, keys: Sequence[Any], trial: Trial | None) -> Plan:
        """How calls with arguments of these keys run."""
        plan = Plan(self, lengths, keys, self.function, trial)
        self.plans.append(plan)
        return plan

    def out_types(self, lengths: Lengths) -> list[ShapedArray]:
        """The types of results of calls with these lengths."""
        values = dict(lengths)
        return [aval_for(a, values) for a in self.out_avals]

    def label(self) -> str:
        """The sizes of the calls: ``n 33–64``."""
        texts = [f"{name} {low}–{high}" if low < high else f"{name} {high}" for name, low, high in self.ranges]
        return ", ".join(texts)

    def figures(self) -> Figures:
        """The calls up to now."""
        plans = list(self.plans)
        return Figures(
            sum(plan.calls for plan in plans),
            sum(plan.calls * plan.elements[0] for plan in plans),
            sum(plan.calls * plan.elements[1] for plan in plans),
        )


class Plan:
    """How calls with arguments of some keys run: how their arguments are padded, and their results cut.

    Attributes:
      numbers: the true lengths, as arrays.
      pads: a function for each leaf that is padded, and the number of its operand.
      shapes: the true shape of each result.
      cuts: a function for each result that is cut, and its number; None before the first call.
      elements: the numbers of elements of arguments and results, of true and of padded ones.
      calls: how often it ran.
      trial: the count of calls until their bucket gets a program of its own; None if this is it.
    """

    __slots__ = (
        "_settings", "_tree", "calls", "cuts", "donated", "elements", "execute", "numbers", "pads", "shapes", "trial",
    )  # fmt: skip

    def __init__(
        self,
        runner: Runner,
        lengths: Lengths,
        keys: Sequence[Any],
        execute: Callable[..., list[Any]],
        trial: Trial | None = None,
    ):
        self.execute = execute
        self.trial = trial
        self._tree: PyTreeDef = runner.out_tree
        # Cached functions on the host depend on these settings.
        self._settings = settings = config.current().execution_fingerprint
        # The program takes the true lengths as arguments, which are the same in all calls of this plan.
        self.numbers = [length_array(n, settings) for _, n in lengths]
        shapes, padded = [aval_of_leaf(key).shape for key in keys], [a.shape for a in runner.in_avals]
        longer = [i for i, (shape, other) in enumerate(zip(shapes, padded, strict=True)) if shape != other]
        self.pads = [(len(lengths) + i, padder(keys[i], runner.in_avals[i], settings)) for i in longer]
        self.donated = [i for i in longer if i in runner.donated]
        self.shapes = [a.shape for a in runner.out_types(lengths)]
        self.cuts: list[tuple[int, Callable[[Any], Any]]] | None = None
        self.elements = _count([*shapes, *self.shapes]), _count([*padded, *[a.shape for a in runner.padded_out_avals]])
        self.calls = 0

    def run(self, leaves: Sequence[Any]) -> Any:
        """The user's result for the leaves of a call."""
        self.calls += 1
        if self.trial is not None:
            self.trial.count()
        operands = [*self.numbers, *leaves]
        for i, pad in self.pads:
            operands[i] = pad(operands[i])
        results = self.execute(*operands)
        # The padded copies are donated to the program; the user's own arrays are deleted here, as `jit` does.
        for i in self.donated:
            if type(leaves[i]) is ArrayImpl:
                leaves[i].delete()
        # Known only after the first call: results have keys that depend on the program.
        if self.cuts is None:
            self.cuts = [
                (i, cutter(x._placement, shape, self._settings))
                for i, (x, shape) in enumerate(zip(results, self.shapes, strict=True))
                if x.shape != shape
            ]
        for i, cut in self.cuts:
            results[i] = cut(results[i])
        return self._tree.unflatten(results)


def _count(shapes: Sequence[Sequence[Any]]) -> int:
    """The number of elements of arrays of these shapes."""
    return sum(map(math.prod, shapes))
