"""Train a dueling DQN on a pole to balance, from ReAgent's replay buffer."""

import random
import time

import gymnasium
import numpy as np
import torch
from ml.rl.replay_memory.circular_replay_buffer import ReplayBuffer
from torch import nn

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
STEPS, START, BATCH, CAPACITY, DISCOUNT = 3000, 500, 128, 10_000, 0.99

game = gymnasium.make("CartPole-v1")
size, actions = game.observation_space.shape[0], int(game.action_space.n)
memory = ReplayBuffer(
    observation_shape=(size,), stack_size=1, replay_capacity=CAPACITY, batch_size=BATCH, update_horizon=1,
    gamma=DISCOUNT, observation_dtype=np.float32,
)  # fmt: skip


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(size, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU())
        self.value, self.advantage = nn.Linear(64, 1), nn.Linear(64, actions)

    def forward(self, states):
        seen = self.shared(states)
        advantage = self.advantage(seen)
        return self.value(seen) + advantage - advantage.mean(1, keepdim=True)


online, target = Network(), Network()
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)


def learn():
    names = [element.name for element in memory.get_transition_elements()]
    batch = dict(zip(names, memory.sample_transition_batch(), strict=True))
    state, following = (torch.from_numpy(np.array(batch[name]))[..., 0] for name in ("state", "next_state"))
    action = torch.from_numpy(np.array(batch["action"])).long().unsqueeze(1)
    reward = torch.from_numpy(np.array(batch["reward"], dtype=np.float32))
    going_on = 1 - torch.from_numpy(np.array(batch["terminal"], dtype=np.float32))
    with torch.no_grad():
        best = target(following).gather(1, online(following).argmax(1, keepdim=True)).squeeze(1)
    loss = nn.functional.smooth_l1_loss(online(state).gather(1, action).squeeze(1), reward + DISCOUNT * going_on * best)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


state, _ = game.reset(seed=0)
began = time.perf_counter()
for step in range(STEPS):
    if random.random() < max(0.05, 1 - step / 1500):
        action = random.randrange(actions)
    else:
        with torch.no_grad():
            action = int(online(torch.from_numpy(state).unsqueeze(0)).argmax())
    following, reward, done, cut, _ = game.step(action)
    memory.add(state, action, reward, done or cut)
    state = game.reset()[0] if done or cut else following
    if step >= START:
        loss = learn()
        if step % 500 == 0:
            target.load_state_dict(online.state_dict())
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
print(f"seconds={time.perf_counter() - began:.3f}")
