"""Generation without a judge: forms of prompts and results, drawing, ends, callbacks, dtypes, errors, and export."""

import functools

import numpy as np
import pytest

import phlox
import phlox.export
import phlox.numpy as jnp
import phlox_models
import phlox_nn as nn
from phlox.errors import ArgumentError, DtypeError, ShapeError
from phlox_models import _generate, _sampling

SIZES = {"model_type": "gpt2", "vocab_size": 20, "n_positions": 24, "n_embd": 16, "n_layer": 1, "n_head": 2}
MODEL = phlox_models.build(SIZES)
PARAMS = phlox.tree.map(lambda x: x * 10, MODEL.init(phlox.random.key(3)))
generate = functools.partial(phlox_models.generate, MODEL, PARAMS, max_new_tokens=6)
TEXTS = [np.array([1, 2, 3, 4, 5]), np.array([7]), np.array([9, 8])]


def by_hand(text, count):
    """Greedy tokens without a cache."""
    tokens = list(text)
    for _ in range(count):
        tokens.append(int(jnp.argmax(MODEL.apply(PARAMS, np.array([tokens]))[0, -1])))
    return tokens


EXPECTED = [by_hand(text, 6) for text in TEXTS]


def test_all_forms_of_prompts_give_the_same_tokens():
    for text, tokens in zip(TEXTS, EXPECTED, strict=True):
        assert generate(text).tolist() == tokens
        assert generate(list(map(int, text))).tolist() == tokens
        assert generate(jnp.asarray(text)[None]).tolist() == [tokens]
    assert [tokens.tolist() for tokens in generate(TEXTS)] == EXPECTED
    padded = np.zeros((3, 5), int)
    mask = np.zeros((3, 5), bool)
    for n, text in enumerate(TEXTS):
        padded[n, : len(text)], mask[n, : len(text)] = text, True
    for rows, counts in ((padded, mask), (padded[:, ::-1], mask[:, ::-1])):
        turned = [text[::-1] for text in TEXTS] if counts[1, -1] else TEXTS
        tokens = generate(rows, mask=counts)
        assert tokens.shape == (3, 11)
        np.testing.assert_array_equal(tokens[:, :5], rows)
        assert tokens[:, 5:].tolist() == [by_hand(text, 6)[len(text) :] for text in turned]


def test_programs_are_compiled_once_for_a_bucket_of_lengths():
    first, following = _generate._programs(MODEL, _sampling.Sampling())
    generate(TEXTS[0])
    sizes = first._cache_size(), following._cache_size()
    for length in (1, 3, 7, 12):
        generate(np.arange(length), max_new_tokens=length)
    assert (first._cache_size(), following._cache_size()) == sizes


def test_texts_end_with_eos_and_stop_words():
    new = EXPECTED[0][5:]
    end = next(n for n, token in enumerate(new) if token not in new[:n] and n > 0)
    assert generate(TEXTS[0], eos=new[end]).tolist() == EXPECTED[0][: 6 + end]
    assert generate(TEXTS[0], eos=[19, new[end]]).tolist() == EXPECTED[0][: 6 + end]
    assert generate(TEXTS[0], stop=[[new[end - 1], new[end]]]).tolist() == EXPECTED[0][: 6 + end]
    assert generate(TEXTS[0], stop=[[19, 19, 19], [new[0]]]).tolist() == EXPECTED[0][:6]
    # A sequence that begins in the prompt is none of new tokens.
    assert len(generate(TEXTS[0], stop=[[5, new[0]]])) == 11
    rows = generate(np.stack([TEXTS[0], TEXTS[0][::-1]]), eos=new[end])
    assert rows[0, 6 + end :].tolist() == [new[end]] * (rows.shape[1] - 6 - end)


def test_the_callback_gets_tokens_as_they_come():
    columns = []
    tokens = generate(np.array([[1, 2], [3, 4]]), callback=columns.append)
    np.testing.assert_array_equal(np.stack(columns, axis=1), tokens[:, 2:])
    assert all(isinstance(column, np.ndarray) for column in columns)


def test_drawing_is_repeatable_and_varies_with_the_key():
    draws = [generate(TEXTS[0], temperature=5.0, key=phlox.random.key(seed)).tolist() for seed in (0, 0, 1, 2)]
    assert draws[0] == draws[1]
    assert draws[1] != draws[2] or draws[2] != draws[3]
    assert generate(TEXTS[0], temperature=5.0, top_k=1, key=phlox.random.key(0)).tolist() == EXPECTED[0]
    assert generate(TEXTS[0], temperature=5.0, top_p=1e-6, key=phlox.random.key(0)).tolist() == EXPECTED[0]
    assert generate(TEXTS[0], temperature=5.0, min_p=1.0, key=phlox.random.key(0)).tolist() == EXPECTED[0]


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        ({"top_k": 2}, [0, 1]),
        ({"top_p": 0.5}, [0]),
        ({"top_p": 0.51}, [0, 1]),
        ({"top_p": 0.9}, [0, 1, 2]),
        ({"min_p": 0.5}, [0, 1]),
        ({"min_p": 0.2}, [0, 1, 2, 3]),
        ({"top_k": 3, "min_p": 0.7}, [0]),
    ],
)
def test_restrictions_keep_the_most_probable(options, allowed):
    # After top_k=3 the rest is renormalized; probabilities are 0.5, 0.25, 0.125, 0.125 for temperature 1.
    logits = jnp.log(jnp.array([[0.5, 0.25, 0.15, 0.1]]))
    settings = _sampling.sampling(
        1.0, **{"top_k": None, "top_p": None, "min_p": None, "repetition_penalty": None, **options}
    )
    restricted = _sampling.restricted(logits, settings.structure, settings.numbers)
    assert np.nonzero(np.isfinite(restricted[0]))[0].tolist() == allowed


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (([1], {"temperature": -1}), ArgumentError, "temperature is -1"),
        (([1], {"temperature": float("nan")}), ArgumentError, "temperature is nan"),
        (([1], {"temperature": 1.0}), ArgumentError, "needs a key"),
        (([1], {"top_k": 3}), ArgumentError, "temperature=0"),
        (([1], {"temperature": 1.0, "top_k": 0}), ArgumentError, "top_k is 0"),
        (([1], {"temperature": 1.0, "top_p": 0.0}), ArgumentError, "top_p is 0.0"),
        (([1], {"temperature": 1.0, "top_p": 1.1}), ArgumentError, "top_p is 1.1"),
        (([1], {"temperature": 1.0, "min_p": -0.1}), ArgumentError, "min_p is -0.1"),
        (([1], {"repetition_penalty": 0}), ArgumentError, "repetition_penalty is 0"),
        (([], {}), ArgumentError, "prompt 0 is empty"),
        (([[1], []], {}), ArgumentError, "prompt 1 is empty"),
        ((np.zeros((0, 3), int), {}), ArgumentError, "no prompts"),
        (([20], {}), ArgumentError, "token 20, but the model has 20"),
        (([-1], {}), ArgumentError, "token -1"),
        (([2**40], {}), ArgumentError, "token 1099511627776"),
        (([1.5], {}), DtypeError, "prompts are tokens"),
        ((np.zeros((1, 1, 1), int), {}), ShapeError, "shape"),
        ((np.ones((2, 3), int), {"mask": np.ones((2, 2))}), ShapeError, "mask has shape"),
        ((np.ones((1, 3), int), {"mask": np.zeros((1, 3))}), ArgumentError, "prompt 0 is empty"),
        (([1], {"max_new_tokens": 0}), ArgumentError, "max_new_tokens is 0"),
        (([1], {"max_new_tokens": 24}), ArgumentError, "24 positions"),
        (([1], {"max_new_tokens": 2.0}), ArgumentError, "max_new_tokens is 2.0"),
        (([1], {"beams": 0}), ArgumentError, "beams is 0"),
        (([1], {"beams": 2, "temperature": 1.0, "key": phlox.random.key(0)}), ArgumentError, "beams do not go"),
        (([1], {"beams": 2, "callback": print}), ArgumentError, "beams do not go"),
        (([1], {"stop": [[]]}), ArgumentError, "stop sequence is empty"),
        (([1], {"stop": ["end"]}), ArgumentError, "is no token"),
    ],
)
def test_wrong_arguments_are_refused(arguments, error, words):
    prompt, options = arguments
    with pytest.raises(error, match=words):
        generate(prompt, **options)


def test_other_models_are_refused():
    layer = nn.Linear(2, 3)
    with pytest.raises(ArgumentError, match="does not generate tokens"):
        phlox_models.generate(layer, layer.init(phlox.random.key(0)), [1], max_new_tokens=1)
    model = phlox_models.build({**SIZES, "architectures": ["GPT2ForSequenceClassification"]})
    with pytest.raises(ArgumentError, match="GPT2ForSequenceClassification"):
        phlox_models.generate(model, model.init(phlox.random.key(0)), [1], max_new_tokens=1)


def test_weights_of_16_and_8_bits():
    half = phlox.tree.map(lambda x: x.astype(jnp.bfloat16), PARAMS)
    small = nn.Quantized(MODEL)
    tokens = np.array([TEXTS[0]])
    logits = MODEL.apply(PARAMS, tokens)
    for model, params, tolerance in ((MODEL, half, 0.03), (small, small.quantize(PARAMS), 0.03)):
        error = jnp.abs(model.apply(params, tokens) - logits).max() / jnp.abs(logits).max()
        assert error < tolerance
        assert phlox_models.generate(model, params, TEXTS, max_new_tokens=3)[0].shape == (8,)
    assert _generate.cache_dtype(half) == jnp.bfloat16


def test_prefill_and_decode_are_exported():
    prefill = phlox.jit(lambda params, *arguments: MODEL.apply(params, *arguments, method="prefill"))
    decode = phlox.jit(lambda params, *arguments: MODEL.apply(params, *arguments, method="decode"))
    cache = phlox_models.init_cache(MODEL, 1, 16)
    tokens, mask = np.array([TEXTS[0]], np.int32), np.ones((1, 5), bool)
    first = phlox.export.export(prefill)(PARAMS, tokens, mask, cache)
    logits, cache = phlox.export.deserialize(first.serialize()).call(PARAMS, tokens, mask, cache)
    token, position = jnp.argmax(logits, axis=-1).astype(jnp.int32), np.array([5], np.int32)
    following = phlox.export.export(decode)(PARAMS, token, position, cache)
    again, _ = phlox.export.deserialize(following.serialize()).call(PARAMS, token, position, cache)
    assert [int(token[0]), int(jnp.argmax(again))] == EXPECTED[0][5:7]


def test_rows_of_several_texts_do_not_mix():
    rows = np.array([[1, 2, 3, 4, 5, 7, 9, 8]])
    segments = np.array([[1, 1, 1, 1, 1, 2, 3, 3]])
    mask = segments[:, :, None] == segments[:, None, :]
    positions = np.array([[0, 1, 2, 3, 4, 0, 0, 1]])
    logits = MODEL.apply(PARAMS, rows, mask, positions=positions)[0]
    apart = jnp.concatenate([MODEL.apply(PARAMS, text[None])[0] for text in TEXTS])
    np.testing.assert_allclose(logits, apart, rtol=1e-5, atol=1e-5 * float(jnp.abs(apart).max()))


@pytest.mark.parametrize("dtype", ["uint8", "int64", "uint64"])
def test_numbers_of_numpy(dtype):
    tokens = generate(TEXTS[0].astype(dtype), max_new_tokens=np.int32(6))
    assert tokens.dtype == np.int32 and tokens.tolist() == EXPECTED[0]
    drawn = generate(TEXTS[0], temperature=np.float32(2), top_k=np.int64(3), key=phlox.random.key(0))
    np.testing.assert_array_equal(drawn, generate(TEXTS[0], temperature=2.0, top_k=3, key=phlox.random.key(0)))


@pytest.mark.parametrize("shape", [(0, 5), (2, 0)])
def test_no_tokens(shape):
    assert MODEL.apply(PARAMS, np.zeros(shape, int)).shape == (*shape, 20)


def test_a_text_without_an_axis_for_the_batch():
    with pytest.raises(ShapeError, match=r"\(batch, length\), got \(3,\)"):
        MODEL.apply(PARAMS, jnp.arange(3))


def test_a_cache_that_is_too_short():
    """The outputs are nan: keys and values behind the end would take the place of earlier ones."""
    cache = phlox_models.init_cache(MODEL, batch=1, length=4)
    first, cache = MODEL.apply(PARAMS, np.array([[1, 2, 3]]), cache=cache)
    assert np.isfinite(first).all()
    last, _ = MODEL.apply(PARAMS, np.array([[4]]), cache=cache)
    np.testing.assert_allclose(last, MODEL.apply(PARAMS, np.array([[1, 2, 3, 4]]))[:, 3:], rtol=1e-5, atol=1e-5)
    assert np.isnan(MODEL.apply(PARAMS, np.array([[4, 5]]), cache=cache)[0]).all()
