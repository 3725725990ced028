"""Actor-critic on CartPole. Planted: one environment is stepped at a time, with a policy call for each
step; the fixed twin steps 64 of them at once. A step of the clock is a step of one environment."""

import gymnasium as gym
import torch
from common import Clock, parse_args
from torch import nn


class ActorCritic(nn.Module):
    def __init__(self, observations=4, actions=2, hidden=64):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(observations, hidden), nn.Tanh())
        self.actor = nn.Linear(hidden, actions)
        self.critic = nn.Linear(hidden, 1)

    def forward(self, observation):
        features = self.trunk(observation)
        return self.actor(features), self.critic(features).squeeze(-1)


def collect(envs, model, observation, clock, horizon):
    """Plays ``horizon`` steps; returns tensors of shape (horizon, number of environments)."""
    log_probabilities, values, rewards = [], [], []
    for _ in range(horizon):
        logits, value = model(torch.as_tensor(observation))
        policy = torch.distributions.Categorical(logits=logits)
        action = policy.sample()
        observation, reward, terminated, truncated, _ = envs.step(action.numpy())
        log_probabilities.append(policy.log_prob(action))
        values.append(value)
        rewards.append(torch.as_tensor(reward, dtype=torch.float32) - 5.0 * torch.as_tensor(terminated))
        clock.tick(envs.num_envs)
        if clock.done:
            break
    return observation, torch.stack(log_probabilities), torch.stack(values), torch.stack(rewards)


def update(optimizer, log_probabilities, values, rewards):
    returns, running = torch.zeros_like(rewards), torch.zeros(rewards.shape[1])
    for t in range(len(rewards) - 1, -1, -1):
        running = rewards[t] + 0.97 * running
        returns[t] = running
    advantage = returns - values
    loss = -(log_probabilities * advantage.detach()).mean() + 0.5 * advantage.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def main():
    args = parse_args()
    count = 1 if args.variant == "slow" else 64
    envs = gym.make_vec("CartPole-v1", num_envs=count, vectorization_mode="vector_entry_point")
    model = ActorCritic()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    observation, _ = envs.reset(seed=0)
    clock = Clock(args.seconds)
    while not clock.done:
        observation, *rollout = collect(envs, model, observation, clock, horizon=128)
        update(optimizer, *rollout)
    envs.close()
    clock.report()


if __name__ == "__main__":
    main()
