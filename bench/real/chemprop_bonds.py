"""Train chemprop's message-passing network on made molecules, as its notebook does."""

import random
import time

import numpy as np
from stand_in import stand_in

stand_in("astartes")  # for splits by structure

from chemprop import data, featurizers, models, nn  # noqa: E402
from lightning import pytorch as pl  # noqa: E402

pl.seed_everything(0)
rng = random.Random(0)
PARTS = ("C", "CC", "N", "O", "C(=O)N", "C(C)", "c1ccccc1", "c1ccncc1", "C(F)(F)", "S", "C1CCNCC1", "C=C")
MOLECULES, LONGEST, EPOCHS = 300, 40, 16


def made():
    return "".join(rng.choice(PARTS) for _ in range(rng.randint(LONGEST // 2, LONGEST))) + "C"


points = [data.MoleculeDatapoint.from_smi(made(), np.array([rng.gauss(0, 1)])) for _ in range(MOLECULES)]
dataset = data.MoleculeDataset(points, featurizers.SimpleMoleculeMolGraphFeaturizer())
dataset.normalize_targets()
loader = data.build_dataloader(dataset, batch_size=50, num_workers=0)
network = models.MPNN(nn.BondMessagePassing(d_h=64), nn.MeanAggregation(), nn.RegressionFFN(input_dim=64))
trainer = pl.Trainer(
    max_epochs=EPOCHS, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False,
)  # fmt: skip

began = time.perf_counter()
trainer.fit(network, loader)
print(f"seconds={time.perf_counter() - began:.3f}")
