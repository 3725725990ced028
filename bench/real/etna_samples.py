"""Train ETNA's recurrent model on made daily series."""

import time
import warnings

import numpy as np
import pandas as pd
import torch
from stand_in import stand_in

stand_in(
    "hydra", "hydra_slayer", "omegaconf", "holidays", "ruptures", "plotly", "seaborn", "typer", "boto3", "botocore",
    "catboost", "tbats", "pmdarima", "saxpy", "optuna", "prophet", "tsfresh", "pytorch_forecasting", "loguru",
)  # fmt: skip
warnings.filterwarnings("ignore")

from etna.models.nn import RNNModel  # noqa: E402

torch.manual_seed(0)
rng = np.random.default_rng(0)
SERIES, DAYS, LENGTH, FEATURES, EPOCHS = 12, 600, 14, 9, 4


def made(number):
    outside = rng.normal(size=(DAYS, FEATURES))
    target = 10 + np.sin(np.arange(DAYS) * 2 * np.pi / 7) + outside[:, :3].sum(axis=1) + 0.1 * rng.normal(size=DAYS)
    columns = {f"outside_{column}": outside[:, column] for column in range(FEATURES)}
    days = pd.date_range("2020-01-01", periods=DAYS)
    return pd.DataFrame(
        {
            "timestamp": days,
            "segment": f"shop_{number}",
            "target": target,
            **columns,
            "weekday": days.weekday.astype(int),
        }
    )


model = RNNModel(
    decoder_length=LENGTH, encoder_length=LENGTH, input_size=FEATURES + 2, num_layers=2, hidden_size=16,
    train_batch_size=32,
    trainer_params={
        "max_epochs": EPOCHS, "accelerator": "cpu", "enable_checkpointing": False, "enable_progress_bar": False,
        "enable_model_summary": False,
    },
)  # fmt: skip

frames = [made(number) for number in range(SERIES)]
began = time.perf_counter()
samples = [sample for frame in frames for sample in model.net.make_samples(frame, LENGTH, LENGTH)]
model.raw_fit(samples)
print(f"loss {float(model.trainer.callback_metrics['train_loss']):.4f}")
print(f"seconds={time.perf_counter() - began:.3f}")
