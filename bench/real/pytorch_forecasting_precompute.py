"""Train pytorch-forecasting's N-BEATS on a hundred made series; `precompute` is used where the version has it."""

import time
from inspect import signature

import lightning.pytorch as pl
import numpy as np
import pandas as pd
from pytorch_forecasting import NBeats, TimeSeriesDataSet

pl.seed_everything(0)
rng = np.random.default_rng(0)
SERIES, LENGTH = 100, 90
table = pd.DataFrame({
    "series": np.repeat(np.arange(SERIES), LENGTH),
    "time_idx": np.tile(np.arange(LENGTH), SERIES),
    "value": (rng.standard_normal((SERIES, LENGTH)).cumsum(axis=1) + 50).ravel(),
})  # fmt: skip
faster = {"precompute": True} if "precompute" in signature(TimeSeriesDataSet).parameters else {}
training = TimeSeriesDataSet(
    table, time_idx="time_idx", target="value", group_ids=["series"], time_varying_unknown_reals=["value"],
    max_encoder_length=40, max_prediction_length=10, **faster,
)  # fmt: skip
model = NBeats.from_dataset(training, learning_rate=1e-3, widths=[32, 128], backcast_loss_ratio=0.1)
trainer = pl.Trainer(
    max_epochs=12, accelerator="cpu", gradient_clip_val=0.1, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)  # fmt: skip

began = time.perf_counter()
loader = training.to_dataloader(train=True, batch_size=64, num_workers=0)
trainer.fit(model, loader)
print(f"seconds={time.perf_counter() - began:.3f}")
