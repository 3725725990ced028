"""Trains a masked language model with the Trainer. Planted: the collator decides on each token in Python; the cure masks
whole batches."""

import random
import tempfile

import torch
import transformers
from planted import parse_args, rate

transformers.logging.set_verbosity_error()
MASK, PAD = 3, 0


class WordMasking:
    def __init__(self):
        self.draw = random.Random(0)

    def __call__(self, items):
        longest = max(len(item["input_ids"]) for item in items)
        rows, labels = [], []
        for item in items:
            row, label = [], []
            for token in item["input_ids"]:
                if self.draw.random() < 0.15:
                    row.append(MASK if self.draw.random() < 0.8 else self.draw.randrange(5, 500))
                    label.append(token)
                else:
                    row.append(token)
                    label.append(-100)
            while len(row) < longest:
                row.append(PAD)
                label.append(-100)
            rows.append(row)
            labels.append(label)
        return {"input_ids": torch.tensor(rows), "labels": torch.tensor(labels)}


class BatchMasking:
    def __call__(self, items):
        rows = torch.nn.utils.rnn.pad_sequence([torch.as_tensor(item["input_ids"]) for item in items], True, PAD)
        chosen = (torch.rand(rows.shape) < 0.15) & (rows != PAD)
        labels = torch.where(chosen, rows, -100)
        return {"input_ids": torch.where(chosen, MASK, rows), "labels": labels}


def main():
    args = parse_args()
    transformers.set_seed(0)
    config = transformers.BertConfig(
        vocab_size=512, hidden_size=16, num_hidden_layers=1, num_attention_heads=1, intermediate_size=16
    )
    model = transformers.BertForMaskedLM(config)
    draw = random.Random(1)
    data = [{"input_ids": [draw.randrange(5, 500) for _ in range(draw.randrange(200, 256))]} for _ in range(2000)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder,
            max_steps=args.steps,
            per_device_train_batch_size=64,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
        )
        collate = WordMasking() if args.variant == "slow" else BatchMasking()
        trainer = transformers.Trainer(model, arguments, train_dataset=data, data_collator=collate)
        trainer.remove_callback(transformers.PrinterCallback)
        with rate(args.steps):
            result = trainer.train()
    print("loss", result.training_loss)


main()
