"""Train darts' NLinear (of 2025) on made daily series with covariates."""

import time

import numpy as np
import pandas as pd
from stand_in import stand_in

stand_in("holidays", "nfoursid", "pyod", "shap", "statsmodels")  # for other models

from darts import TimeSeries  # noqa: E402
from darts.models import NLinearModel  # noqa: E402

rng = np.random.default_rng(0)
DAYS, SERIES = 1500, 4


def made(days):
    times = pd.date_range("2000-01-01", periods=days, freq="D")
    values = np.sin(np.arange(days) / 58) + 0.1 * rng.standard_normal(days)
    return TimeSeries.from_times_and_values(times, values.astype(np.float32))


model = NLinearModel(
    input_chunk_length=28, output_chunk_length=7, batch_size=32, n_epochs=50, random_state=0,
    pl_trainer_kwargs={
        "accelerator": "cpu", "logger": False, "enable_progress_bar": False, "enable_checkpointing": False,
        "enable_model_summary": False,
    },
)  # fmt: skip
targets = [made(DAYS) for _ in range(SERIES)]
covariates = [made(DAYS) for _ in range(SERIES)]

began = time.perf_counter()
model.fit(targets, past_covariates=covariates)
print(f"seconds={time.perf_counter() - began:.3f}")
