"""Log-mel features are those of Whisper's feature extractor."""

import numpy as np
import pytest
import transformers

import phlox
import phlox.numpy as jnp
from phlox.errors import ShapeError
from phlox_models.whisper import log_mel

RNG = np.random.default_rng(0)
NOISE = (0.1 * RNG.normal(size=(2, 24000))).astype(np.float32)
TONE = np.sin(2 * np.pi * 440 * np.arange(16000) / 16000).astype(np.float32)[None]
LONG = np.tile(NOISE, 25)  # more than 30 seconds, which are cut


@pytest.mark.parametrize(
    "waveforms", [NOISE, TONE, np.zeros((1, 16000), np.float32), LONG], ids=["noise", "tone", "zero", "long"]
)
@pytest.mark.parametrize("mels", [80, 128])
def test_features_are_those_of_transformers(waveforms, mels):
    extractor = transformers.WhisperFeatureExtractor(feature_size=mels)
    theirs = extractor(list(waveforms), sampling_rate=16000, return_tensors="np")["input_features"]
    ours = phlox.jit(lambda x: log_mel(x, mels))(waveforms)
    assert ours.shape == (len(waveforms), 3000, mels)
    np.testing.assert_allclose(np.swapaxes(ours, 1, 2), theirs, atol=1e-4)


def test_single_waveforms_and_their_own_length():
    single = log_mel(NOISE[0], seconds=None)
    assert single.shape == (150, 80)
    np.testing.assert_allclose(single, log_mel(NOISE, seconds=None)[0], atol=1e-6)
    assert np.all(np.isfinite(phlox.grad(lambda x: log_mel(x, seconds=None).sum())(jnp.asarray(TONE[0]))))
    with pytest.raises(ShapeError, match="more than 200 samples"):
        log_mel(np.zeros(200, np.float32), seconds=None)
