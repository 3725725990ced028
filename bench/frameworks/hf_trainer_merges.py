"""Fine-tunes a small BERT with the Trainer. Planted: the data set merges byte pairs in Python for every item it gives;
the cure does that once for all."""

import random
import tempfile

import torch
import transformers
from planted import parse_args, rate

transformers.logging.set_verbosity_error()
LETTERS = "etaoinshrdlucmfw"
MERGES = [(a, b) for a in LETTERS for b in LETTERS]
NUMBERS = {a + b: 32 + number for number, (a, b) in enumerate(MERGES)} | {c: n for n, c in enumerate(LETTERS)}


class Reviews(torch.utils.data.Dataset):
    def __init__(self, count, in_advance):
        draw = random.Random(0)
        self.texts = ["".join(draw.choices(LETTERS, k=48)) for _ in range(count)]
        self.ready = [self.encode(text) for text in self.texts] if in_advance else None

    def encode(self, text):
        tokens = self.merge(list(text))
        return torch.tensor([NUMBERS[token] for token in tokens][:24])

    def merge(self, tokens):
        for pair in MERGES:
            at = 0
            while at < len(tokens) - 1:
                if (tokens[at], tokens[at + 1]) == pair:
                    tokens[at : at + 2] = [tokens[at] + tokens[at + 1]]
                at += 1
        return tokens

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        ids = self.ready[index] if self.ready else self.encode(self.texts[index])
        return {"input_ids": ids, "labels": index % 2}


def main():
    args = parse_args()
    transformers.set_seed(0)
    config = transformers.BertConfig(
        vocab_size=512, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
    )
    model = transformers.BertForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder,
            max_steps=args.steps,
            per_device_train_batch_size=8,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
        )
        pad = transformers.DefaultDataCollator()

        def collate(items):
            length = max(len(item["input_ids"]) for item in items)
            for item in items:
                item["input_ids"] = torch.nn.functional.pad(item["input_ids"], (0, length - len(item["input_ids"])))
            return pad(items)

        data = Reviews(256, in_advance=args.variant == "fast")
        trainer = transformers.Trainer(model, arguments, train_dataset=data, data_collator=collate)
        trainer.remove_callback(transformers.PrinterCallback)
        with rate(args.steps):
            result = trainer.train()
    print("loss", result.training_loss)


main()
