"""Imitate made experts with GAIL and PPO, as the repository's main.py does on a MuJoCo task."""

import sys
import time
from types import ModuleType

import numpy as np
import torch
from gymnasium.spaces import Box
from stand_in import stand_in


class RunningMeanStd:
    """The part of OpenAI's baselines that GAIL uses; baselines itself cannot be installed any more."""

    def __init__(self, shape):
        self.mean, self.var, self.count = np.zeros(shape), np.ones(shape), 1e-4

    def update(self, x):
        difference, total = x.mean(0) - self.mean, self.count + len(x)
        spread = self.var * self.count + x.var(0) * len(x) + difference**2 * self.count * len(x) / total
        self.mean, self.var, self.count = self.mean + difference * len(x) / total, spread / total, total


statistics = ModuleType("baselines.common.running_mean_std")
statistics.RunningMeanStd = RunningMeanStd
sys.modules["baselines.common.running_mean_std"] = statistics
stand_in("baselines", "gym")  # for environments that are not used here

from a2c_ppo_acktr.algo import PPO, gail  # noqa: E402
from a2c_ppo_acktr.model import Policy  # noqa: E402
from a2c_ppo_acktr.storage import RolloutStorage  # noqa: E402

torch.manual_seed(0)
SIZE, ACTIONS, LENGTH, TRAJECTORIES, STEPS, UPDATES = 17, 6, 1000, 25, 2048, 4
reaction = torch.randn(SIZE, ACTIONS) / SIZE**0.5
motion = torch.randn(ACTIONS, SIZE) / 10


class Task:
    """A state that drifts and that actions push."""

    def reset(self):
        self.state, self.steps = torch.randn(1, SIZE), 0
        return self.state

    def step(self, action):
        self.state = 0.95 * self.state + torch.tanh(action) @ motion + 0.1 * torch.randn(1, SIZE)
        self.steps += 1
        return self.state, self.steps == LENGTH


def demonstrations():
    """What an expert does in trajectories of 1,000 steps, saved as convert_to_pytorch.py saves them."""
    states, actions, task = [], [], Task()
    for _ in range(TRAJECTORIES):
        state = task.reset()
        for _ in range(LENGTH):
            states.append(state)
            actions.append(state @ reaction)
            state, _ = task.step(actions[-1])
    torch.save(
        {
            "states": torch.cat(states).view(TRAJECTORIES, LENGTH, SIZE),
            "actions": torch.cat(actions).view(TRAJECTORIES, LENGTH, ACTIONS),
            "lengths": torch.full((TRAJECTORIES,), LENGTH),
        },
        "trajs_task.pt",
    )


demonstrations()
space = Box(-1.0, 1.0, (ACTIONS,))
policy = Policy((SIZE,), space, base_kwargs={"recurrent": False})
agent = PPO(policy, 0.2, 10, 32, 0.5, 0.0, lr=3e-4, eps=1e-5, max_grad_norm=0.5)
critic = gail.Discriminator(SIZE + ACTIONS, 100, torch.device("cpu"))
experts = torch.utils.data.DataLoader(
    gail.ExpertDataset("trajs_task.pt", num_trajectories=TRAJECTORIES, subsample_frequency=20),
    batch_size=128, shuffle=True, drop_last=True,
)  # fmt: skip
rollouts = RolloutStorage(STEPS, 1, (SIZE,), space, policy.recurrent_hidden_state_size)
task = Task()
rollouts.obs[0].copy_(task.reset())

began = time.perf_counter()
for update in range(UPDATES):
    for step in range(STEPS):
        with torch.no_grad():
            value, action, log_prob, hidden = policy.act(
                rollouts.obs[step], rollouts.recurrent_hidden_states[step], rollouts.masks[step]
            )
        state, done = task.step(action)
        if done:
            state = task.reset()
        mask = torch.tensor([[0.0 if done else 1.0]])
        rollouts.insert(state, hidden, action, log_prob, value, torch.zeros(1, 1), mask, torch.ones(1, 1))
    for _ in range(20):
        loss = critic.update(experts, rollouts, lambda seen, update: seen)
    for step in range(STEPS):
        rollouts.rewards[step] = critic.predict_reward(
            rollouts.obs[step], rollouts.actions[step], 0.99, rollouts.masks[step]
        )
    with torch.no_grad():
        value = policy.get_value(rollouts.obs[-1], rollouts.recurrent_hidden_states[-1], rollouts.masks[-1])
    rollouts.compute_returns(value, True, 0.99, 0.95, True)
    agent.update(rollouts)
    rollouts.after_update()
    print(f"update {update}: discriminator's loss {loss:.4f}", flush=True)
print(f"seconds={time.perf_counter() - began:.3f}")
