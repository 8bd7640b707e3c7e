"""Draws random programs for `random_programs`: nested control flow on trees of mixed dtypes, under transformations.

Every variable has a known type, so that nearly all programs are accepted. Values stay small (products go through tanh
and the like), and steps (comparisons, conversions to int) are taken of wide floats alone, so that two right answers
lie close together.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from random_program_data import (
    COMPLEX,
    INTEGER,
    NARROW,
    REAL,
    Block,
    Leaf,
    Outer,
    Program,
    Statement,
    Type,
    dtype_text,
    leaves_of,
    map_type,
    tree_text,
)

LARGEST = 24  # elements of an array

# --- operations --------------------------------------------------------------------------------------------

SMOOTH = """jnp.sin({x}); jnp.cos({x}); jnp.tanh({x}); jnp.exp(-{x} * {x}); jnp.sqrt(1 + {x} * {x}); -{x}; 0.5 * {x}
jnp.log1p(jnp.square({x})); jax.nn.sigmoid({x}); {x} / (1 + {x} ** 2); jnp.abs({x}); jnp.arctan({x}); 1.5 - {x}
jax.nn.softplus({x}); jax.nn.relu({x}); jax.nn.silu({x}); lax.stop_gradient({x}); jnp.clip({x}, -0.5, 0.5)
lax.rsqrt(2 + jnp.cos({x})); jnp.expm1(jnp.minimum({x}, 1)); jnp.power(jnp.abs({x}) + 0.5, 1.5); jax.nn.gelu({x})
lax.integer_pow({x}, 3) / 9; jax.nn.softmax({x}); lax.logistic({x}); jnp.sinh({x}) / 4; lax.erf({x}); jnp.cbrt({x} + 4)
jax.nn.elu({x}); jnp.log(jnp.abs({x}) + 0.5); jnp.float_power(2.0, -jnp.square({x})); jnp.nan_to_num({x}); +{x}
jnp.hypot({x}, 1.0); jnp.logaddexp({x}, 0.0); jax.nn.log_softmax({x} + 1); jnp.reciprocal(2 + jnp.sin({x}))"""
SMOOTH_COMPLEX = """jnp.sin({x} / 4); jnp.conj({x}); -{x}; {x} * 0.5; jnp.exp(1j * jnp.real({x})); {x} / (1 + jnp.abs({x}))
jnp.tanh(jnp.real({x})) + 1j * jnp.sin(jnp.imag({x})); 1j * {x}; lax.stop_gradient({x})"""
ON_INTS = """-{x}; jnp.abs({x}) % 5; {x} // 2; {x} % 3; {x} ^ 1; ~{x} & 7; ({x} << 1) % 16; jnp.sign({x}); {x} + 1
jnp.clip({x}, 0, 3); {x} * 2 % 7; jnp.where({x} > 1, {x}, 0); {x} | 1; lax.population_count({x}); {x} ** 2 % 5"""
ON_BOOLS = """~{x}; {x} ^ True; jnp.logical_not({x}); {x} & {x}"""
SHAPED = """jnp.transpose({x}); jnp.reshape({x}, -1); {x}[..., None]; {x}[None]; {x}[::-1]; {x}[1:]; {x}[:-1]; {x}[-1]; {x}[0]
{x}[:, 1]; {x}[..., ::2]; jnp.flip({x}, {a}); jnp.roll({x}, 1, {a}); jnp.squeeze({x}); jnp.expand_dims({x}, {a}); {x}.T
jnp.broadcast_to({x}, (2, *{x}.shape)); jnp.stack([{x}, {x}], {a}); jnp.concatenate([{x}, {x}], {a}); jnp.tile({x}, 2)
jnp.repeat({x}, 2, axis={a}); jnp.swapaxes({x}, 0, -1); jnp.moveaxis({x}, 0, -1); jnp.atleast_2d({x}); jnp.pad({x}, 1)
jnp.diagonal({x}); jnp.triu(jnp.atleast_2d({x})); jnp.take({x}, np.array([1, 0, 0]), axis={a}, mode='clip'); {x}[np.array([0, 1, 0])]
jnp.diff({x}, axis={a}); {x}.reshape(-1, 1); {x}.ravel()[:2]; jnp.rot90({x}); {x}[np.array([True, False])]; {x}[-2:, 0]
{x}[np.array([[0], [1]]), np.array([1, 0])]; {x}.at[0].set(1); {x}.at[-1].add({x}[0]); {x}.at[1:].multiply({x}[:-1])
{x}.at[np.array([0, 1, 0])].add({x}[0]); {x}.at[..., 0].set({x}[..., -1]); {x}.at[np.array([1, 1])].max({x}[0])
jnp.split({x}, 2, axis={a})[1]; jnp.hstack([{x}, {x}])"""
REDUCED = """jnp.sum({x}, axis={a}); jnp.mean({x}, axis={a}); jnp.sum({x}); jnp.mean({x}); jnp.cumsum({x}, axis={a})
jnp.sum({x}, axis={a}, keepdims=True); jnp.max({x}, axis={a}); jnp.min({x}, axis={a}); jnp.prod({x}, axis={a})
jnp.var({x}, axis={a}); jnp.cumprod({x}, axis={a}); jnp.max({x}); {x}.sum(0); {x}.mean(-1, keepdims=True); jnp.trace({x})"""
STEPS = """jnp.sort({x}, axis={a}); jnp.argsort({x}, axis={a}); jnp.argmax({x}, axis={a}); {x} > 0.25; {x} <= 0.125
jnp.floor({x} * 2.7 + 0.1); jnp.sign({x} + 0.01); jnp.median({x}); jnp.argmin({x}); jnp.where({x} < 0.1, {x}, 0.5)
jnp.ptp({x}, axis={a}); jnp.isfinite({x}); jnp.searchsorted(np.array([-1.0, 0.1, 0.9]), {x}); jnp.round({x} * 1.7)"""
TWO = """{x} + {y}; {x} - {y}; {x} * {y}; jnp.maximum({x}, {y}); jnp.minimum({x}, {y}); jnp.multiply({x}, {y}); {y} - {x}"""
TWO_FLOATS = """{x} / (1.5 + jnp.square({y})); jnp.logaddexp({x}, {y}); jnp.arctan2({x}, 2 + jnp.cos({y})); {x} * {y} + {x}
jnp.power(1.5 + jnp.sin({x}), {y}); jnp.hypot({x}, {y} + 3); jnp.where(np.array(True), {x}, {y})"""
PRODUCTS = """jnp.dot({x}, {y}); {x} @ {y}; jnp.tensordot({x}, {y}, 1); jnp.outer({x}, {y}); jnp.vdot({x}, {y})
jnp.einsum('...i,...i->...', {x}, {y}); jnp.einsum('ij,kj->ik', {x}, {y}); jnp.inner({x}, {y}); jnp.matmul({x}.T, {y})"""
COMPARED = """{x} < {y}; {x} >= {y}; jnp.equal({x}, {y}); {x} != {y}"""


def table(text: str) -> list[str]:
    return [part.strip() for line in text.splitlines() for part in line.split(";")]


TABLES = {name: table(text) for name, text in list(globals().items()) if name.isupper() and isinstance(text, str)}


class _AtNumPy:
    """What NumPy lacks and shapes do not need: results of `.at` have the shape of the array."""

    def __init__(self, x: Any):
        self.at = self
        self.x = x

    def __getitem__(self, index: Any) -> _AtNumPy:
        self.x[index]  # raises where the index does not fit
        return self

    def _same(self, *_: Any) -> Any:
        return self.x

    set = add = multiply = max = _same


def numpy_result(template: str, shape: tuple[int, ...], axis: int, other: tuple[int, ...] = ()) -> Any:
    """What NumPy makes of zeros, for the shape; None where it refuses."""
    text = template.format(x="x", a=axis, y="y")
    if ".at[" in text:
        text = text.replace("x.at", "at(x)", 1)
    names = {"jnp": np, "np": np, "x": np.zeros(shape), "y": np.zeros(other), "at": _AtNumPy}
    try:
        with np.errstate(all="ignore"):
            return np.shape(eval(text, names))
    except Exception:
        return None


def join(x64: bool, *types: Leaf) -> tuple[str, bool]:
    """dtype and weakness of an operation on these."""
    rank = lambda leaf: 0 if leaf.dtype == "bool" else 1 if leaf.dtype in INTEGER else 2 if leaf.dtype in REAL else 3
    strong = [t for t in types if not t.weak]
    top = max(map(rank, types))
    if not strong or top > max(map(rank, strong)):
        return ["bool", "int32", "float32", "complex64"][top] if not x64 else [
            "bool",
            "int64",
            "float64",
            "complex128",
        ][top], True
    dtype = strong[0].dtype
    for t in strong[1:]:
        dtype = jax.numpy.promote_types(dtype, t.dtype).name
    return dtype, False


# --- drawing a program -------------------------------------------------------------------------------------

Env = list[tuple[str, Leaf]]


class Draw:
    """Draws one program; all choices follow from the seed."""

    def __init__(self, seed: int):
        self.seed = seed
        self.random = random.Random(f"program {seed}")
        self.x64 = self.chance(0.7)
        self.int = "int64" if self.x64 else "int32"
        self.float = "float64" if self.x64 else "float32"
        self.narrow = self.chance(0.12)
        self.complex = self.chance(0.1)
        self.eager = self.chance(0.06)  # without a jit around: slow, as each operation is compiled for itself
        self.used = 0
        self.reverse = self.forward = False  # whether derivatives are taken in this mode

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def choice(self, items: Any) -> Any:
        return self.random.choice(list(items))

    def fresh(self, prefix: str = "v") -> str:
        self.used += 1
        return f"{prefix}{self.used}"

    # -- types

    def dtype(self) -> str:
        wide = [(self.float, 10), ("float32", 2), ("int32", 3), ("bool", 1), ("uint8", 1)]
        wide += [(d, 4) for d in NARROW if self.narrow]
        wide += [("complex128" if self.x64 else "complex64", 5)] if self.complex else []
        names, weights = zip(*wide, strict=True)
        return self.random.choices(names, weights)[0]

    def leaf(self) -> Leaf:
        shapes = [(), (3,), (2,), (2, 3), (3, 3), (1, 3), (2, 1), (2, 2, 3), (3, 2), (0,), (0, 3), (1,)]
        weights = [5, 9, 3, 7, 4, 2, 1, 2, 2, 0.2, 0.2, 1]
        return Leaf(self.random.choices(shapes, weights)[0], self.dtype())

    def arg(self, depth: int = 0) -> Type:
        if depth < 2 and self.chance(0.3):
            items = [self.arg(depth + 1) for _ in range(self.random.randint(1, 3))]
            kind = self.random.randrange(5)
            if kind == 0:
                return dict(zip("abc", items, strict=False))
            if kind == 1:
                return [*items, None]
            return tuple(items)
        if self.chance(0.06):
            return Leaf((), self.float, True, True) if self.chance(0.7) else Leaf((), self.int, True, True)
        return self.leaf()

    # -- statements

    def add(self, body: list[Statement], env: Env, text: str, type_: Type, blocks: Any = ()) -> str:
        """Appends ``name = text``; the leaves of the value become variables."""
        name = self.fresh()
        body.append(Statement(name, type_, text, list(blocks)))
        self.unpack(body, env, name, type_)
        return name

    def unpack(self, body: list[Statement], env: Env, name: str, type_: Type) -> None:
        if isinstance(type_, Leaf):
            env.append((name, type_))
            return
        for path, leaf in leaves_of(type_):
            part = self.fresh()
            body.append(Statement(part, leaf, name + path))
            env.append((part, leaf))

    def pick(self, env: Env, fits: Callable[[Leaf], bool] = lambda t: True) -> tuple[str, Leaf] | None:
        found = [(n, t) for n, t in env if fits(t)]
        if not found:
            return None
        return self.choice(found[-5:]) if self.chance(0.6) else self.choice(found)

    def squashed(self, text: str, dtype: str) -> str:
        if dtype in REAL:
            return f"{self.choice(['jnp.tanh', 'jnp.sin', 'jnp.cos', 'jnp.arctan'])}({text})"
        if dtype in COMPLEX:
            return f"jnp.sin({text}) / (2 + jnp.abs({text}) ** 2)" if self.chance(0.1) else f"0.25 * ({text})"
        return f"({text}) % 5" if dtype in INTEGER else text

    def expression(self, env: Env) -> tuple[str, Leaf]:
        """A new value of those there are."""
        while True:
            made = self.choice(
                [self.unary] * 5
                + [self.shaped] * 4
                + [self.reduced] * 3
                + [self.binary] * 6
                + [self.product] * 2
                + [self.step] * 2
                + [self.converted, self.indexed, self.indexed, self.special]
            )(env)
            if made is not None and len(made[1].shape) <= 3 and np.prod(made[1].shape) <= LARGEST:
                return made

    def unary(self, env: Env) -> Any:
        x = self.pick(env)
        if x is None:
            return f"jnp.asarray(0.5, {self.float!r})", Leaf((), self.float)
        name, t = x
        if t.dtype in REAL:
            kind = "SMOOTH"
        elif t.dtype in COMPLEX:
            kind = "SMOOTH_COMPLEX"
        elif t.dtype in INTEGER:
            kind = "ON_INTS"
        else:
            kind = "ON_BOOLS"
        text = self.choice(TABLES[kind]).format(x=name)
        if "softmax" in text and not t.shape:
            return None
        return text, Leaf(t.shape, t.dtype, t.weak)

    def by_shape(self, name: str, env: Env, fits: Any = lambda t: True) -> Any:
        x = self.pick(env, fits)
        if x is None:
            return None
        template = self.choice(TABLES[name])
        if not x[1].shape and "{a}" in template and not any(s in template for s in ("stack", "expand_dims")):
            return None  # NumPy takes axis 0 of a number
        axis = self.random.randint(-1, max(0, len(x[1].shape) - 1))
        shape = numpy_result(template, x[1].shape, axis)
        if shape is None:
            return None
        return template.format(x=x[0], a=axis), x[1], shape, template

    def shaped(self, env: Env) -> Any:
        made = self.by_shape("SHAPED", env)
        if made is None or (made[1].dtype == "bool" and any(s in made[3] for s in ("add", "mult", "diff", "pad"))):
            return None
        return made[0], Leaf(made[2], made[1].dtype, made[1].weak and self.chance(0.9))

    def reduced(self, env: Env) -> Any:
        made = self.by_shape("REDUCED", env, lambda t: bool(t.shape))
        if made is None:
            return None
        text, t, shape, template = made
        dtype = t.dtype
        if dtype in COMPLEX and any(s in template for s in ("max", "min", "var")):
            return None
        if "mean" in template or "var" in template:
            dtype = dtype if dtype in REAL + COMPLEX else self.float
        elif dtype == "bool" and not ("max" in template or "min" in template):
            dtype = self.int
        elif dtype in INTEGER and not ("max" in template or "min" in template):
            dtype = self.int if not dtype.startswith("u") else "u" + self.int
        return self.squashed(text, dtype), Leaf(shape, dtype, t.weak)

    def step(self, env: Env) -> Any:
        made = self.by_shape("STEPS", env, lambda t: t.dtype in ("float32", "float64"))
        if made is None:
            return None
        text, t, shape, template = made
        if any(s in template for s in ("arg", "search")):
            return text, Leaf(shape, self.int if "search" not in template else "int32")
        if "isfinite" in template or (" > " in template) or " <= " in template:
            return text, Leaf(shape, "bool")
        return text, Leaf(shape, t.dtype, t.weak)

    def pair(self, env: Env, fits: Any, template: str) -> Any:
        x = self.pick(env, fits)
        for _ in range(4):
            y = self.pick(env, fits)
            if x is None or y is None:
                return None
            shape = numpy_result(template, x[1].shape, 0, y[1].shape)
            if shape is not None:
                return x, y, shape
        return None

    def number(self, t: Leaf) -> tuple[str, Leaf]:
        if t.dtype in INTEGER:
            return str(self.random.randint(1, 3)), Leaf((), self.int, True)
        return self.choice(["0.5", "1.25", "2", "-0.75"]), Leaf((), self.float if t.dtype in REAL else t.dtype, True)

    def binary(self, env: Env) -> Any:
        if self.chance(0.15):
            template = self.choice(TABLES["COMPARED"])
            made = self.pair(env, lambda t: t.dtype not in NARROW + COMPLEX, template)
            return made and (template.format(x=made[0][0], y=made[1][0]), Leaf(made[2], "bool"))
        floats = self.chance(0.4)
        template = self.choice(TABLES["TWO_FLOATS" if floats else "TWO"])
        bad = COMPLEX if floats or "m" in template.replace("jnp", "").replace("multiply", "") else ()
        fits = (lambda t: t.dtype in REAL) if floats else (lambda t: t.dtype != "bool" and t.dtype not in bad)
        if not floats and self.chance(0.2):
            x = self.pick(env, fits)
            if x is None:
                return None
            number, t = self.number(x[1])
            dtype, weak = join(self.x64, x[1], t)
            return self.squashed(template.format(x=x[0], y=number), dtype), Leaf(x[1].shape, dtype, weak)
        if "where" in template:
            return self.select(env)
        made = self.pair(env, fits, template if "arctan2" not in template else "{x} + {y}")
        if made is None:
            return None
        (x, s), (y, t), shape = made
        dtype, weak = join(self.x64, s, t)
        return self.squashed(template.format(x=x, y=y), dtype), Leaf(shape, dtype, weak)

    def select(self, env: Env) -> Any:
        made = self.pair(env, lambda t: t.dtype != "bool", "{x} + {y}")
        which = self.pick(env, lambda t: t.dtype == "bool")
        if made is None or which is None:
            return None
        (x, s), (y, t), shape = made
        try:
            shape = np.broadcast_shapes(shape, which[1].shape)
        except ValueError:
            return None
        return f"jnp.where({which[0]}, {x}, {y})", Leaf(shape, *join(self.x64, s, t))

    def product(self, env: Env) -> Any:
        template = self.choice(TABLES["PRODUCTS"])
        made = self.pair(env, lambda t: t.dtype != "bool" and t.shape != (), template)
        if made is None:
            return None
        (x, s), (y, t), shape = made
        dtype, weak = join(self.x64, s, t)
        return self.squashed(template.format(x=x, y=y), dtype), Leaf(shape, dtype, weak)

    def converted(self, env: Env) -> Any:
        x = self.pick(env)
        if x is None:
            return None
        dtype = self.dtype()
        return self.conversion(x[0], x[1].dtype, dtype), Leaf(x[1].shape, dtype)

    def conversion(self, text: str, old: str, new: str) -> str:
        if old == new:
            return text
        if old in COMPLEX and new not in COMPLEX:
            text, old = f"jnp.real({text})", "float64"
        if old in REAL and new not in REAL + COMPLEX:
            # Far from the integers that expressions give: a step there would follow the last bit.
            text = f"({text} * 0.91 + 3.37)" if new != "bool" else f"({text} > 0.1234)"
        return f"{text}.astype({'jnp.bfloat16' if new == 'bfloat16' else repr(new)})"

    def whole(self, env: Env) -> str | None:
        """An index: an integer without axes, rarely out of bounds."""
        x = self.pick(env, lambda t: t.dtype in INTEGER and t.shape == ())
        if x is not None:
            return x[0]
        x = self.pick(env, lambda t: t.dtype in INTEGER and np.prod(t.shape) > 0)
        if x is not None:
            return f"jnp.max({x[0]})"
        return None

    def indexed(self, env: Env) -> Any:
        x = self.pick(env, lambda t: bool(t.shape) and np.prod(t.shape) > 0)
        i = self.whole(env)
        if x is None or i is None:
            return None
        name, t = x
        kind = self.random.randrange(9)
        first, rest = t.shape[0], t.shape[1:]
        if kind == 0:
            return f"{name}[{i}]", Leaf(rest, t.dtype, t.weak)
        if kind == 1:
            return f"lax.dynamic_slice_in_dim({name}, {i}, {max(1, first - 1)})", Leaf(
                (max(1, first - 1), *rest), t.dtype, t.weak
            )
        if kind == 2:
            return f"lax.dynamic_index_in_dim({name}, {i}, keepdims=False)", Leaf(rest, t.dtype, t.weak)
        if kind == 3:
            return f"lax.dynamic_update_index_in_dim({name}, {name}[0], {i}, 0)", Leaf(t.shape, t.dtype, t.weak)
        if kind == 4:
            how = self.choice(["add", "set", "multiply", "max", "min"])
            if t.dtype == "bool" or t.dtype in COMPLEX:
                how = "set"
            return f"{name}.at[{i}].{how}({name}[-1])", Leaf(t.shape, t.dtype, t.weak)
        y = self.pick(env, lambda s: s.dtype in INTEGER and bool(s.shape))
        if y is None:
            return None
        if kind == 5:
            return f"{name}[{y[0]}]", Leaf((*y[1].shape, *rest), t.dtype, t.weak)
        if kind == 6:
            mode = self.choice(["clip", "fill", "wrap"])
            return (
                f"jnp.nan_to_num(jnp.take({name}, {y[0]}, axis=0, mode={mode!r}))"
                if t.dtype in REAL + COMPLEX
                else (f"jnp.take({name}, {y[0]}, axis=0, mode='clip')"),
                Leaf((*y[1].shape, *rest), t.dtype, t.weak),
            )
        if kind == 7 and t.dtype in REAL:
            return f"{name}.at[{y[0]}].{self.choice(['add', 'multiply'])}(0.5)", Leaf(t.shape, t.dtype, t.weak)
        if kind == 8 and len(y[1].shape) == 1 == len(t.shape):
            return f"jnp.take_along_axis({name}, {y[0]}, 0, mode='clip')", Leaf(y[1].shape, t.dtype, t.weak)
        return None

    def special(self, env: Env) -> Any:
        kind = self.random.randrange(8)
        x = self.pick(env, lambda t: t.dtype in ("float32", "float64"))
        if kind == 0:
            n = self.random.randint(2, 3)
            return f"jnp.arange({n})", Leaf((n,), self.int)
        if kind == 1 and self.chance(0.3):
            return f"jax.random.uniform(jax.random.key({self.random.randrange(9)}), (3,))", Leaf((3,), self.float)
        if x is None:
            return None
        name, t = x
        if kind == 2 and t.shape:
            return f"lax.top_k({name}, 1)[{self.choice([0, 0, 1])}]", Leaf((*t.shape[:-1], 1), t.dtype)
        if kind == 3:
            return f"jnp.zeros_like({name})", Leaf(t.shape, t.dtype, t.weak)
        if kind == 4 and len(t.shape) == 1:
            return f"jnp.convolve({name}, {name}, 'same') / 4", Leaf(t.shape, t.dtype)
        if kind == 5 and t.shape and t.shape[0]:
            return f"lax.associative_scan(jnp.multiply, {name})", Leaf(t.shape, t.dtype)
        if kind == 6 and t.shape:
            return f"lax.{self.choice(['cumsum', 'cummax', 'cumprod'])}({name} / 3)", Leaf(t.shape, t.dtype)
        if kind == 7:
            return f"jax.nn.one_hot(jnp.argmax({name}), 3)", Leaf((3,), self.float)
        return None

    # -- values of a type that is asked for

    def coerced(self, env: Env, t: Leaf) -> str:
        """Source of a value of just this type."""
        if not t.weak:
            same = self.pick(env, lambda s: s.shape == t.shape and s.dtype == t.dtype and not s.weak)
            if same is not None and self.chance(0.8):
                return same[0]
        near = self.pick(env, lambda s: s.shape == t.shape)
        if near is not None:
            text = self.conversion(near[0], near[1].dtype, t.dtype)
            return text
        any_ = self.pick(env, lambda s: s.dtype != "bool" and s.dtype not in NARROW)
        if any_ is None:
            return f"jnp.full({t.shape}, 1, {dtype_text(t.dtype)})"
        name, s = any_
        whole = s.dtype in INTEGER
        total = f"jnp.sum({name}) % 4" if whole else f"jnp.tanh(jnp.sum({name}))"
        small = self.conversion(f"({total})", self.int if whole else s.dtype, t.dtype)
        return f"jnp.broadcast_to({small}, {t.shape})" if t.shape else small

    def result(self, env: Env, type_: Type) -> str:
        return tree_text(map_type(lambda t: self.coerced(env, t), type_))

    def carry(self, env: Env) -> tuple[Type, str]:
        """A tree of one to three values there are, and its source."""
        entries = [self.pick(env) for _ in range(self.random.randint(1, 3))]
        found = [e for e in entries if e is not None] or [("0.5", Leaf((), self.float, True))]
        if self.chance(0.1):
            found.append(("0.0", Leaf((), self.float, True)))
        types = [Leaf(t.shape, t.dtype, t.weak) for _, t in found]
        names = [n for n, _ in found]
        kind = self.random.randrange(4)
        if len(types) == 1 and kind:
            return types[0], names[0]
        if kind == 1:
            return dict(zip("xyzw", types, strict=False)), tree_text(dict(zip("xyzw", names, strict=False)))
        if kind == 2:
            return (types[0], tuple(types[1:]), None), tree_text((names[0], tuple(names[1:]), None))
        return tuple(types), tree_text(tuple(names))

    # -- functions

    def block(self, env: Env, params: list[tuple[str, Type]], result: Type, depth: int, decorator: str = "") -> Block:
        """A function whose result has this type; it also sees the variables around it."""
        inner = list(env)
        body: list[Statement] = []
        name = self.fresh("f")
        for param, type_ in params:
            self.unpack(body, inner, param, type_)
        self.statements(body, inner, self.random.choice([0, 1, 1, 2, 2, 3]), depth + 1)
        return Block(name, [p for p, _ in params], body, self.result(inner, result), decorator)

    def statements(self, body: list[Statement], env: Env, count: int, depth: int) -> None:
        for _ in range(count):
            if self.chance((0.27, 0.2, 0.06, 0)[min(depth, 3)]):
                kinds = [self.cond, self.cond, self.switch, self.scan, self.scan, self.scan, self.fori, self.while_]
                kinds += [self.map, self.call, self.call, self.custom_jvp, self.custom_vjp, self.remat, self.inner]
                self.choice(kinds)(body, env, depth)
            else:
                text, leaf = self.expression(env)
                self.add(body, env, text, leaf)

    def any_result(self, env: Env) -> Type:
        """A small type for the result of a function."""
        types = [self.leaf() for _ in range(self.random.choice([1, 1, 2]))]
        known = self.pick(env, lambda t: not t.weak)
        if known is not None and self.chance(0.6):
            types[0] = Leaf(known[1].shape, known[1].dtype)
        return types[0] if len(types) == 1 else self.choice([tuple(types), {"p": types[0], "q": types[1]}])

    def some(self, env: Env, fits: Any = lambda t: True) -> list[tuple[str, Leaf]]:
        found = [self.pick(env, fits) for _ in range(self.random.randint(1, 2))]
        return [x for x in found if x is not None]

    def params(self, operands: list[tuple[str, Leaf]]) -> list[tuple[str, Type]]:
        return [(self.fresh("p"), t) for _, t in operands]

    def predicate(self, env: Env) -> str:
        x = self.pick(env, lambda t: t.dtype == "bool" and t.shape == ())
        if x is not None:
            return x[0]
        x = self.pick(env, lambda t: t.dtype not in NARROW + COMPLEX and np.prod(t.shape) > 0)
        if x is None:
            return "np.array(True)"
        return f"jnp.any({x[0]})" if x[1].dtype == "bool" else f"jnp.max({x[0]}) > 0.3"

    def cond(self, body: list[Statement], env: Env, depth: int) -> None:
        result, operands = self.any_result(env), self.some(env)
        blocks = [self.block(env, self.params(operands), result, depth) for _ in range(2)]
        text = ", ".join([self.predicate(env), blocks[0].name, blocks[1].name, *(n for n, _ in operands)])
        self.add(body, env, f"lax.cond({text})", result, blocks)

    def switch(self, body: list[Statement], env: Env, depth: int) -> None:
        result, operands = self.any_result(env), self.some(env)
        blocks = [self.block(env, self.params(operands), result, depth) for _ in range(3)]
        index = self.whole(env) or "1"
        text = ", ".join([index, f"[{', '.join(b.name for b in blocks)}]", *(n for n, _ in operands)])
        self.add(body, env, f"lax.switch({text})", result, blocks)

    def scan(self, body: list[Statement], env: Env, depth: int) -> None:
        carry, init = self.carry(env)
        over = self.pick(env, lambda t: bool(t.shape))
        length = over[1].shape[0] if over is not None else 2
        xs: Type = None
        xs_text = "None"
        if over is not None:
            name, t = over
            other = self.pick(env, lambda s: bool(s.shape) and s.shape[0] == length)
            if other is not None and self.chance(0.4):
                xs_text = f"{{'i': {name}, 'j': {other[0]}}}"
                xs = {
                    "i": Leaf(t.shape[1:], t.dtype, t.weak),
                    "j": Leaf(other[1].shape[1:], other[1].dtype, other[1].weak),
                }
            else:
                xs_text, xs = name, Leaf(t.shape[1:], t.dtype, t.weak)
        ys: Type = self.choice([None, self.leaf(), (self.leaf(), None)])
        if any(np.prod(t.shape) * length > LARGEST for _, t in leaves_of(ys)):
            ys = None
        block = self.block(env, [(self.fresh("c"), carry), (self.fresh("x"), xs)], (carry, ys), depth)
        options = f", length={length}" if xs is None else ""
        options += ", reverse=True" if self.chance(0.3) else ""
        options += f", unroll={self.choice([2, 'True'])}" if self.chance(0.2) else ""
        stacked = map_type(lambda t: Leaf((length, *t.shape), t.dtype), ys)
        self.add(body, env, f"lax.scan({block.name}, {init}, {xs_text}{options})", (carry, stacked), [block])

    def fori(self, body: list[Statement], env: Env, depth: int) -> None:
        carry, init = self.carry(env)
        block = self.block(env, [(self.fresh("i"), Leaf((), self.int, True)), (self.fresh("c"), carry)], carry, depth)
        high = str(self.random.randint(0, 3))
        if not self.reverse and self.chance(0.3):
            high = f"jnp.clip({self.whole(env) or '2'}, 0, 3)"
        self.add(body, env, f"lax.fori_loop(0, {high}, {block.name}, {init})", carry, [block])

    def while_(self, body: list[Statement], env: Env, depth: int) -> None:
        if self.reverse and not self.chance(0.04):
            return
        inside, init = self.carry(env)
        count = Leaf((), self.int, True)
        carry = (count, inside)
        first, second = self.fresh("c"), self.fresh("c")
        block = self.block(env, [(first, carry)], inside, depth)
        block.result = f"({first}[0] + 1, {block.result})"
        probe: list[Statement] = []
        names: Env = []
        self.unpack(probe, names, second, carry)
        test = f"({second}[0] < {self.random.randint(1, 3)})"
        if self.chance(0.5):
            test += f" & ({self.predicate(names[1:])})"
        asks = Block(self.fresh("f"), [second], probe, test)
        self.add(body, env, f"lax.while_loop({asks.name}, {block.name}, (0, {init}))", carry, [asks, block])

    def map(self, body: list[Statement], env: Env, depth: int) -> None:
        over = self.pick(env, lambda t: bool(t.shape))
        if over is None:
            return
        result = Leaf(self.choice([(), (2,)]), self.dtype())
        block = self.block(env, [(self.fresh("p"), Leaf(over[1].shape[1:], over[1].dtype))], result, depth)
        batch = ", batch_size=2" if self.chance(0.2) else ""
        stacked = Leaf((over[1].shape[0], *result.shape), result.dtype)
        self.add(body, env, f"lax.map({block.name}, {over[0]}{batch})", stacked, [block])

    def call(self, body: list[Statement], env: Env, depth: int) -> None:
        """A jitted function, called twice."""
        result, operands = self.any_result(env), self.some(env)
        block = self.block(env, self.params(operands), result, depth, decorator="@jax.jit")
        names = [n for n, _ in operands]
        self.add(body, env, f"{block.name}({', '.join(names)})", result, [block])
        if self.chance(0.5):
            self.add(body, env, f"{block.name}({', '.join(reversed(names))})", result)

    def remat(self, body: list[Statement], env: Env, depth: int) -> None:
        result, operands = self.any_result(env), self.some(env)
        policy = self.choice(["", "dots_saveable", "everything_saveable", "nothing_saveable"])
        options = f", policy=jax.checkpoint_policies.{policy}" if policy else ""
        block = self.block(env, self.params(operands), result, depth)
        self.add(
            body, env, f"jax.checkpoint({block.name}{options})({', '.join(n for n, _ in operands)})", result, [block]
        )

    def custom_jvp(self, body: list[Statement], env: Env, depth: int) -> None:
        """With a rule that is not the derivative, so that one sees whether it is used."""
        x = self.pick(env, lambda t: t.dtype in REAL and not t.weak)
        if x is None:
            return
        t = x[1]
        fun = self.block([], [(self.fresh("p"), t)], t, depth, decorator="@jax.custom_jvp")
        rule = Block(
            self.fresh("f"),
            ["primals", "tangents"],
            [],
            f"{fun.name}(*primals), tangents[0] * {self.choice(['0.5', 'jnp.cos(primals[0])'])}",
            f"@{fun.name}.defjvp",
        )
        self.add(body, env, f"{fun.name}({x[0]})", t, [fun, rule])

    def custom_vjp(self, body: list[Statement], env: Env, depth: int) -> None:
        if self.forward and not self.chance(0.03):
            return
        x = self.pick(env, lambda t: t.dtype in REAL and not t.weak)
        y = self.pick(env, lambda t: t.dtype in REAL and not t.weak)
        if x is None or y is None:
            return
        s, t = x[1], y[1]
        p, q = self.fresh("p"), self.fresh("p")
        fun = self.block([], [(p, s), (q, t)], s, depth, decorator="@jax.custom_vjp")
        forward = Block(self.fresh("f"), [p, q], [], f"{fun.name}({p}, {q}), {{'kept': (jnp.cos({p}), {q})}}")
        back = Block(
            self.fresh("f"),
            ["kept", "ct"],
            [],
            "ct * kept['kept'][0], 0.5 * kept['kept'][1] * jnp.sum(ct).astype(kept['kept'][1].dtype)",
        )
        rules = Block(self.fresh("f"), [], [], f"{fun.name}.defvjp({forward.name}, {back.name})")
        self.add(body, env, f"({rules.name}(), {fun.name}({x[0]}, {y[0]}))[1]", s, [fun, forward, back, rules])

    def inner(self, body: list[Statement], env: Env, depth: int) -> None:
        """A transformation inside of the function."""
        x = self.pick(env, lambda t: t.dtype in REAL and t.dtype not in NARROW and not t.weak)
        if x is None:
            return
        name, t = x
        kind = self.random.randrange(4)
        p = self.fresh("p")
        if kind == 0 and t.shape:
            result = Leaf((), t.dtype)
            block = self.block(env, [(p, Leaf(t.shape[1:], t.dtype))], result, depth)
            if self.chance(0.5):
                block.result = f"lax.{self.choice(['psum', 'pmean'])}({block.result}, 'i') - {block.result}"
                text = f"jnp.sin(jax.vmap({block.name}, axis_name='i')({name}))"
            else:
                text = f"jax.vmap({block.name})({name})"
            self.add(body, env, text, Leaf(t.shape[:1], t.dtype), [block])
        elif kind == 1:
            kept, self.reverse = self.reverse, True
            block = self.block(env, [(p, t)], Leaf((), t.dtype), depth)
            self.reverse = kept
            self.add(body, env, f"jnp.tanh(jax.grad({block.name})({name}))", t, [block])
        elif kind == 2:
            kept, self.forward = self.forward, True
            block = self.block(env, [(p, t)], t, depth)
            self.forward = kept
            self.add(body, env, f"jax.jvp({block.name}, ({name},), (jnp.cos({name}),))[1] / 4", t, [block])
        else:
            text = f"jnp.vectorize(lambda {p}: jnp.sum({p}) * {p}, signature='(n)->(n)')({name}) / 9"
            if t.shape:
                self.add(body, env, text, t)

    # -- the transformations around

    def outers(self, types: list[Type]) -> list[Outer]:
        made: list[Outer] = []
        weight = 0  # of derivatives, which multiply each other's cost
        is_float = [all(t.dtype in REAL for _, t in leaves_of(a)) and bool(list(leaves_of(a))) for a in types]
        floats = [i for i, ok in enumerate(is_float) if ok]
        small = [i for i in floats if sum(int(np.prod(t.shape)) for _, t in leaves_of(types[i])) <= 6]
        for _ in range(1 if self.eager else self.random.choices([1, 2, 3], [45, 40, 15])[0]):
            kinds = ["vmap"] * 4 + ["jit", "checkpoint", "scan"]
            if floats and weight < 2:
                kinds += ["grad"] * 4 + ["value_and_grad", "vjp", "jvp", "jvp", "linearize", "jacobian"]
                kinds += ["hessian"] if small and not weight else []
            elif weight < 2:
                kinds += ["jvp", "vjp"]
            kind = self.choice(kinds)
            if kind in ("vmap", "scan"):
                if sum(o.kind in ("vmap", "scan") for o in made) == 2:
                    continue
                made.append(self.mapping(kind, made, types))
            elif kind in ("jit", "checkpoint"):
                made.append(Outer(kind, f"jax.{kind}({{f}})"))
            elif kind in ("vjp", "linearize"):
                made.append(Outer(kind, f"over_{kind}({{f}})"))
            elif kind == "jvp":
                made.append(Outer(kind, "lambda *args: jax.jvp({f}, args, tangents(args))"))
            else:
                pool = small if kind == "hessian" or (kind == "jacobian" and small) else floats
                chosen = (
                    self.random.sample(pool, self.random.randint(1, min(2, len(pool))))
                    if kind != "hessian"
                    else pool[:1]
                )
                argnums = repr(chosen[0] if len(chosen) == 1 else tuple(sorted(chosen)))
                if kind == "jacobian":
                    which = self.choice(["jacfwd", "jacrev"])
                    text = f"jax.{which}(lambda *args: reals({{f}}(*args)), {argnums})"
                else:
                    text = f"jax.{kind}(lambda *args: total({{f}}(*args)), {argnums})"
                made.append(Outer(kind, text))
                weight += kind == "hessian"
            weight += kind not in ("vmap", "scan", "jit", "checkpoint")
        if not self.eager and (not made or made[-1].kind != "jit"):
            made.append(Outer("jit", "jax.jit({f})"))
        return made

    def mapping(self, kind: str, before: list[Outer], types: list[Type]) -> Outer:
        for outer in before:
            types = outer.lift(types)
        axes: list[int | None] = []
        for t in types:
            ranks = [len(leaf.shape) for _, leaf in leaves_of(t)]
            if not ranks or self.chance(0.3):
                axes.append(None)
            else:
                axes.append(self.choice([0, 0, -1, min(ranks)]) if kind == "vmap" else 0)
        if all(a is None for a in axes):
            at = next((i for i, t in enumerate(types) if list(leaves_of(t))), None)
            if at is None:
                return Outer("jit", "jax.jit({f})")
            axes[at] = 0
        size = self.choice([2, 3])
        if kind == "scan":
            return Outer(kind, f"over_scan({{f}}, {tuple(axes)})", tuple(axes), size)
        out = ", out_axes=-1" if self.chance(0.15) else ""
        return Outer(kind, f"jax.vmap({{f}}, in_axes={tuple(axes)}{out})", tuple(axes), size)

    def program(self) -> Program:
        args = [self.arg() for _ in range(self.random.randint(1, 3))]
        if not any(t.dtype in REAL for a in args for _, t in leaves_of(a)) or self.chance(0.5):
            args.insert(0, Leaf(self.choice([(), (3,), (2, 3)]), self.float))
        outers = self.outers(args)
        kinds = {o.kind for o in outers}
        forward = {"jvp", "hessian"} | ({"jacobian"} if any("jacfwd" in o.text for o in outers) else set())
        self.forward = bool(kinds & forward)
        self.reverse = any(
            o.kind in ("grad", "value_and_grad", "vjp", "linearize", "hessian", "jacobian") for o in outers
        )
        body: list[Statement] = []
        env: Env = []
        params = [f"a{i}" for i in range(len(args))]
        for param, type_ in zip(params, args, strict=True):
            self.unpack(body, env, param, map_type(lambda t: Leaf(t.shape, t.dtype, t.weak), type_))
        self.statements(body, env, self.random.randint(1, 2 if self.eager else 6), 0)
        names = [n for n, _ in env[-4:]]
        shape = self.random.randrange(5)
        results = [
            names[-1],
            tuple(names[-2:]),
            {"y": names[-1], "z": [*names[:2], None]},
            names[-2:],
            (tuple(names[-3:]),),
        ]
        return Program(self.seed, self.x64, args, Block("f0", params, body, tree_text(results[shape])), outers)


def draw(seed: int) -> Program:
    """The program of this number."""
    return Draw(seed).program()
