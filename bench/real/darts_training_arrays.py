"""Train darts' GRU (of 2020) on one made daily series."""

import time

import numpy as np
import pandas as pd
from stand_in import stand_in

stand_in("IPython", "holidays", "statsmodels")  # for notebooks and for other models

np.float = float  # went in NumPy 1.24

from darts import TimeSeries  # noqa: E402
from darts.models import RNNModel  # noqa: E402

rng = np.random.default_rng(0)
DAYS = 2000
days = pd.date_range("2000-01-01", periods=DAYS, freq="D")
values = np.sin(np.arange(DAYS) / 58) + 0.1 * rng.standard_normal(DAYS)
series = TimeSeries.from_times_and_values(days, values)
model = RNNModel(
    input_length=28, output_length=7, model="GRU", hidden_size=25, batch_size=32, n_epochs=8, random_state=0,
    torch_device_str="cpu",
)  # fmt: skip

began = time.perf_counter()
model.fit(series)
print(f"seconds={time.perf_counter() - began:.3f}")
