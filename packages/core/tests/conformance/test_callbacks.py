"""Callbacks are called as often, in the same order where there is one, and with the same values as by the real jax."""

from __future__ import annotations

import importlib
from typing import Any

import jax
import numpy as np
import pytest

import phlox


def _modules(module: Any) -> tuple[Any, Any, Any]:
    name = module.__name__
    return (
        importlib.import_module(f"{name}.numpy"),
        importlib.import_module(f"{name}.lax"),
        importlib.import_module(f"{name}.experimental").io_callback,
    )


class Recorder:
    """What a program's callbacks were called with."""

    def __init__(self, module: Any):
        self.module = module
        self.np, self.lax, self.io_callback = _modules(module)
        self.calls: list[Any] = []

    def see(self, tag: str, x: Any, ordered: bool = False) -> None:
        def record(v: Any) -> None:
            self.calls.append((tag, np.asarray(v).round(4).tolist(), str(v.dtype)))

        self.module.debug.callback(record, x, ordered=ordered)

    def io(self, tag: str, x: Any, ordered: bool = True) -> Any:
        def record(v: Any) -> Any:
            self.calls.append((tag, np.asarray(v).round(4).tolist()))
            return np.asarray(v) + 1

        return self.io_callback(record, self.module.ShapeDtypeStruct(x.shape, x.dtype), x, ordered=ordered)

    def host(self, x: Any, vmap_method: str | None = "sequential") -> Any:
        def sine(v: Any) -> Any:
            self.calls.append(np.shape(v))
            return np.sin(np.asarray(v))

        return self.module.pure_callback(
            sine, self.module.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method=vmap_method
        )

    def host_sine(self, x: Any) -> Any:
        return self.host(x)


def straight(r: Recorder, x: Any) -> Any:
    r.see("in", x, ordered=True)
    y = r.np.sin(x) * 2
    r.see("out", y, ordered=True)
    return y.sum()


def scanned(r: Recorder, x: Any) -> Any:
    def step(c: Any, y: Any) -> Any:
        r.see("carry", c, ordered=True)
        return c * y, c + y

    c, ys = r.lax.scan(step, x.sum(), x)
    r.see("after", c, ordered=True)
    return c + ys.sum()


def looped(r: Recorder, x: Any) -> Any:
    def turn(i: Any, v: Any) -> Any:
        r.see("turn", v, ordered=True)
        return v * 0.5

    return r.lax.fori_loop(0, 3, turn, x).sum()


def unknown_turns(r: Recorder, x: Any) -> Any:
    def turn(v: Any) -> Any:
        r.see("turn", v, ordered=True)
        return v * 2

    return r.lax.while_loop(lambda v: v < 20, turn, x.sum())


def branched(r: Recorder, x: Any) -> Any:
    def yes(v: Any) -> Any:
        r.see("yes", v, ordered=True)
        return v

    def no(v: Any) -> Any:
        r.see("no", v, ordered=True)
        return -v

    one = r.lax.cond(x.sum() > 0, yes, no, x)
    return r.lax.cond(x.sum() < 0, yes, no, one).sum()


def nested(r: Recorder, x: Any) -> Any:
    inner = r.module.jit(lambda v: straight(r, v))
    return inner(x) + inner(x * 2)


def rematerialized(r: Recorder, x: Any) -> Any:
    return r.module.checkpoint(lambda v: straight(r, v))(x)


PROGRAMS = [straight, scanned, looped, unknown_turns, branched, nested, rematerialized]
REVERSIBLE = [p for p in PROGRAMS if p is not unknown_turns]


def _run(module: Any, program: Any, transform: Any) -> tuple[Any, list[Any]]:
    recorder = Recorder(module)
    x = recorder.np.asarray([0.5, 1.5, 2.0], "float32")
    out = transform(module)(lambda v: program(recorder, v))(x)
    module.block_until_ready(out)
    module.effects_barrier()
    return np.asarray(out), recorder.calls


def _same(program: Any, transform: Any) -> None:
    mine, my_calls = _run(phlox, program, transform)
    theirs, their_calls = _run(jax, program, transform)
    np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    assert my_calls == their_calls
    assert my_calls


@pytest.mark.parametrize("program", PROGRAMS)
def test_runs(program: Any) -> None:
    _same(program, lambda m: m.jit)
    _same(program, lambda m: lambda f: f)


@pytest.mark.parametrize("program", REVERSIBLE)
def test_under_grad(program: Any) -> None:
    _same(program, lambda m: m.grad)
    _same(program, lambda m: lambda f: m.jit(m.grad(f)))


@pytest.mark.parametrize("program", PROGRAMS)
def test_under_jvp(program: Any) -> None:
    _same(program, lambda m: lambda f: m.jit(lambda x: m.jvp(f, (x,), (x,))[1]))


def unordered(r: Recorder, x: Any) -> Any:
    r.see("x", x)
    r.see("shared", r.np.float32(2.0))
    return x * 2


@pytest.mark.parametrize("jit", [False, True])
def test_vmap_calls_for_each_example(jit: bool) -> None:
    results = []
    for module in (phlox, jax):
        recorder = Recorder(module)
        mapped = module.vmap(lambda v, r=recorder: unordered(r, v))
        (module.jit(mapped) if jit else mapped)(recorder.np.arange(6.0).reshape(3, 2))
        module.effects_barrier()
        results.append(sorted(recorder.calls, key=str))
    assert results[0] == results[1]
    assert len(results[0]) == 4


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"])
@pytest.mark.parametrize("in_axes", [0, 1])
def test_pure_callback_under_vmap(method: str, in_axes: int) -> None:
    results = []
    for module in (phlox, jax):
        recorder = Recorder(module)
        x = recorder.np.arange(6.0).reshape(2, 3)
        call = module.jit(module.vmap(lambda v, r=recorder: r.host(v, method), in_axes=in_axes))
        results.append((np.asarray(call(x)).tolist(), recorder.calls))
    assert results[0] == results[1]


def test_vmap_needs_a_method() -> None:
    for module in (phlox, jax):
        recorder = Recorder(module)
        with pytest.raises(NotImplementedError):
            module.vmap(lambda v, r=recorder: r.host(v, None))(recorder.np.ones(3))
        with pytest.raises(ValueError):
            module.pure_callback(np.sin, module.ShapeDtypeStruct((), "float32"), 1.0, vmap_method="some")


def test_callbacks_have_no_derivative_of_their_own() -> None:
    for module in (phlox, jax):
        recorder = Recorder(module)
        with pytest.raises(ValueError):
            module.grad(lambda x, r=recorder: r.host(x))(1.0)
        with pytest.raises(ValueError):
            module.grad(lambda x, r=recorder: r.io("io", r.np.asarray(x)))(1.0)
        with pytest.raises(ValueError, match="Pure callbacks do not support transpose"):
            module.linear_transpose(lambda x, r=recorder: r.host(x), 1.0)(1.0)
        with pytest.raises(ValueError, match="IO callbacks do not support transpose"):
            module.linear_transpose(lambda x, r=recorder: r.io("io", r.np.asarray(x)), 1.0)(1.0)


def test_custom_derivatives_give_them_one() -> None:
    results = []
    for module in (phlox, jax):
        recorder = Recorder(module)

        sine = module.custom_jvp(recorder.host_sine)
        sine.defjvp(lambda p, t, f=sine, r=recorder: (f(*p), r.np.cos(p[0]) * t[0]))
        results.append(np.asarray(module.jit(module.vmap(module.grad(sine)))(recorder.np.arange(3.0))))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


def io_in_scan(r: Recorder, x: Any) -> Any:
    def step(c: Any, y: Any) -> Any:
        return r.io("step", c + y), y

    return r.lax.scan(step, r.np.float32(0), x)[0]


def io_in_condition(r: Recorder, x: Any) -> Any:
    return r.lax.while_loop(lambda v: r.io("test", v) < 20, lambda v: r.io("turn", v) * 2, x.sum())


@pytest.mark.parametrize("program", [io_in_scan, io_in_condition])
def test_ordered_io(program: Any) -> None:
    _same(program, lambda m: m.jit)


def test_ordered_io_is_not_mapped() -> None:
    for module in (phlox, jax):
        recorder = Recorder(module)
        with pytest.raises(ValueError):
            module.vmap(lambda v, r=recorder: r.io("io", v))(recorder.np.ones(3))


def test_format_is_checked() -> None:
    for module in (phlox, jax):
        with pytest.raises(ValueError):
            module.debug.print("x", 1)
        with pytest.raises(ValueError):
            module.debug.print("{x}", x=1, y=2)
        with pytest.raises(TypeError):
            module.debug.callback(3)
        with pytest.raises(TypeError):
            module.debug.print(x=1)


@pytest.mark.parametrize(
    ("fmt", "value"),
    [
        ("{}", 1.5),
        ("{:.3f}", 2.0),
        ("{x}", np.arange(6).reshape(2, 3)),
        ("{x!r:>40}", np.float32(3)),
        ("{x[0]}", [1, 2]),
    ],
)
def test_prints_alike(fmt: str, value: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for module in (phlox, jax):
        args, kwargs = ((), {"x": value}) if "x" in fmt else ((value,), {})
        module.jit(lambda a, k, m=module: m.debug.print(fmt, *a, **k))(args, kwargs)
        module.effects_barrier()
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert shown[0].strip()
