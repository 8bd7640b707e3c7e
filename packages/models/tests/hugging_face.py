"""Small models of transformers with random weights, which phlox_models is compared with."""

import numpy as np
import torch
import transformers

VOCABULARY = 50
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LLAMA = {**SIZES, "num_key_value_heads": 2}
GPT = {"vocab_size": VOCABULARY, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "pad_token_id": 0}
GPT |= {"bos_token_id": 1, "eos_token_id": 2}
T5 = {"vocab_size": VOCABULARY, "d_model": 32, "d_kv": 6, "d_ff": 24, "num_layers": 2, "num_decoder_layers": 3}
T5 |= {"num_heads": 2, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 10}
T5 |= {"decoder_start_token_id": 0, "eos_token_id": 2, "pad_token_id": 0}


def rope(kind, **options):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **options}}


LLAMA3 = rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
#: (class without the prefix, configuration) of decoders
DECODERS = {
    "gpt2": ("GPT2LMHeadModel", GPT),
    "gpt2-untied": ("GPT2LMHeadModel", {**GPT, "tie_word_embeddings": False, "n_inner": 40}),
    "gpt2-hidden": ("GPT2Model", GPT),
    "gpt2-sequences": ("GPT2ForSequenceClassification", {**GPT, "num_labels": 3}),
    "gpt2-tokens": ("GPT2ForTokenClassification", {**GPT, "num_labels": 3}),
    "gptj": ("GPTJForCausalLM", {**GPT, "rotary_dim": 4}),
    "gptj-sequences": ("GPTJForSequenceClassification", {**GPT, "rotary_dim": 4}),
    "llama": ("LlamaForCausalLM", LLAMA),
    "llama-biases": ("LlamaForCausalLM", {**LLAMA, "attention_bias": True, "mlp_bias": True, "head_dim": 10}),
    "llama-tied": ("LlamaForCausalLM", {**LLAMA, "tie_word_embeddings": True}),
    "llama3": ("LlamaForCausalLM", {**LLAMA, **LLAMA3}),
    "llama-linear": ("LlamaForCausalLM", {**LLAMA, **rope("linear", factor=4.0)}),
    "llama-yarn": ("LlamaForCausalLM", {**LLAMA, **rope("yarn", factor=4.0, original_max_position_embeddings=16)}),
    "llama-hidden": ("LlamaModel", LLAMA),
    "llama-sequences": ("LlamaForSequenceClassification", {**LLAMA, "num_labels": 3}),
    "llama-tokens": ("LlamaForTokenClassification", {**LLAMA, "num_labels": 3}),
    "mistral": ("MistralForCausalLM", {**LLAMA, "sliding_window": 4}),
    "qwen2": (
        "Qwen2ForCausalLM",
        {**LLAMA, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1},
    ),
    "qwen3": ("Qwen3ForCausalLM", {**LLAMA, "head_dim": 10}),
    "gemma": ("GemmaForCausalLM", {**LLAMA, "head_dim": 10}),
    "phi3": ("Phi3ForCausalLM", LLAMA),
}
ENCODERS = {
    "bert": ("BertModel", SIZES),
    "bert-masked": ("BertForMaskedLM", SIZES),
    "bert-sequences": ("BertForSequenceClassification", {**SIZES, "num_labels": 3}),
    "bert-tokens": ("BertForTokenClassification", {**SIZES, "num_labels": 3}),
    "bert-answers": ("BertForQuestionAnswering", SIZES),
    "t5-encoder": ("T5EncoderModel", T5),
}
ENCODER_DECODERS = {
    "t5": ("T5ForConditionalGeneration", T5),
    "t5-gated": (
        "T5ForConditionalGeneration",
        {**T5, "num_decoder_layers": 2, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    ),
    "t5-hidden": ("T5Model", T5),
    "mt5": ("MT5ForConditionalGeneration", T5),
}
RNG = np.random.default_rng(0)
TOKENS = RNG.integers(3, VOCABULARY, (2, 9))
MASK = np.arange(9) < np.array([[9], [5]])
TOKENS[~MASK] = 0
OUTPUTS = RNG.integers(3, VOCABULARY, (2, 6))
OUTPUTS_MASK = np.arange(6) < np.array([[6], [4]])


def module(name, scale=0.3):
    """A module of transformers; its random weights are large, so that nothing is close to zero or to a norm."""
    kind, entries = {**DECODERS, **ENCODERS, **ENCODER_DECODERS}[name]
    cls = getattr(transformers, kind)
    torch.manual_seed(0)
    made = cls(cls.config_class(**entries)).eval()
    for value in made.parameters():
        value.data = torch.randn_like(value) * scale
    return made


def outputs(made, **inputs):
    """What a module computes, and its gradients are taken of: logits, hidden states, or (start, end) of answers."""
    out = made(**{name: torch.from_numpy(np.asarray(x).astype(np.int64)) for name, x in inputs.items()})
    if hasattr(out, "start_logits"):
        return torch.stack([out.start_logits, out.end_logits], -1)
    return out.logits if hasattr(out, "logits") else out.last_hidden_state
