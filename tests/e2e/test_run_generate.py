"""Text that Transformers generates, in real processes of the real library."""

import pytest

pytest.importorskip("transformers")

WITHOUT_CACHE = """
import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
torch.set_num_threads(1)
config = LlamaConfig(
    vocab_size=128, hidden_size=256, intermediate_size=1024, num_hidden_layers=2, num_attention_heads=2,
    max_position_embeddings=256, use_cache=False,
)
model = LlamaForCausalLM(config).eval()


def answer(prompts):
    return model.generate(prompts, max_new_tokens=8, min_new_tokens=8, do_sample=False, pad_token_id=0)


for _ in range(10):
    print(answer(torch.randint(1, 128, (4, 160))).sum().item())
"""


def test_a_model_that_generates_without_its_cache(workspace):
    workspace.write("program.py", WITHOUT_CACHE)
    plain, watched = workspace.both("program.py")
    assert watched.out == plain.out
    report = watched.report
    mean, speed = report["generation"], report["throughput"]
    assert (mean["sequences"], mean["prompt_tokens"], mean["new_tokens"]) == (4, 160, 8)
    assert (mean["cached"], mean["longest_input"]) == (False, 167)
    assert 0 < mean["prefill_s"] < mean["decode_s"] < speed["step_s"]["mean"]
    assert speed["tokens_per_s"] == pytest.approx(4 * 8 * speed["steps_per_s"])
    assert 0 < watched.steps <= 10
    verdict = report["verdict"]
    assert (verdict["pattern"], verdict["cause"]) == ("recompute-bound", "kv-cache")
    assert verdict["culprit"]["function"] == "answer"
