"""Train a Rainbow agent, data-efficient as the README has it, from the repository's prioritised replay memory."""

import random
import time
from types import SimpleNamespace

import numpy as np
import torch
from memory import ReplayMemory
from torch import nn
from torch.nn import functional

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
STEPS, START, EPISODE, ACTIONS, ATOMS, BATCH = 1000, 1600, 400, 6, 51, 32
LOW, HIGH, SUPPORT = -10, 10, torch.linspace(-10, 10, ATOMS)
options = SimpleNamespace(
    device=torch.device("cpu"), history_length=4, discount=0.99, multi_step=20, priority_weight=0.4,
    priority_exponent=0.5,
)  # fmt: skip


class Catch:
    """A ball falls, a bat below moves: drawn as an Atari screen of 84 by 84, four of them in a state."""

    def reset(self):
        self.ball, self.side, self.bat, self.steps = 0, random.randrange(84), 42, 0
        self.screens = [torch.zeros(84, 84)] * 3 + [self._screen()]
        return torch.stack(self.screens)

    def step(self, action):
        self.bat = min(80, max(3, self.bat + 2 * (action - ACTIONS // 2)))
        self.ball, self.steps = self.ball + 2, self.steps + 1
        reward = 0.0
        if self.ball >= 82:
            reward = 1.0 if abs(self.bat - self.side) < 4 else -1.0
            self.ball, self.side = 0, random.randrange(84)
        self.screens = [*self.screens[1:], self._screen()]
        return torch.stack(self.screens), reward, self.steps == EPISODE

    def _screen(self):
        screen = torch.zeros(84, 84)
        screen[self.ball : self.ball + 2, self.side : self.side + 2] = 1.0
        screen[82:, self.bat - 3 : self.bat + 3] = 0.5
        return screen


class Network(nn.Module):
    """Distributional and dueling, with the two convolutions of the data-efficient architecture."""

    def __init__(self):
        super().__init__()
        self.screens = nn.Sequential(
            nn.Conv2d(4, 32, 5, stride=5), nn.ReLU(), nn.Conv2d(32, 64, 5, stride=5), nn.ReLU(), nn.Flatten()
        )
        self.value = nn.Sequential(nn.Linear(576, 256), nn.ReLU(), nn.Linear(256, ATOMS))
        self.advantage = nn.Sequential(nn.Linear(576, 256), nn.ReLU(), nn.Linear(256, ACTIONS * ATOMS))

    def forward(self, states):
        seen = self.screens(states)
        advantage = self.advantage(seen).view(-1, ACTIONS, ATOMS)
        q = self.value(seen).view(-1, 1, ATOMS) + advantage - advantage.mean(1, keepdim=True)
        return functional.log_softmax(q, dim=2)


def projected(returns, going_on, target):
    """The target distribution on the atoms, moved by the return and the discount."""
    moved = returns.unsqueeze(1) + going_on * options.discount**options.multi_step * SUPPORT
    place = (moved.clamp(LOW, HIGH) - LOW) / ((HIGH - LOW) / (ATOMS - 1))
    below = place.floor().clamp(0, ATOMS - 2)
    part = place - below
    made = torch.zeros(BATCH, ATOMS)
    made.scatter_add_(1, below.long(), target * (1 - part))
    return made.scatter_add_(1, below.long() + 1, target * part)


def learn():
    places, states, actions, returns, later, going_on, weights = memory.sample(BATCH)
    logs = online(states)[torch.arange(BATCH), actions]
    with torch.no_grad():
        best = (online(later).exp() * SUPPORT).sum(2).argmax(1)
        wanted = projected(returns, going_on, target(later).exp()[torch.arange(BATCH), best])
    loss = -(wanted * logs).sum(1)
    optimizer.zero_grad()
    (weights * loss).mean().backward()
    nn.utils.clip_grad_norm_(online.parameters(), 10.0)
    optimizer.step()
    memory.update_priorities(places, loss.detach().numpy())
    return loss


online, target = Network(), Network()
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=1e-4, eps=1.5e-4)
memory = ReplayMemory(options, 10_000)
game = Catch()
state = game.reset()

for step in range(START + STEPS):
    if step == START:
        began = time.perf_counter()
    if step < START:
        action = random.randrange(ACTIONS)
    else:
        with torch.no_grad():
            action = int((online(state.unsqueeze(0)).exp() * SUPPORT).sum(2).argmax(1))
    following, reward, done = game.step(action)
    memory.append(state, action, reward, done)
    state = game.reset() if done else following
    if step >= START:
        loss = learn()
        if step % 200 == 0:
            target.load_state_dict(online.state_dict())
            print(f"step {step}: loss {float(loss.detach().mean()):.4f}", flush=True)
print(f"seconds={time.perf_counter() - began:.3f}")
