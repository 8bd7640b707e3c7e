"""Programs as data: what `random_grammar` draws and `random_programs` runs, prints and makes smaller.

A program is a function of small arrays and trees of them, and a stack of transformations around it. Every variable has
a type, so a statement can be taken out: a constant of its type stands in for it.
"""

from __future__ import annotations

import copy
import dataclasses
import random
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

NARROW = ("float16", "bfloat16")
REAL = (*NARROW, "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGER = ("uint8", "int32", "int64", "uint32", "uint64")


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


@dataclasses.dataclass(frozen=True)
class Leaf:
    """The type of an array; `python` is a Python number. `weak` is what the generator believes."""

    shape: tuple[int, ...]
    dtype: str
    weak: bool = False
    python: bool = False


#: A Leaf, None, or a tuple, list or dict of types.
Type = Any


def leaves_of(type_: Type, path: str = "") -> Iterator[tuple[str, Leaf]]:
    """(how to get there, type) of all leaves."""
    if isinstance(type_, Leaf):
        yield path, type_
    elif isinstance(type_, dict):
        for key, value in type_.items():
            yield from leaves_of(value, f"{path}[{key!r}]")
    elif type_ is not None:
        for i, value in enumerate(type_):
            yield from leaves_of(value, f"{path}[{i}]")


def map_type(fun: Callable[[Leaf], Any], type_: Type) -> Any:
    if isinstance(type_, Leaf):
        return fun(type_)
    if isinstance(type_, dict):
        return {key: map_type(fun, value) for key, value in type_.items()}
    return None if type_ is None else type(type_)(map_type(fun, value) for value in type_)


def tree_text(tree: Any) -> str:
    """Source of a tree whose leaves are source."""
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key!r}: {tree_text(value)}" for key, value in tree.items()) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(map(tree_text, tree)) + "]"
    if isinstance(tree, tuple):
        return "(" + "".join(tree_text(value) + ", " for value in tree).strip() + ")"
    return str(tree)


# --- programs as data --------------------------------------------------------------------------------------


@dataclasses.dataclass
class Block:
    """A function definition."""

    name: str
    params: list[str]
    body: list[Statement]
    result: str
    decorator: str = ""

    def lines(self) -> list[str]:
        inner = [line for statement in self.body for line in statement.lines()]
        text = [f"def {self.name}({', '.join(self.params)}):", *("    " + line for line in inner)]
        return [*([self.decorator] if self.decorator else []), *text, f"    return {self.result}"]


@dataclasses.dataclass
class Statement:
    """``name = text``, after the functions that the text calls."""

    name: str
    type: Type
    text: str
    blocks: list[Block] = dataclasses.field(default_factory=list)

    def lines(self) -> list[str]:
        return [*(line for block in self.blocks for line in block.lines()), f"{self.name} = {self.text}"]


@dataclasses.dataclass
class Outer:
    """A transformation: source with ``{f}`` for the function, and the mapped axis of each argument if it maps."""

    kind: str
    text: str
    axes: tuple[int | None, ...] | None = None
    size: int = 0

    def lift(self, types: list[Type]) -> list[Type]:
        """The types of arguments of the transformed function."""
        if self.axes is None:
            return types

        def wider(leaf: Leaf, axis: int) -> Leaf:
            at = axis if axis >= 0 else len(leaf.shape) + 1 + axis
            return Leaf((*leaf.shape[:at], self.size, *leaf.shape[at:]), leaf.dtype)

        pairs = zip(types, self.axes, strict=True)
        return [t if a is None else map_type(lambda leaf, a=a: wider(leaf, a), t) for t, a in pairs]


@dataclasses.dataclass
class Program:
    seed: int
    x64: bool
    args: list[Type]
    main: Block
    outers: list[Outer]

    def copy(self) -> Program:
        return copy.deepcopy(self)

    def arg_texts(self) -> list[str]:
        """The arguments of the outermost function, the same in every run."""
        types = self.args
        for outer in self.outers:
            types = outer.lift(types)
        values = random.Random(f"values {self.seed}")
        return [tree_text(map_type(lambda leaf: value_text(values, leaf), t)) for t in types]

    def source(self) -> str:
        """The whole program: a function of a library."""
        lines = [*self.main.lines()]
        name = self.main.name
        for i, outer in enumerate(self.outers):
            lines.append(f"g{i} = {outer.text.format(f=name)}")
            name = f"g{i}"
        lines.append(f"return {name}({', '.join(self.arg_texts())})")
        text = "\n".join(lines)
        used: list[str] = []
        for helper in HELPERS:
            if helper.split("(")[0].removeprefix("def ") + "(" in "\n".join([text, *used]):
                used = [*helper.splitlines(), *used]
        head = [f"# seed {self.seed}, enable_x64={self.x64}", "def program(jax):", "    jnp, lax = jax.numpy, jax.lax"]
        return "\n".join([*head, *("    " + line for line in (*used, *lines))]) + "\n"


#: What programs may call; each calls only those below it.
HELPERS = (
    """\
def over_vjp(f):
    def pulled(*args):
        out, pull = jax.vjp(f, *args)
        return out, pull(tangents(out))
    return pulled""",
    """\
def over_linearize(f):
    def pushed(*args):
        out, push = jax.linearize(f, *args)
        return out, push(*tangents(args))
    return pushed""",
    """\
def over_scan(f, axes):
    def scanned(*args):
        def step(i, xs):
            xs = iter(xs)
            return i + 1, f(*(a if axis is None else next(xs) for a, axis in zip(args, axes)))
        return lax.scan(step, 0, [a for a, axis in zip(args, axes) if axis is not None])
    return scanned""",
    """\
def tangents(tree):
    def tangent(x):
        if not jnp.issubdtype(jnp.result_type(x), jnp.inexact):
            return np.zeros(np.shape(x), jax.dtypes.float0)
        return 0.3 - 0.7 * x
    return jax.tree.map(tangent, tree)""",
    """\
def total(tree):
    return sum((jnp.sum(x * jnp.asarray(0.7, x.dtype)) for x in reals(tree)), 0.0)""",
    """\
def reals(tree):
    return [jnp.real(x) for x in jax.tree.leaves(tree) if jnp.issubdtype(jnp.result_type(x), jnp.inexact)]""",
)


def value_text(values: random.Random, leaf: Leaf) -> str:
    """Source of a random value."""

    def one() -> Any:
        if leaf.dtype == "bool":
            return values.random() < 0.5
        if leaf.dtype in INTEGER:
            return values.randint(0 if leaf.dtype.startswith("u") else -3, 4)
        real = round(values.uniform(-1.5, 1.5), 2)
        return complex(real, round(values.uniform(-1.5, 1.5), 2)) if leaf.dtype in COMPLEX else real

    if leaf.python:
        return repr(one())
    count = int(np.prod(leaf.shape))
    nested = np.array([one() for _ in range(count)], object).reshape(leaf.shape).tolist()
    if not count:
        return f"np.zeros({leaf.shape}, {leaf.dtype!r})"
    return f"np.array({nested}, {dtype_text(leaf.dtype)})"


def dtype_text(name: str) -> str:
    return "bfloat16" if name == "bfloat16" else repr(name)


def constant_text(type_: Type) -> str:
    """Source of a value of this type, for statements that the shrinker takes out."""

    def constant(leaf: Leaf) -> str:
        value = "True" if leaf.dtype == "bool" else "1" if leaf.dtype in INTEGER else "0.5"
        return value if leaf.python else f"jnp.full({leaf.shape}, {value}, {dtype_text(leaf.dtype)})"

    return tree_text(map_type(constant, type_))
