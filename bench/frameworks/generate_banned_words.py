"""Answers prompts with generate(). Planted: a logits processor looks at each word of the vocabulary in Python; the cure
masks them at once. A step is a request."""

import torch
import transformers
from planted import parse_args, rate

VOCABULARY = [f"word{number}" for number in range(4000)]
BANNED = {f"word{number}" for number in range(0, 4000, 2)}


class BanWords(transformers.LogitsProcessor):
    def __call__(self, input_ids, scores):
        for number, word in enumerate(VOCABULARY):
            if word in BANNED:
                scores[:, number] = -float("inf")
        return scores


class BanAtOnce(transformers.LogitsProcessor):
    def __init__(self):
        self.banned = torch.tensor([word in BANNED for word in VOCABULARY])

    def __call__(self, input_ids, scores):
        return scores.masked_fill(self.banned, -float("inf"))


def main():
    args = parse_args()
    transformers.set_seed(0)
    config = transformers.GPT2Config(vocab_size=4000, n_positions=128, n_embd=32, n_layer=2, n_head=2)
    model = transformers.GPT2LMHeadModel(config).eval()
    processors = transformers.LogitsProcessorList([BanWords() if args.variant == "slow" else BanAtOnce()])
    total = 0
    with rate(args.steps):
        for _ in range(args.steps):
            prompt = torch.randint(5, 500, (4, 16))
            answer = model.generate(
                prompt,
                max_new_tokens=16,
                min_new_tokens=16,
                do_sample=False,
                pad_token_id=0,
                logits_processor=processors,
            )
            total += int(answer.sum())
    print("tokens", total)


main()
