"""A decode step of GPT-2 small beside PyTorch: one token, with 128 cached ones.

Both run in one process, step by step in turn, and the process prints the median of the ratios of pairs.
"""

from __future__ import annotations

from ..case import started

_PROGRAM = """
import statistics, time
import numpy as np, torch, phlox, phlox.numpy as jnp, phlox_models
import torch.nn.functional as F

LENGTH, SIZE, HEADS, BLOCKS, VOCABULARY = 128, 768, 12, 12, 50257
torch.manual_seed(0)

def linear(ins, outs):
    return torch.randn(outs, ins, dtype=torch.DTYPE) * 0.02, torch.zeros(outs, dtype=torch.DTYPE)

table, places = torch.randn(VOCABULARY, SIZE).to(torch.DTYPE), torch.randn(1024, SIZE).to(torch.DTYPE)
norm = torch.ones(SIZE, dtype=torch.DTYPE), torch.zeros(SIZE, dtype=torch.DTYPE)
blocks = [[linear(SIZE, 3 * SIZE), linear(SIZE, SIZE), linear(SIZE, 4 * SIZE), linear(4 * SIZE, SIZE)]
          for _ in range(BLOCKS)]
caches = [[torch.zeros(1, HEADS, LENGTH, SIZE // HEADS, dtype=torch.DTYPE) for _ in "kv"] for _ in range(BLOCKS)]

def theirs():
    with torch.inference_mode():
        x = table[torch.tensor([[5]])] + places[LENGTH - 1]
        for (joint, out, up, down), cache in zip(blocks, caches):
            q, k, v = F.linear(F.layer_norm(x, (SIZE,), *norm), *joint).chunk(3, -1)
            for old, new in zip(cache, (k, v)):
                old[:, :, -1] = new.view(1, HEADS, -1)
            y = F.scaled_dot_product_attention(q.view(1, HEADS, 1, -1), *cache)
            x = x + F.linear(y.reshape(1, 1, SIZE), *out)
            x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, (SIZE,), *norm), *up), approximate="tanh"), *down)
        return F.linear(F.layer_norm(x, (SIZE,), *norm), table).float().numpy()

sizes = {"vocab_size": VOCABULARY, "n_positions": 1024, "n_embd": SIZE, "n_layer": BLOCKS, "n_head": HEADS}
model = phlox_models.build({"model_type": "gpt2", **sizes})
params = model.init(phlox.random.key(0), dtype=jnp.DTYPE)
cache = phlox_models.init_cache(model, 1, LENGTH, jnp.DTYPE)
cache["index"] = jnp.int32(LENGTH - 1)
cache["mask"] = jnp.ones((1, LENGTH), bool)
token, position = jnp.array([5]), jnp.array([LENGTH - 1])

@phlox.jit(donate_argnums=1)
def decode(params, cache):
    logits, new = model.apply(params, token, position, cache, method="decode")
    return logits, {**new, "index": cache["index"]}

def mine():
    global cache
    logits, cache = decode(params, cache)
    np.asarray(logits)

ratios = []
for turn in range(-2, 15):
    seconds = {}
    for run in (theirs, mine) if turn % 2 else (mine, theirs):
        start = time.perf_counter()
        run()
        seconds[run] = time.perf_counter() - start
    if turn >= 0:
        ratios.append(seconds[mine] / seconds[theirs])
print(statistics.median(ratios))
"""

for _dtype in ("float32", "bfloat16"):
    started(
        f"generation/GPT-2 small, decode step to torch, {_dtype}",
        _PROGRAM.replace("DTYPE", _dtype),
        libraries=("phlox",),
        budget=1.2,
        unit="of 1",
        needs=("torch",),
        quick=False,
    )
