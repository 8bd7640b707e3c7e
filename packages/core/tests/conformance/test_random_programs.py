"""Random programs under random transformations: phlox computes what jax does.

650 programs by fixed seeds, 2,000 with PHLOX_TEST_CASES=all. docs/random-programs.md tells how to run them without end.
"""

import collections
import re

import pytest

import judge
import random_programs
from random_grammar import draw

CHUNK = 50
PROGRAMS = CHUNK * max(1, round(2000 * judge.FACTOR / 3 / CHUNK))


@pytest.mark.whole
@pytest.mark.parametrize("start", range(0, PROGRAMS, CHUNK))
def test_programs(start):
    """The programs agree. Few of them may be refused by both libraries: those compare nothing but the error."""
    answers = collections.Counter()
    for seed in range(start, start + CHUNK):
        program = draw(seed)
        try:
            answers[random_programs.check(program)] += 1
        except random_programs.Disagreement as error:
            pytest.fail(random_programs.report(program, str(error)), pytrace=False)
    random_programs.forget()
    assert answers["agree"] >= 0.9 * CHUNK, answers


WORDS = """cond switch scan fori_loop while_loop map jit checkpoint custom_jvp custom_vjp vmap grad value_and_grad jvp
vjp linearize hessian jacfwd jacrev reverse=True unroll= batch_size= axis_name= .at[ dynamic_slice_in_dim associative_scan
float16 bfloat16 float32 float64 complex64 complex128 int32 int64 uint8 bool argsort einsum out_axes= over_scan None"""


def test_the_programs_are_various():
    sources = [draw(seed).source() for seed in range(2000)]
    assert len(set(sources)) == len(sources)
    counts = {word: sum(word in source for source in sources) for word in WORDS.split()}
    assert min(counts.values()) >= 10, counts


def test_a_seed_is_a_program():
    assert draw(7).source() == draw(7).source() != draw(8).source()


def test_a_mistake_is_found_and_made_small(monkeypatch):
    """With a wrong function in phlox, the report shows a program of little more than this function."""
    import phlox.numpy as jnp

    wrong = jnp.tanh
    monkeypatch.setattr(jnp, "tanh", lambda x: wrong(x) + 1e-3)
    for seed in range(100):
        program = draw(seed)
        failure = random_programs.fails(program)
        if failure is not None:
            break
    text = random_programs.report(program, failure)
    small = text[text.index("def program") : text.index("AssertionError")]
    assert "jnp.tanh(" in small, text
    body = re.findall(r"^        v\d+ = ", small, re.MULTILINE)
    assert len(body) <= 3, text
    assert f"--seed {seed}" in text and "phlox:" in text and "jax:" in text


def test_the_command(capsys):
    assert random_programs.main(["--start", "1", "--count", "2"]) == 0
    assert "'agree': 2" in capsys.readouterr().out
    assert random_programs.main(["--seed", "3"]) == 0
    assert "def program(jax):" in capsys.readouterr().out
