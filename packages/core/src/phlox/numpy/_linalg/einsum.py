"""`einsum`: products and sums over named axes, in the contraction order that opt_einsum finds.

opt_einsum is imported only for three operands or more. Contraction orders are cached.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..._api.devices.out_sharding import OutSharding, compute_with_sharding
from ..._api.jit.jit import jit
from ..._base.errors import ArgumentError, ShapeError
from ..._ir import dtypes
from ..._ir.dimensions import is_symbolic
from ..._ir.sharding_types import entries_of
from ..._operands.checks import check, refuse_out, type_of
from ..._operands.products import contract
from ..._operands.promotion import promote_dtypes, to_dtype
from ..._ops.linalg.dot import PrecisionLike
from ..._ops.structure.shape import transpose as transpose_op
from ...typing import Array, DTypeLike
from .._manipulation.shapes import squeeze
from .._statistics.reductions import sum
from .products import mask_to_diagonal

#: for each step the positions of the operands to contract; the result is appended to the list of operands
Path = tuple[tuple[int, ...], ...]


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: str | bool | list[tuple[int, ...]] = "auto",
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable[..., Any] | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Einstein's summation over named axes (as ``numpy.einsum``): ``einsum("ij,jk->ik", a, b)``.

    The axes may be given as lists of labels after each operand too: ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.

    Args:
      subscripts: comma-separated subscripts, with a letter for each axis of each operand, then "->" and the letters of
        the result; without "->", the result has the letters that occur once, in alphabetical order. Axes whose letter
        is missing in the result are summed over; a letter repeated in one operand takes its diagonal. An ellipsis
        stands for axes that broadcast.
      *operands: arrays.
      out: not supported, must be None.
      optimize: order of the contractions: "auto" or another strategy of the library opt_einsum, True for the optimal
        order, False for pairs from left to right, or a path that `einsum_path` returned. A step of three operands or
        more is contracted by pairs too.
      precision, preferred_element_type: as for `dot`.
      _dot_general: function that is called in place of `lax.dot_general` where two operands are contracted.
      out_sharding: a `NamedSharding`, or a `PartitionSpec` of the mesh of the context, for the result; with None the
        operands and the compiler determine it.

    Returns:
      An array of the promoted dtype or of `preferred_element_type`.

    Raises:
      ShapeError: subscripts do not match the operands.
      ArgumentError: labels cannot be compared with each other.
      UnsupportedError: `out` is not None.

    >>> jnp.einsum("ij,j->i", jnp.eye(2), jnp.array([3.0, 4.0]))
    Array([3., 4.], dtype=float32)
    """
    refuse_out("einsum", out)
    if not isinstance(subscripts, str):
        subscripts, operands = _named_axes((subscripts, *operands))
    arrays = check("einsum", *operands)
    shapes = tuple(type_of(x).shape for x in arrays)
    inputs, output = _parse(subscripts.replace(" ", ""), [len(shape) for shape in shapes])
    path: Any = optimize if isinstance(optimize, str | bool | None) else _numbers(optimize)
    compute = functools.partial(
        _einsum,
        inputs=inputs,
        output=output,
        path=_path(inputs, output, shapes, path),
        precision=precision,
        preferred=dtypes.optional_dtype(preferred_element_type, "einsum"),
        dot=_dot_general,
    )
    if out_sharding is None:
        return compute(arrays)
    combines = "sum" if _are_split_alike(arrays, inputs) else None
    return compute_with_sharding("einsum", lambda *arrays: compute(arrays), arrays, out_sharding, combines)


def _are_split_alike(arrays: Sequence[Any], inputs: Sequence[str]) -> bool:
    """Whether each mesh axis splits one letter in all operands, and no diagonal.

    Else the products of parts are not the parts of the product: in "i,j->" the sum of i is times that of all of j.
    """
    letters: dict[Any, str] = {}
    for x, term in zip(arrays, inputs, strict=True):
        for letter, entry in zip(term, entries_of(type_of(x)), strict=True):
            if any(letters.setdefault(axis, letter) != letter or term.count(letter) > 1 for axis in entry):
                return False
    return True


def einsum_path(
    subscripts: Any, /, *operands: Any, optimize: bool | str | list[tuple[int, ...]] = "auto"
) -> tuple[list[tuple[int, ...]], Any]:
    """The order in which `einsum` would contract, and a report that can be printed (as ``numpy.einsum_path``).

    Args:
      subscripts, *operands: as for `einsum`.
      optimize: strategy that determines the order, as for `einsum`.

    Returns:
      A list with the positions of the operands of each contraction, which `einsum` takes as `optimize`, and the report.
      The result of a contraction goes to the end of the list of operands.

    >>> a, b, c = jnp.ones((2, 9)), jnp.ones((9, 50)), jnp.ones((50, 1))
    >>> jnp.einsum_path("ij,jk,kl", a, b, c, optimize="optimal")[0]
    [(1, 2), (0, 1)]
    """
    from opt_einsum import contract_path

    count = len(operands) if isinstance(subscripts, str) else (len(operands) + 1) // 2
    return contract_path(subscripts, *operands, optimize=_strategy(optimize, count))


def _numbers(path: Sequence[Any]) -> Path:
    """A path without the word that NumPy's `einsum_path` begins it with."""
    return tuple(map(tuple, path[1:] if path and path[0] == "einsum_path" else path))


def _strategy(optimize: Any, count: int) -> Any:
    """The option `optimize` as opt_einsum takes it, for `count` operands."""
    # JAX's path. A result goes to the end of the list, so that (0, 1) joins pairs and does not go from left to right.
    if optimize is False or optimize is None:
        return [(0, 1)] * (count - 1) or [(0,)]
    return "optimal" if optimize is True else optimize


@functools.lru_cache(4096)
def _path(inputs: tuple[str, ...], output: str, shapes: tuple[Any, ...], optimize: Any) -> Path:
    if len(inputs) < 3 and isinstance(optimize, str | bool | None):
        return (tuple(range(len(inputs))),)
    from opt_einsum import contract_path

    strategy = list(optimize) if isinstance(optimize, tuple) else _strategy(optimize, len(inputs))
    # The sizes of symbolic dimensions are not known: they are taken as large.
    shapes = tuple(tuple(1000 if is_symbolic(n) else n for n in shape) for shape in shapes)
    path, _ = contract_path(",".join(inputs) + "->" + output, *shapes, shapes=True, optimize=strategy)
    return _by_pairs(path, inputs, output, shapes)


def _by_pairs(path: Sequence[Any], inputs: Sequence[str], output: str, shapes: Sequence[Any]) -> Path:
    """The path with each step of three operands or more replaced by a path of pairs."""
    terms = dict(enumerate(zip(inputs, shapes, strict=True)))  # by an operand's number, in the order of the operands
    steps: list[tuple[int, ...]] = []

    def contract_next(chosen: Sequence[int]) -> int:
        """Appends a step; returns the number of its result."""
        numbers = list(terms)
        steps.append(tuple(numbers.index(k) for k in chosen))
        parts = [terms.pop(k) for k in chosen]
        sizes: dict[str, int] = {}
        for letters, shape in parts:
            for c, n in zip(letters, shape, strict=True):
                sizes[c] = max(n, sizes.get(c, n))
        later = set(output).union(*(letters for letters, _ in terms.values()))
        remaining = [c for c in sizes if c in later]
        terms[numbers[-1] + 1] = "".join(remaining), tuple(sizes[c] for c in remaining)
        return numbers[-1] + 1

    for step in path:
        numbers = list(terms)
        chosen = [numbers[k] for k in sorted(step)]
        if len(chosen) > 2:
            parts = [terms[k] for k in chosen]
            others = [letters for k, (letters, _) in terms.items() if k not in chosen]
            later = set(output).union(*others)
            result = "".join(c for c in dict.fromkeys("".join(letters for letters, _ in parts)) if c in later)
            for pair in _path(tuple(p[0] for p in parts), result, tuple(p[1] for p in parts), "auto"):
                picked = [chosen[k] for k in sorted(pair)]
                chosen = [k for k in chosen if k not in picked] + [contract_next(picked)]
        else:
            contract_next(chosen)
    return tuple(steps)


def _named_axes(operands: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """Subscripts and operands of a call that alternates operands and lists of the labels of their axes."""
    pairs = len(operands) // 2
    lists = [operands[2 * i + 1] for i in range(pairs)] + list(operands[2 * pairs :])
    try:
        # In their order, which is that of the axes of the result if there is no list for it.
        labels = sorted({label for axes in lists for label in axes if label is not Ellipsis})
    except TypeError as error:
        raise ArgumentError(
            f"einsum: the labels of axes are hashable and can be compared, unlike those of {lists}",
            instead='only numbers, as in einsum(a, [0, 1], b, [1, 2]), or only text: einsum(a, ["i", "j"])',
        ) from error
    letters = {label: chr(ord("a") + i) for i, label in enumerate(labels)} | {Ellipsis: "..."}
    terms = ["".join(letters[label] for label in axes) for axes in lists]
    arrow = "->" + terms.pop() if len(operands) % 2 else ""
    return ",".join(terms) + arrow, tuple(operands[2 * i] for i in range(pairs))


def _parse(subscripts: str, ranks: Sequence[int]) -> tuple[tuple[str, ...], str]:
    """The letters of each operand and of the result; axes of an ellipsis get capital Greek letters."""
    left, arrow, right = subscripts.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ShapeError(f"einsum: {subscripts!r} names {len(terms)} operands, got {len(ranks)}")
    widths = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    for term, rank, width in zip(terms, ranks, widths, strict=True):
        if width < 0 or (width and "..." not in term):
            raise ShapeError(f"einsum: {term!r} does not fit an operand with {rank} axes", subscripts=subscripts)
    dots = [chr(ord("Α") + i) for i in range(max(widths, default=0))]
    spelled = tuple(
        term.replace("...", "".join(dots[len(dots) - width :])) for term, width in zip(terms, widths, strict=True)
    )
    letters = "".join(spelled)
    if arrow:
        output = right.replace("...", "".join(dots))
        if any(c not in letters for c in output) or len(set(output)) != len(output):
            raise ShapeError(f"einsum: the result {output!r} must name axes of the operands, each once")
        return spelled, output
    # NumPy's rule without an arrow: letters that occur once, in alphabetical order
    once = sorted(c for c in set(letters) if letters.count(c) == 1 and c not in dots)
    return spelled, "".join([*dots, *once])


@functools.partial(jit, inline=True, static_argnames=("inputs", "output", "path", "precision", "preferred", "dot"))
def _einsum(arrays: Any, inputs: Any, output: str, path: Path, precision: Any, preferred: Any, dot: Any) -> Any:
    terms = list(zip(promote_dtypes(*arrays), inputs, strict=True))
    for i, step in enumerate(path):
        # From the last one on, so that the positions of the others stay
        chosen = [terms.pop(k) for k in sorted(step, reverse=True)][::-1]
        later = set(output).union(*(letters for _, letters in terms))
        a, la = chosen[0]
        a, la = _simplify(a, la, later.union(*(letters for _, letters in chosen[1:])))
        if len(chosen) == 2:
            b, lb = _simplify(*chosen[1], later | set(la))
            # What only `b` kept in `a` may have been summed in `b` meanwhile.
            a, la = _simplify(a, la, later | set(lb))
            order = output if i == len(path) - 1 else "".join(c for c in dict.fromkeys(lb + la) if c in later)
            a, la = _pair(a, la, b, lb, order, precision, preferred, dot)
        terms.append((a, la))
    ((a, la),) = terms
    out = _in_order(a, la, output)
    is_weak = preferred is None and all(type_of(x).weak_type for x in arrays)
    return to_dtype(out, type_of(out).dtype if preferred is None else preferred, is_weak)


def _in_order(a: Any, letters: str, order: str) -> Any:
    return a if letters == order else transpose_op(a, permutation=tuple(letters.index(c) for c in order))


def _simplify(a: Any, letters: str, later: set[str]) -> tuple[Any, str]:
    """Takes diagonals for repeated letters, and sums over letters that are not among `later`."""
    for c in dict.fromkeys(letters):
        while letters.count(c) > 1:
            i = letters.index(c)
            j = letters.index(c, i + 1)
            n, m = type_of(a).shape[i], type_of(a).shape[j]
            if n != m:
                raise ShapeError(f"einsum: axis {c!r} has the lengths {n} and {m} in {type_of(a).short}")
            # By a selection, because infinity times 0 is nan
            a = sum(mask_to_diagonal(a, i, j), j, type_of(a).dtype)
            letters = letters[:j] + letters[j + 1 :]
    gone = tuple(i for i, c in enumerate(letters) if c not in later)
    if gone:
        a = sum(a, gone, type_of(a).dtype)
        letters = "".join(c for c in letters if c in later)
    return a, letters


def _pair(a: Any, la: str, b: Any, lb: str, order: str, precision: Any, preferred: Any, dot: Any) -> tuple[Any, str]:
    """The contraction of two operands, with the axes of the result in this order; letters of both are batches if kept.

    The operands are exchanged if the result then needs no transpose.
    """
    sizes = dict(zip(la, type_of(a).shape, strict=True))
    for c, n in zip(lb, type_of(b).shape, strict=True):
        if c in sizes and sizes[c] != n and 1 not in (sizes[c], n):
            raise ShapeError(
                f"einsum: axis {c!r} has length {sizes[c]} in {type_of(a).short} and {n} in {type_of(b).short}"
            )
    # An axis of length one broadcasts against a longer one: it is dropped from its operand.
    for c in set(la) & set(lb):
        na, nb = type_of(a).shape[la.index(c)], type_of(b).shape[lb.index(c)]
        if na != nb and na == 1:
            a, la = squeeze(a, la.index(c)), la.replace(c, "")
        elif na != nb:
            b, lb = squeeze(b, lb.index(c)), lb.replace(c, "")
    a, la = _simplify(a, la, {*order, *lb})
    b, lb = _simplify(b, lb, {*order, *la})
    batch = [c for c in order if c in la and c in lb]
    summed = [c for c in la if c in lb and c not in order]
    rest_a, rest_b = ("".join(c for c in letters if c not in batch and c not in summed) for letters in (la, lb))
    # A product has the free axes of its first operand first: exchanged, it may need no transpose.
    if "".join(batch) + rest_a + rest_b != order:
        a, la, rest_a, b, lb, rest_b = b, lb, rest_b, a, la, rest_a
    axes = tuple(la.index(c) for c in summed), tuple(lb.index(c) for c in summed)
    batches = tuple(la.index(c) for c in batch), tuple(lb.index(c) for c in batch)
    if dot is None:
        out = contract(a, b, axes, batches, precision, preferred)
    else:
        dtype = type_of(a).dtype if preferred is None else preferred
        out = dot(a, b, (axes, batches), precision, preferred_element_type=dtype)
    out = to_dtype(out, type_of(a).dtype) if preferred is None else out
    return _in_order(out, "".join(batch) + rest_a + rest_b, order), order
