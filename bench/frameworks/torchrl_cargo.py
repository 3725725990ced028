"""REINFORCE on batches that a TorchRL collector gathers. Planted: the environment finds room in its hold slot by slot in
Python; the cure looks at the array once."""

import warnings

import gymnasium
import numpy as np
import torch
from planted import parse_args, rate
from tensordict.nn import NormalParamExtractor, TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import GymWrapper
from torchrl.modules import ProbabilisticActor, TanhNormal

warnings.filterwarnings("ignore")
SLOTS, FRAMES = 40_000, 64


class Hold(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (8,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.loads, self.time = self.np_random.random(SLOTS), 0
        return self.observe(), {}

    def observe(self):
        return self.loads.reshape(8, -1).mean(1).astype(np.float32)

    def emptiest(self, above):
        best, least = 0, 2.0
        for slot, load in enumerate(self.loads):
            if above < load < least:
                best, least = slot, load
        return best

    def step(self, action):
        slot = self.emptiest((float(action[0]) + 1) / 4)
        self.loads[slot] = min(1.0, self.loads[slot] + 0.3)
        self.time += 1
        return self.observe(), -float(self.loads.std()), False, self.time >= 200, {}


class ArrayHold(Hold):
    def emptiest(self, above):
        return int(np.argmin(np.where(self.loads > above, self.loads, 2.0)))


def main():
    args = parse_args()
    torch.manual_seed(0)
    hold = GymWrapper((Hold if args.variant == "slow" else ArrayHold)())
    hold.set_seed(0)
    layers = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 2), NormalParamExtractor())
    policy = ProbabilisticActor(
        TensorDictModule(layers, in_keys=["observation"], out_keys=["loc", "scale"]),
        in_keys=["loc", "scale"],
        distribution_class=TanhNormal,
        return_log_prob=False,
    )
    collector = Collector(hold, policy, frames_per_batch=FRAMES, total_frames=args.steps)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    with rate(args.steps):
        for batch in collector:
            rewards = batch["next", "reward"].squeeze(-1)
            logs = policy.get_dist(batch).log_prob(batch["action"])
            loss = -(logs * (rewards - rewards.mean())).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    collector.shutdown()
    print("loss", loss.item())


if __name__ == "__main__":
    main()
