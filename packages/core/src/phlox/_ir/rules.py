"""The rules of primitives. Each is declared here once, as an annotated attribute of `Rules`.

`bodies` and `rebuild` of operations that hold programs are functions, see `_trace.program_primitive`. Slots of
`Primitive`, names of its arguments, messages for missing rules, docs/primitives.md and the tests of the registry are
made from these declarations. In the calls, ``*args`` are the operands and ``**params`` the parameters of an equation.
"""

# Without `from __future__ import annotations`: the annotations below are read.

from typing import Annotated, Any, NamedTuple


class Rule(NamedTuple):
    """The declaration of a rule.

    Attributes:
      call: the arguments, and what the rule returns.
      meaning: the result, and what is done without the rule.
      missing: message for a primitive without the rule, in JAX's words; ``{}`` is the name of the primitive, and
        ``{rule}`` that of the rule.
      needed_for: the transformation that needs it.
      of_programs: whether only operations that hold programs have it, see `_trace.program_primitive`.
    """

    call: str
    meaning: str
    missing: str = "Rule {rule} for {} not implemented"
    needed_for: str = "this"
    of_programs: bool = False


class Rules:
    """The rules. A rule that a primitive does not state is None."""

    __slots__ = ()

    types: Annotated[
        Any,
        Rule(
            "(*avals, **params) -> aval, or a list of them",
            "the types of the results",
            missing="Abstract evaluation for {} not implemented",
            needed_for="tracing",
        ),
    ]
    lower: Annotated[
        Any,
        Rule(
            "(f, *values, **params) -> value, or a list of them",
            "adds StableHLO lines to the `Function` `f`",
            missing="Lowering rule for primitive {} not found",
            needed_for="compilation",
        ),
    ]
    eager: Annotated[
        Any,
        Rule(
            "(*args, **params) -> outputs",
            "runs the operation when no trace is current; without it a program is compiled",
            missing="Evaluation rule for {} not implemented",
            needed_for="a call outside of transformations",
        ),
    ]
    jvp: Annotated[
        Any,
        Rule(
            "(primals, tangents, **params) -> outputs, output tangents",
            "forward derivative; tangents may be `Zero`, but not all of them",
            missing="Differentiation rule for {} not implemented",
            needed_for="differentiation",
        ),
    ]
    linearize: Annotated[
        Any,
        Rule(
            "(primals, tangents, **params) -> outputs, output tangents",
            "as jvp, but outputs and output tangents are computed by separate operations, see `_transform.linearize`; "
            "without it the jvp rule is used",
        ),
    ]
    spectral: Annotated[
        Any,
        Rule(
            "(operands, out, tangent, **params) -> tangent",
            "the tangent of the one result, with its dependence on eigenvalues and eigenvectors among the operands, "
            "see `_transform.spectra`",
        ),
    ]
    transpose: Annotated[
        Any,
        Rule(
            "(cotangents, *args, **params) -> a cotangent or None for each operand",
            "the transpose in the operands that are `Linear`; cotangents may be `Zero`, but not all of them",
            missing="Transpose rule (for reverse-mode differentiation) for {} not implemented",
            needed_for="reverse-mode differentiation",
        ),
    ]
    batch: Annotated[
        Any,
        Rule(
            "(axis, args, dims, **params) -> outputs, output dims",
            "the operation on a batch; a dim is None for a value without the mapped axis",
            missing="Batching rule for {} not implemented",
            needed_for="vmap",
        ),
    ]
    axes: Annotated[
        Any,
        Rule(
            "(params) -> names",
            "the mapped axes that a collective works over, or those inside of programs",
        ),
    ]
    extend: Annotated[
        Any,
        Rule(
            "(params, trailing, *avals) -> params",
            "parameters of the same operation on arrays with the axes `trailing` appended, as the physical arrays of "
            "PRNG keys have",
            needed_for="an array of PRNG keys",
        ),
    ]
    sharding: Annotated[
        Any,
        Rule(
            "(outs, *avals, **params) -> entries, or a list of them",
            "for each axis of a result the mesh axes that it is split over, where operands are split over explicit "
            "axes, see `_ir.sharding_types`; `outs` is what `types` returned. Without it the operation is elementwise. "
            "`sharding_in_types`: the rule `types` already sets it",
        ),
    ]
    vma: Annotated[
        Any,
        Rule(
            "(avals, params) -> mesh axes or None",
            "the mesh axes along which the results vary, where that is tracked (inside of shard_map); None: the rule "
            "`types` already sets it. Without it they vary along all axes along which an operand does",
        ),
    ]
    effects: Annotated[Any, Rule("(params) -> effects", "see `_ir.effects`; of programs: those of their operations")]
    keys: Annotated[
        Any,
        Rule(
            "(eqn, uses_of) -> KeyUses",
            "how PRNG keys are used; `uses_of(program)` returns the uses in a program. Without it they are the uses in "
            "the parameter `program`; without a program all key operands are used up, and no result is a new key",
        ),
    ]
    pad: Annotated[
        Any,
        Rule(
            "(padding, eqn, *args) -> result, or a list of them",
            "the results for operands that are longer than the symbolic lengths in their types say, see "
            "`_transform.padding`. Without it the parameter `program` is padded and run, or the operation refused",
        ),
    ]
    checked: Annotated[
        Any,
        Rule(
            "(checks, *args, **params) -> None, or a list of outputs",
            "adds to `checks`, see `_api.checkify.programs`, the conditions on the operands: indices inside the array, "
            "a divisor that is not zero. Returns outputs if the operation runs in another way under checks. Without "
            "it programs get checks inside",
        ),
    ]
    expand: Annotated[
        Any,
        Rule("(*args, **params) -> outputs", "the same operation by simpler ones, which recordings show"),
    ]
    show: Annotated[Any, Rule("(eqn, printer) -> params", "the parameters that a printed Jaxpr shows, in order")]

    steps: Annotated[
        Any,
        Rule(
            "(*args, **params) -> generator",
            "yields the programs that the operation runs, in order, as (program, arguments, name of the step), and is "
            "sent the results of each",
            of_programs=True,
        ),
    ]
    unfold: Annotated[
        Any,
        Rule(
            "(*args, **params) -> outputs",
            "runs the operations of a call one by one under the current trace",
            of_programs=True,
        ),
    ]
    expose: Annotated[
        Any,
        Rule(
            "(*args, **params) -> outputs of each equation",
            "for a program that is mapped over devices: the results of each of its equations as global arrays, with a "
            "leading axis over devices",
            of_programs=True,
        ),
    ]
    drop_unused: Annotated[
        Any,
        Rule(
            "(eqn, used) -> eqn",
            "the equation, or a cheaper one that computes the used results only",
            of_programs=True,
        ),
    ]
    dependent: Annotated[
        Any,
        Rule(
            "(operands, params) -> flags",
            "for each result, whether it depends on the operands that are marked. Without it all results depend on "
            "all operands",
            of_programs=True,
        ),
    ]
    separate: Annotated[
        Any,
        Rule(
            "(eqn, operands) -> eqn or None, eqn",
            "an equation for what does not depend on the marked operands, and one for the rest, which may take results "
            "of the first. Without it `drop_unused` makes both, and the second computes anew what it needs",
            of_programs=True,
        ),
    ]
    divide: Annotated[
        Any,
        Rule(
            "(eqn, policy) -> eqn, eqn, variables",
            "an equation that also returns the inner values which the policy of `checkpoint` saves; one that takes "
            "these as further operands and recomputes the other results; the variables of the saved values",
            of_programs=True,
        ),
    ]
    masked: Annotated[
        Any,
        Rule(
            "(mask, *args, **params) -> outputs",
            "the operation with loops that stop where the mask, a bool scalar, is false. Without it the programs are "
            "masked",
            of_programs=True,
        ),
    ]


#: the declarations, by the names of the rules
RULES: dict[str, Rule] = {name: rule.__metadata__[0] for name, rule in Rules.__annotations__.items()}
