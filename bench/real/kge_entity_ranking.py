"""Train LibKGE's DistMult on a made graph of facts, with the ranking of all entities after each epoch as validation."""

import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from stand_in import stand_in

stand_in("ax", "torchviz", "path")

from kge import Config, Dataset  # noqa: E402
from kge.job import TrainingJob  # noqa: E402

torch.manual_seed(0)
rng = np.random.default_rng(0)
ENTITIES, RELATIONS, FACTS, VALID, EPOCHS = 1200, 100, 40000, 3000, 12

folder = Path(tempfile.mkdtemp())
data = folder / "made"
data.mkdir()
popular = rng.permutation(ENTITIES)[np.minimum(rng.zipf(1.4, FACTS * 2) - 1, ENTITIES - 1)]
facts = np.unique(np.stack([
    rng.integers(0, ENTITIES, FACTS), rng.integers(0, RELATIONS, FACTS), popular[:FACTS],
], axis=1), axis=0)  # fmt: skip
rng.shuffle(facts)
parts = {"valid": facts[:VALID], "test": facts[VALID : 2 * VALID], "train": facts[2 * VALID :]}
lines = ["dataset:", "  name: made", f"  num_entities: {ENTITIES}", f"  num_relations: {RELATIONS}"]
for name, part in parts.items():
    np.savetxt(data / f"{name}.del", part, fmt="%d", delimiter="\t")
    lines += [f"  files.{name}.filename: {name}.del", f"  files.{name}.type: triples"]
for name, size in (("entity_ids", ENTITIES), ("relation_ids", RELATIONS)):
    (data / f"{name}.del").write_text("".join(f"{number}\t{name}{number}\n" for number in range(size)))
    lines += [f"  files.{name}.filename: {name}.del", f"  files.{name}.type: map"]
(data / "dataset.yaml").write_text("\n".join(lines) + "\n")

config = Config(folder=str(folder / "job"))
config.set_all({
    "job.device": "cpu", "dataset.name": "made", "train.type": "negative_sampling", "train.max_epochs": EPOCHS,
    "train.batch_size": 512, "valid.every": 1, "valid.early_stopping.patience": 10, "console.quiet": True,
    "negative_sampling.num_samples.s": 10, "negative_sampling.num_samples.o": 10,
    "valid.metric": "mean_reciprocal_rank_filtered_with_test",
})  # fmt: skip
config._import("distmult")
config.set("model", "distmult")
config.set("lookup_embedder.dim", 100)
config.init_folder()
dataset = Dataset.create(config, folder=str(data))
job = TrainingJob.create(config, dataset)
job.post_epoch_hooks.append(
    lambda job: print(f"epoch {job.epoch}: loss {job.current_trace['epoch']['avg_loss']:.4f}", flush=True)
)

print(f"untrained: {job.valid_job.run()['mean_reciprocal_rank_filtered_with_test']:.4f}")
began = time.perf_counter()
job.run()
print(f"seconds={time.perf_counter() - began:.3f}")
shutil.rmtree(folder)
