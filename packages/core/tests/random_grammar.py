"""Draws random programs for `random_programs`: nested control flow on trees of mixed dtypes, under transformations."""

from __future__ import annotations

from typing import Any

import numpy as np

from random_expressions import LARGEST, Env, Expressions
from random_program_data import (
    COMPLEX,
    NARROW,
    REAL,
    Block,
    Leaf,
    Outer,
    Program,
    Statement,
    Type,
    leaves_of,
    map_type,
    tree_text,
)


class Draw(Expressions):
    """Draws one program."""

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
