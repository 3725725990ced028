"""Train d3rlpy's CQL on made episodes, as on D4RL's, with the defaults of the library."""

import dataclasses
import sys
import time
from types import ModuleType

import gymnasium
import numpy as np
from stand_in import stand_in

stand_in("gym")  # for environments that are not used here
limits = ModuleType("gymnasium.wrappers.time_limit")  # where older versions have it
limits.TimeLimit = gymnasium.wrappers.TimeLimit
sys.modules["gymnasium.wrappers.time_limit"] = limits
version = ModuleType("gym.version")
version.VERSION = "0.26.2"
sys.modules["gym.version"] = version

import d3rlpy  # noqa: E402


def numbers(losses):
    """What the library's asdict_as_float does; the newest NumPy makes no float of an array with one number."""
    return {part.name: getattr(losses, part.name).item() for part in dataclasses.fields(losses)}


for library in [module for name, module in sys.modules.items() if name.startswith("d3rlpy.")]:
    if hasattr(library, "asdict_as_float"):
        library.asdict_as_float = numbers

d3rlpy.seed(0)
rng = np.random.default_rng(0)
EPISODES, LENGTH, SIZE, ACTIONS, STEPS = 50, 400, 17, 6, 120
seen = rng.normal(size=(EPISODES, LENGTH, SIZE)).astype(np.float32)
action = np.tanh(seen @ rng.normal(size=(SIZE, ACTIONS)).astype(np.float32) / 4)
reward = (seen[..., 0] * action[..., 0])[..., None].astype(np.float32)
ends = np.zeros((EPISODES, LENGTH), dtype=np.float32)
ends[:, -1] = 1.0
dataset = d3rlpy.dataset.MDPDataset(
    seen.reshape(-1, SIZE), action.reshape(-1, ACTIONS), reward.reshape(-1, 1), ends.reshape(-1)
)
algorithm = d3rlpy.algos.CQLConfig().create(device=False)
algorithm.build_with_dataset(dataset)

began = time.perf_counter()
algorithm.fit(
    dataset, n_steps=STEPS, n_steps_per_epoch=STEPS // 2, show_progress=False,
    logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
)  # fmt: skip
print(f"seconds={time.perf_counter() - began:.3f}")
