"""Clone a hopper's behaviour with a GRU, from sequences that TorchRL's replay buffer draws out of whole episodes."""

import time
import warnings

import torch

warnings.simplefilter("ignore")
from tensordict import TensorDict  # noqa: E402
from torch import nn  # noqa: E402
from torchrl.data import LazyTensorStorage, Sequence, TensorDictReplayBuffer  # noqa: E402

torch.manual_seed(0)
EPISODES, LENGTH, SIZE, ACTIONS, STEPS, BATCH, UPDATES = 4000, 100, 11, 3, 8, 256, 1400

# 400,000 steps, as in D4RL's hopper-medium-replay, of episodes that end early
lengths = torch.randint(LENGTH // 2, LENGTH * 3 // 2, (EPISODES,))
total = int(lengths.sum())
done = torch.zeros(total, 1, dtype=torch.bool)
done[lengths.cumsum(0) - 1] = True
seen = torch.randn(total, SIZE)
action = torch.tanh((seen + seen.roll(1, 0)) @ torch.randn(SIZE, ACTIONS) / SIZE)
steps = TensorDict(
    {"observation": seen, "action": action, "next": TensorDict({"done": done}, [total])}, batch_size=[total]
)
buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(total), batch_size=BATCH, sample_unit=Sequence(length=STEPS))
buffer.extend(steps)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory = nn.GRU(SIZE, 64, batch_first=True)
        self.head = nn.Linear(64, ACTIONS)

    def forward(self, observations):
        return torch.tanh(self.head(self.memory(observations)[0]))


policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
began = time.perf_counter()
for update in range(UPDATES):
    batch, info = buffer.sample(return_info=True)
    batch = batch.view(BATCH, STEPS)
    counts = info["validity_mask"].view(BATCH, STEPS, 1)
    error = (policy(batch["observation"]) - batch["action"]).pow(2) * counts
    loss = error.sum() / counts.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if update % 200 == 0:
        print(f"update {update}: loss {loss.item():.4f}", flush=True)
print(f"seconds={time.perf_counter() - began:.3f}")
