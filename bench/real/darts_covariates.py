"""Train darts' GRU (of 2021) on made prices of business days, with covariates that reach further than they do."""

import time

import numpy as np
import pandas as pd
from stand_in import stand_in

stand_in("IPython", "holidays", "statsmodels", "filterpy")  # for notebooks and for other models
np.float = float  # went in NumPy 1.24
pd.Int64Index = type("Int64Index", (pd.Index,), {})  # went in pandas 2; series with dates do not use it
pd._typing.FilePathOrBuffer = object  # for annotations

from darts import TimeSeries  # noqa: E402
from darts.models import BlockRNNModel  # noqa: E402

rng = np.random.default_rng(0)
DAYS, SERIES = 1000, 4


def made(days):
    times = pd.date_range("2000-01-01", periods=days, freq="B")
    values = np.sin(np.arange(days) / 58) + 0.1 * rng.standard_normal(days)
    return TimeSeries.from_times_and_values(times, values.astype(np.float32))


model = BlockRNNModel(
    input_chunk_length=28, output_chunk_length=7, model="GRU", hidden_size=25, batch_size=32, n_epochs=12,
    random_state=0, torch_device_str="cpu",
)  # fmt: skip
targets = [made(DAYS) for _ in range(SERIES)]
covariates = [made(DAYS + 250) for _ in range(SERIES)]

began = time.perf_counter()
model.fit(targets, past_covariates=covariates)
print(f"seconds={time.perf_counter() - began:.3f}")
