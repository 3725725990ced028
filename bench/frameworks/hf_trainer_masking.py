"""Trains a masked language model with the Trainer. Planted: the collator asks of one token after the other; the cure masks
whole batches."""

import random
import tempfile

import torch
import transformers
from planted import parse_args, rate

transformers.logging.set_verbosity_error()
MASK, PAD = 3, 0


class WordMasking:
    def __call__(self, items):
        rows = torch.nn.utils.rnn.pad_sequence([torch.as_tensor(item["input_ids"]) for item in items], True, PAD)
        labels = torch.full_like(rows, -100)
        for row in range(len(rows)):
            for column in range(rows.shape[1]):
                if rows[row, column] != PAD and torch.rand(1) < 0.15:
                    labels[row, column] = rows[row, column]
                    rows[row, column] = MASK
        return {"input_ids": rows, "labels": labels}


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
        vocab_size=64, hidden_size=16, num_hidden_layers=1, num_attention_heads=1, intermediate_size=16
    )
    model = transformers.BertForMaskedLM(config)
    draw = random.Random(1)
    data = [{"input_ids": [draw.randrange(5, 64) for _ in range(draw.randrange(24, 32))]} for _ in range(2000)]
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
