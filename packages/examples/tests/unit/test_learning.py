"""The programs that learn without a given training set, or in other forms than `fit`, beside what is known of them."""

import itertools
import math

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from example_runs import results, run
from phlox_examples import byol, chat, diffusion, gpt_j, perceiver_io, ppo, stream
from phlox_examples.options import parse
from phlox_examples.report import Estimate


def test_the_best_answer_is_the_mean_of_the_noise():
    """Beside sums over many points of the distribution, weighted by how probable they are."""
    x, t = jnp.array([[0.3, -0.2], [1.4, 0.1], [-0.6, 1.0]]), jnp.array([150, 30, 100])
    points = np.asarray(diffusion.drawn(phlox.random.key(0), 400_000))
    found = np.asarray(diffusion.best(x, t))
    for place, time, answer in zip(np.asarray(x), np.asarray(t), found, strict=True):
        kept = diffusion.SIGNAL[time]
        e = (place - np.sqrt(kept) * points) / np.sqrt(1 - kept)
        weight = np.exp(-(e**2).sum(1) / 2)
        expected = (weight[:, None] * e).sum(0) / weight.sum()
        np.testing.assert_allclose(answer, expected, atol=0.02)


def test_samples_by_the_best_answer_have_the_distribution():
    path = np.asarray(phlox.jit(lambda key: diffusion.sampled(diffusion.best, key, 4000))(phlox.random.key(0)))
    assert path.shape == (diffusion.TIMES + 1, 4000, 2)
    found = diffusion.statistics(path[-1])
    error = math.sqrt(1 / 8 * 7 / 8 / 4000)
    np.testing.assert_allclose(found["shares"], 1 / 8, atol=5 * error)
    assert found["width"] == pytest.approx(diffusion.WIDTH, rel=0.05)
    assert found["astray"] == 0
    drawn = diffusion.statistics(np.asarray(diffusion.drawn(phlox.random.key(1), 4000)))
    assert drawn["width"] == pytest.approx(diffusion.WIDTH, rel=0.03)


def test_the_network_comes_near_the_best_answer():
    found = diffusion.train(parse(["diffusion", "--steps", "1500", "--batch-size", "256", "--samples", "500"]))
    assert diffusion.SIGNAL[0] == 1 and diffusion.SIGNAL[-1] < 1e-3
    assert found["losses"][-1] < 1.12 * found["least"]
    assert found["excess"] == pytest.approx(found["losses"][-1] - found["least"], abs=0.02)
    shares = np.array(diffusion.statistics(found["path"][-1])["shares"])
    assert (shares > 0.04).all()


def test_errors_of_learning_rates_are_those_of_theory():
    found = stream.train(parse(["stream", "--batches", "120"]))
    rates = slice(1, -1)  # the slowest has not settled by then, and the fastest has rare large errors
    np.testing.assert_allclose(
        found["mean"][: len(stream.RATES)][rates], stream.known_excess(stream.RATES)[rates], rtol=0.25
    )
    assert found["mean"][-2] < found["mean"][: len(stream.RATES)].min(), "no learner is better than Kalman's filter"
    items = (120 - found["settled"]) * stream.BATCH
    drifted = stream.DIMENSIONS * stream.DRIFT * items / 2
    assert found["mean"][-1] == pytest.approx(drifted, rel=0.5)


def test_the_source_has_no_end_and_goes_on_where_it_was():
    some = list(itertools.islice(stream.source(3), 4))
    again = next(itertools.islice(stream.source(3), 3, None))
    np.testing.assert_array_equal(some[3]["x"], again["x"])
    np.testing.assert_array_equal(some[3]["y"], again["y"])
    assert not np.array_equal(some[3]["x"], some[2]["x"])
    assert some[0]["x"].shape == (stream.BATCH, stream.DIMENSIONS)


def test_a_pole_falls_as_fast_as_it_must():
    """A pole on a free cart falls at the rate sqrt(g / (l (4/3 - m / total))), for small angles, in steps of Euler."""
    state, share = jnp.array([0.0, 0.0, 1e-3, 0.0]), ppo.POLE / (ppo.POLE + ppo.CART)
    fall = phlox.jit(lambda state: (ppo.pushed(state, 0) + ppo.pushed(state, 1)) / 2)  # both pushes: none
    angles = []
    for _ in range(40):
        state = fall(state)
        angles.append(float(state[2]))
    h = ppo.TIME * np.sqrt(ppo.GRAVITY / (ppo.HALF_LENGTH * (4 / 3 - share)))
    steps = np.arange(1, 41)
    np.testing.assert_allclose(angles, 1e-3 * ((1 + h) ** steps + (1 - h) ** steps) / 2, rtol=1e-3)


def test_advantages_are_sums_of_errors_up_to_the_end_of_an_episode():
    random = np.random.default_rng(0)
    values, following = random.standard_normal((2, 6, 1)).astype("float32")
    fell = np.array([0, 0, 1, 0, 0, 0], bool)[:, None]
    ended = np.array([0, 0, 1, 0, 1, 0], bool)[:, None]
    found = np.asarray(ppo.advantages(*map(jnp.asarray, (values, following, fell, ended))))[:, 0]
    errors = 1 + ppo.DISCOUNT * np.where(fell, 0, following) - values
    fade = ppo.DISCOUNT * ppo.FADE
    expected = [
        sum(fade ** (j - i) * errors[j, 0] for j in range(i, last + 1)) for i, last in enumerate([2, 2, 2, 4, 4, 5])
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_carts_learn_to_balance():
    found = ppo.train(parse(["ppo", "--rounds", "30", "--carts", "32"]))
    assert found["before"].mean() < 50
    assert found["after"].mean() > 400
    assert max(row["return"] for row in found["rounds"][-5:]) > 150


def test_products_of_rotated_queries_depend_on_distances():
    q, k = phlox.random.normal(phlox.random.key(0), (2, 16))
    alone = lambda x, position: gpt_j.rotated(jnp.zeros((9, 1, 16)).at[position, 0].set(x), 8)[position, 0]
    product = lambda i, j: float(alone(q, i) @ alone(k, j))
    assert product(5, 2) == pytest.approx(product(8, 5), rel=1e-4)
    assert abs(product(5, 2) - product(5, 3)) > 1e-3
    np.testing.assert_array_equal(alone(q, 7)[8:], q[8:])
    np.testing.assert_allclose(jnp.linalg.norm(alone(q, 7)), jnp.linalg.norm(q), rtol=1e-5)


def test_sums_are_written_backwards():
    (text,) = gpt_j.written(np.array([307]), np.array([486]), 3)
    assert "".join(gpt_j.SIGNS[i] for i in text) == "703+684=3970"
    batches, tests = gpt_j.sums(parse(["gpt-j", "--steps", "3", "--batch-size", "50", "--digits", "2"]))
    assert batches.shape == (3, 50, 9) and tests.shape == (100, 9)
    learnt = {tuple(row[:5]) for row in batches.reshape(-1, 9).tolist()}
    assert not learnt & {tuple(row[:5]) for row in tests.tolist()}


def test_two_digits_are_added():
    words = "gpt-j --digits 1 --steps 400 --features 32 --layers 1 --batch-size 64"
    found = gpt_j.train(parse(words.split()))
    assert found["rows"][-1]["loss"] < 0.5 * found["rows"][0]["loss"]
    assert found["rows"][-1]["right"] > 0.3, "of ten sums that it has not seen; by chance one in nineteen"
    np.testing.assert_allclose(found["attended"].sum(-1), 1, rtol=1e-5)


def test_inputs_have_no_order():
    params = perceiver_io.model.init(phlox.random.key(0))
    random = np.random.default_rng(0)
    ink, places = random.standard_normal((2, 64)).astype("float32"), np.tile(np.arange(64), (2, 1))
    seen = random.uniform(size=(2, 64)) < 0.5
    order = random.permutation(64)
    scores, pixels = perceiver_io.model.apply(params, ink, places, seen)
    again = perceiver_io.model.apply(params, ink[:, order], places[:, order], seen[:, order])
    np.testing.assert_allclose(scores, again[0], atol=1e-5)
    np.testing.assert_allclose(pixels, again[1], atol=1e-5)
    # What is not seen changes nothing, and as many inputs as one likes are taken.
    chosen = np.stack([np.flatnonzero(row)[:20] for row in seen])
    few = perceiver_io.model.apply(params, np.take_along_axis(ink, chosen, 1), chosen, np.ones((2, 20), bool))
    rest = np.zeros((2, 64), bool)
    np.put_along_axis(rest, chosen, True, 1)
    hidden = perceiver_io.model.apply(params, np.where(rest, ink, 99.0), places, rest)
    np.testing.assert_allclose(few[0], hidden[0], atol=1e-5)


def test_any_number_of_pixels_is_seen():
    seen = np.asarray(perceiver_io.random_part(phlox.random.key(0), 4000)).sum(1)
    assert seen.min() == 4 and seen.max() == 64
    assert seen.mean() == pytest.approx(34, abs=1.5)


def test_a_probe_finds_what_is_linear():
    random = np.random.default_rng(0)
    labels = np.arange(600) % 10
    features = np.eye(10)[labels] + 0.1 * random.standard_normal((600, 10))
    found = byol.probe(features[:400], labels[:400], features[400:], labels[400:], 0)
    assert found[20] > 0.99 and list(found) == list(byol.LABELS)
    noise = byol.probe(random.standard_normal((400, 10)), labels[:400], features[400:], labels[400:], 0)
    assert noise[20] < 0.3


def test_the_target_gets_no_gradient_and_equal_answers_no_loss():
    params = byol.model.init(phlox.random.key(0))
    images = phlox.random.normal(phlox.random.key(1), (4, 8, 8, 1))
    slope = phlox.grad(byol.loss, argnums=1)(params, params, images, images)
    assert all(float(jnp.abs(leaf).max()) == 0 for leaf in phlox.tree.leaves(slope))
    unit = np.asarray(byol.unit(images.reshape(4, -1)))
    np.testing.assert_allclose((unit**2).sum(1), 1, rtol=1e-4)
    # Both ways: 2 - 2 cos of the angle between prediction and target, averaged.
    assert 0 < float(byol.loss(params, params, images, images)) < 4


def test_an_estimate_of_the_time_that_is_left():
    seconds = iter([0.0, 1.0, 2.0, *(2.0 + 0.5 * n for n in range(1, 1000))])
    estimate = Estimate(1000, clock=lambda: next(seconds))
    lines = {done: line for done in range(1, 301) if (line := estimate.text(done)) is not None}
    # The first three steps compile; after ten more, at half a second each, 5 seconds were measured.
    assert list(lines) == [13, 133, 253]
    assert lines[13] == "Step 13 of 1000; about 8:14 minutes are left at this speed."
    short = Estimate(40, clock=iter(np.arange(0, 40, 0.6)).__next__)
    assert [short.text(done) for done in range(1, 41)] == [None] * 40, "less than 20 seconds are left"


def test_a_quick_run_leaves_the_full_one_alone(tmp_path):
    run("stream", "--batches", "20", "--out", tmp_path)
    full = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    run("stream", "--quick", "--out", tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in full} == full
    assert results(tmp_path, "stream", quick=True)["settings"]["batches"] == 40


def test_dialogues_as_tokens():
    tokenizer = chat.Tokenizer.of_dialogues()
    said = chat.turns("Ada", "Nepal", 0)
    tokens, learnt = chat.dialogue(tokenizer, said)
    assert tokens.shape == learnt.shape == (chat.LENGTH,)
    ends = [i for i, word in enumerate(tokenizer.words[int(t)] for t in tokens) if word == "<end>"]
    assert len(ends) == 3 and learnt[ends].all() and not learnt[ends[-1] + 1 :].any()
    assert tokenizer.decode(tokens[learnt]) == " ".join(answer for _, answer in said)
    longest = max(
        len(tokenizer.encode(f"{a} {b}")) for n in chat.NAMES for c in chat.CAPITALS for a, b in chat.turns(n, c, 1)
    )
    assert longest + 3 < chat.LENGTH / 2


def test_names_and_countries_of_the_examination_never_met():
    learn, exam = chat.split(0)
    assert len(learn) + len(exam) == 2 * len(chat.NAMES) * len(chat.CAPITALS)
    assert not {pair[:2] for pair in learn} & {pair[:2] for pair in exam}
    assert {pair[0] for pair in learn} == set(chat.NAMES) and {pair[1] for pair in learn} == set(chat.CAPITALS)


def test_a_model_learns_to_answer(tmp_path):
    run("chat", "--steps", "250", "--exam", "20", "--out", tmp_path)
    found = results(tmp_path, "chat")
    assert found["dialogues_right"] > 0.8 and found["dialogues_right_in_16_bits"] > 0.6
    assert {path.name for path in (tmp_path / "chat-model").iterdir()} == {
        "config.json", "model.safetensors", "tokenizer.json"
    }  # fmt: skip
    name, country, order = chat.split(0)[1][0]
    assert [question for question, _ in found["dialogue"]] == [
        question for question, _ in chat.turns(name, country, order)
    ]


def test_features_learnt_without_labels_beat_raw_pixels(tmp_path):
    run("byol", "--epochs", "60", "--out", tmp_path)
    found = results(tmp_path, "byol")
    learnt, pixels = found["probes"]["learnt"], found["probes"]["pixels"]
    for count in ("1", "2", "5"):
        assert learnt[count] > pixels[count] + 0.04
    assert found["epochs"][-1]["spread"] > 0.5, "the answers have not become the same"


def test_more_pixels_say_more(tmp_path):
    run("perceiver-io", "--epochs", "8", "--out", tmp_path)
    found = results(tmp_path, "perceiver-io")
    assert found["accuracy"][-1] > 0.6 and found["accuracy"][-1] > found["accuracy"][0] + 0.3
    assert found["error"][-1] < 0.95 * found["error_of_mean"][-1], "hidden pixels are known better than by the mean"
