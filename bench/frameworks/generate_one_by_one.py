"""Answers prompts with generate(). Planted: it is called for one prompt after the other; the cure hands over sixteen at once.
A step is a prompt."""

import torch
import transformers
from planted import parse_args, rate


def answer(model, prompts):
    return model.generate(prompts, max_new_tokens=16, min_new_tokens=16, do_sample=False, pad_token_id=0)


def main():
    args = parse_args()
    transformers.set_seed(0)
    config = transformers.GPT2Config(vocab_size=512, n_positions=128, n_embd=64, n_layer=3, n_head=2)
    model = transformers.GPT2LMHeadModel(config).eval()
    prompts = torch.randint(5, 500, (args.steps, 16))
    total = 0
    with rate(args.steps):
        for chunk in prompts.split(1 if args.variant == "slow" else 16):
            total += int(answer(model, chunk).sum())
    print("tokens", total)


main()
