"""Draws random expressions of variables with known types: the words of which `random_grammar` makes programs.

As types are known, nearly all programs are accepted. Values stay small (products go through tanh
and the like), and steps (comparisons, conversions to int) are taken of wide floats alone, so that two right answers
lie close together.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from random_program_data import (
    COMPLEX,
    INTEGER,
    NARROW,
    REAL,
    Leaf,
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
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of means of nothing
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


# --- drawing expressions -------------------------------------------------------------------------------------

Env = list[tuple[str, Leaf]]


class Expressions:
    """Draws expressions; all choices follow from the seed."""

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
