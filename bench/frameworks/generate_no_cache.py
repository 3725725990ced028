"""Answers prompts with generate(). Planted: the model was loaded for training, without its key-value cache; the cure switches
that on. A step is a request."""

import torch
import transformers
from planted import parse_args, rate


def main():
    args = parse_args()
    transformers.set_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=512,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=512,
        use_cache=False,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    if args.variant == "fast":
        model.generation_config.use_cache = True
    total = 0
    with rate(args.steps):
        for _ in range(args.steps):
            prompt = torch.randint(5, 500, (4, 96))
            answer = model.generate(prompt, max_new_tokens=12, min_new_tokens=12, do_sample=False, pad_token_id=0)
            total += int(answer.sum())
    print("tokens", total)


main()
