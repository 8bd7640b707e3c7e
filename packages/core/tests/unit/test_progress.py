"""`progress=` of loops: reports of the running program, under transformations too."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import lax
from phlox.errors import ArgumentError
from phlox.lax import _progress


@pytest.fixture
def reports(monkeypatch):
    """The turns that each meter was told of."""
    seen = []
    monkeypatch.setattr(_progress.Meter, "__call__", lambda self, index: seen.append(int(index) + 1))
    yield lambda: (phlox.effects_barrier(), seen)[1]


def total(xs, progress="sum"):
    return lax.scan(lambda c, x: (c + x, c * x), 0.0, xs, progress=progress)[0]


def test_results_are_those_without_progress():
    xs = jnp.arange(7.0)
    assert total(xs) == total(xs, None)
    assert phlox.grad(lambda xs: total(xs) ** 2)(xs).tolist() == [42.0] * 7
    np.testing.assert_array_equal(phlox.vmap(total)(jnp.ones((3, 4))), [4, 4, 4])
    assert lax.fori_loop(2, 6, lambda i, c: c + i, 0, progress="fori") == 14
    assert lax.while_loop(lambda c: c < 100, lambda c: 2 * c, 3, progress="while") == 192
    assert lax.while_loop(lambda c: c < 100, lambda c: 2 * c, 3, max_steps=2, progress="while") == 12
    assert phlox.jit(lambda n: lax.fori_loop(1, n, lambda i, c: c + i, 0, progress="fori"))(4) == 6


def test_each_turn_is_reported_once(reports):
    total(jnp.ones(5)).block_until_ready()
    assert sorted(reports()) == [1, 2, 3, 4, 5]


def test_long_loops_report_a_hundred_times(reports):
    lax.fori_loop(5, 1045, lambda i, c: c + 1.0, 0.0, progress="long").block_until_ready()
    assert len(reports()) == 104 + 0 and max(reports()) == 1040


def test_under_vmap_and_grad(reports):
    phlox.vmap(total)(jnp.ones((3, 4))).block_until_ready()
    assert sorted(reports()) == [1, 2, 3, 4]
    phlox.jit(phlox.grad(lambda xs: total(xs) ** 2))(jnp.ones(2)).block_until_ready()
    assert sorted(reports()) == [1, 1, 2, 2, 3, 4]
    phlox.jit(lambda n: lax.fori_loop(3, n, lambda i, c: c + i, 0, progress="f"))(5).block_until_ready()
    assert sorted(reports()) == [1, 1, 1, 2, 2, 2, 3, 4]


def test_rows_of_a_batch_of_while_loops(capfd):
    f = phlox.vmap(lambda x: lax.while_loop(lambda c: c < 10, lambda c: c + 1, x, progress="rows"))
    np.testing.assert_array_equal(f(jnp.array([3, 8, 20])), [10, 10, 20])


def test_the_line(capfd, monkeypatch):
    monkeypatch.setattr(_progress, "_ELSEWHERE", 0.0)
    for _ in range(2):
        phlox.jit(total)(jnp.ones(4)).block_until_ready()
        phlox.effects_barrier()
        lines = capfd.readouterr().err.splitlines()
        assert lines[0].startswith("sum: 25 % (1 of 4 turns)") and lines[-1].startswith("sum: 100 % (4 of 4 turns)")
    lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0, progress="loop").block_until_ready()
    phlox.effects_barrier()
    assert "loop: 3 turns" in capfd.readouterr().err


def test_the_option_is_a_name():
    with pytest.raises(ArgumentError, match="progress is the name of the loop"):
        lax.scan(lambda c, x: (c, x), 0.0, jnp.ones(3), progress=True)
