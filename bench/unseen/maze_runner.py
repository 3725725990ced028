"""Actor and critic learn to leave mazes. Planted: after each move, the environment searches the way to the exit anew,
for a reward of progress; the fixed twin searches once a maze, from the exit to all cells.
"""

from collections import deque

import gymnasium
import numpy as np
import torch
from common import Clock, parse_args
from torch import nn

SIDE, HORIZON, RUNNERS, UNROLL = 17, 96, 8, 16
MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))


class Maze(gymnasium.Env):
    """Walls, runner and exit are three planes; a runner that is out begins again elsewhere in the same maze."""

    observation_space = gymnasium.spaces.Box(0, 1, (3, SIDE, SIDE), np.float32)
    action_space = gymnasium.spaces.Discrete(len(MOVES))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        self.open = np.zeros((SIDE, SIDE), bool)
        self.open[1:-1:2, 1:-1:2] = True
        for row in range(1, SIDE - 1, 2):
            for column in range(1, SIDE - 1, 2):
                if row > 1 and (column == 1 or self.np_random.random() < 0.5):
                    self.open[row - 1, column] = True
                elif column > 1:
                    self.open[row, column - 1] = True
        loops = self.np_random.integers(1, SIDE - 1, (24, 2))
        self.open[loops[:, 0], loops[:, 1]] = True
        self.exit = (SIDE - 2, SIDE - 2)
        self.place()
        return self.observe(), {}

    def place(self):
        self.cell = tuple(int(part) for part in 1 + 2 * self.np_random.integers(0, SIDE // 4, 2))
        self.left = self.moves_left()

    def moves_left(self):
        """The number of moves from the runner's cell to the exit."""
        seen, queue = {self.cell}, deque([(self.cell, 0)])
        while queue:
            (row, column), moves = queue.popleft()
            if (row, column) == self.exit:
                return moves
            for down, right in MOVES:
                cell = (row + down, column + right)
                if self.open[cell] and cell not in seen:
                    seen.add(cell)
                    queue.append((cell, moves + 1))
        return SIDE * SIDE

    def observe(self):
        planes = np.zeros((3, SIDE, SIDE), np.float32)
        planes[0] = ~self.open
        planes[1][self.cell] = planes[2][self.exit] = 1
        return planes

    def step(self, action):
        self.time += 1
        cell = (self.cell[0] + MOVES[action][0], self.cell[1] + MOVES[action][1])
        if self.open[cell]:
            self.cell = cell
        before, self.left = self.left, self.moves_left()
        reward = 0.1 * (before - self.left) - 0.01
        if self.cell == self.exit:
            reward += 1.0
            self.place()
        return self.observe(), reward, False, self.time >= HORIZON, {}


class MappedMaze(Maze):
    def reset(self, *, seed=None, options=None):
        self.map = None
        return super().reset(seed=seed, options=options)

    def moves_left(self):
        if self.map is None:
            self.map, queue = {self.exit: 0}, deque([self.exit])
            while queue:
                row, column = queue.popleft()
                for down, right in MOVES:
                    cell = (row + down, column + right)
                    if self.open[cell] and cell not in self.map:
                        self.map[cell] = self.map[row, column] + 1
                        queue.append(cell)
        return self.map[self.cell]


class UnmeasuredMaze(Maze):
    def moves_left(self):
        return SIDE


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(), nn.Flatten()
        )
        self.actor, self.critic = nn.Linear(288, len(MOVES)), nn.Linear(288, 1)

    def forward(self, planes):
        hidden = self.body(planes)
        return torch.distributions.Categorical(logits=self.actor(hidden)), self.critic(hidden).squeeze(-1)


def unroll(mazes, planes, policy):
    """Some moves of all runners, and what they see afterwards."""
    observations, actions, rewards = [], [], []
    for _ in range(UNROLL):
        observations.append(torch.from_numpy(np.stack(planes)))
        with torch.no_grad():
            actions.append(policy(observations[-1])[0].sample())
        results = [maze.step(action) for maze, action in zip(mazes, actions[-1].tolist(), strict=True)]
        rewards.append([result[1] for result in results])
        planes = [maze.reset()[0] if end[3] else end[0] for maze, end in zip(mazes, results, strict=True)]
    return torch.stack(observations), torch.stack(actions), torch.tensor(rewards), planes


def main():
    args = parse_args()
    torch.manual_seed(0)
    kind = {"slow": Maze, "fast": MappedMaze, "free": UnmeasuredMaze}[args.variant]
    mazes = [kind() for _ in range(RUNNERS)]
    planes = [maze.reset(seed=number)[0] for number, maze in enumerate(mazes)]
    policy = Policy()
    optimizer = torch.optim.RMSprop(policy.parameters(), lr=3e-4)
    clock = Clock(args.seconds)
    while not clock.done:
        observations, actions, rewards, planes = unroll(mazes, planes, policy)
        returns = rewards.flip(0).cumsum(0).flip(0).flatten()
        choices, values = policy(observations.flatten(0, 1))
        advantage = returns - values
        gain = choices.log_prob(actions.flatten()) * advantage.detach()
        loss = 0.5 * advantage.square().mean() - gain.mean() - 0.01 * choices.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
    clock.report()


if __name__ == "__main__":
    main()
