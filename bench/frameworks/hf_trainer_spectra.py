"""Fine-tunes a small GPT-2 with the Trainer. Planted: a callback computes the singular values of all matrices after each
step; the cure does so every hundred steps."""

import json
import tempfile

import numpy as np
import torch
import transformers
from planted import parse_args, rate

transformers.logging.set_verbosity_error()


class Spectra(transformers.TrainerCallback):
    def __init__(self, file, every):
        self.file, self.every = file, every

    def on_step_end(self, args, state, control, model=None, **more):
        if state.global_step % self.every:
            return
        for name, weight in model.named_parameters():
            if weight.ndim == 2:
                values = np.linalg.svd(weight.detach().numpy(), compute_uv=False)
                self.file.write(json.dumps({"step": state.global_step, "name": name, "largest": float(values[0])}))


def main():
    args = parse_args()
    transformers.set_seed(0)
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=256, n_positions=64, n_embd=96, n_layer=2, n_head=2)
    )
    ids = torch.randint(0, 256, (512, 32))
    data = [{"input_ids": row, "labels": row} for row in ids]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w") as file:
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
        callback = Spectra(file, every=1 if args.variant == "slow" else 100)
        trainer = transformers.Trainer(model, arguments, train_dataset=data, callbacks=[callback])
        trainer.remove_callback(transformers.PrinterCallback)
        with rate(args.steps):
            result = trainer.train()
    print("loss", result.training_loss)


main()
