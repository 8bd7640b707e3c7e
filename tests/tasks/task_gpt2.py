"""A folder with a small GPT-2 of random weights, as transformers writes it, and what transformers computes with it."""

import sys

import numpy as np
import torch
import transformers
from task_data import NEW_TOKENS, TOKENS

SIZES = {"vocab_size": 50, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4}


def write(folder):
    """Writes the model, and `expected.npz` with its logits and its greedy continuation of TOKENS."""
    torch.manual_seed(0)
    config = transformers.GPT2Config(**SIZES, bos_token_id=None, eos_token_id=None)
    model = transformers.GPT2LMHeadModel(config).eval()
    # Without this all biases are 0 and all scales 1, and a wrong mapping of their names would stay unseen.
    for value in model.parameters():
        value.data += torch.randn_like(value) * 0.2
    model.save_pretrained(folder)
    tokens = torch.from_numpy(TOKENS.astype(np.int64))
    with torch.no_grad():
        logits = model(tokens).logits.numpy()
        texts = model.generate(tokens, max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0).numpy()
    np.savez(f"{folder}/expected.npz", logits=logits, texts=texts)


if __name__ == "__main__":
    write(sys.argv[1])
