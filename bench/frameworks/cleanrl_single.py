"""PPO as CleanRL writes it: one file. Planted: it plays one CartPole at a time; the cure plays sixteen at once. A step is one
of one environment."""

import gymnasium as gym
import numpy as np
import torch
from planted import parse_args, rate
from torch import nn, optim
from torch.distributions.categorical import Categorical


def layer_init(layer, std=2**0.5):
    nn.init.orthogonal_(layer.weight, std)
    nn.init.constant_(layer.bias, 0.0)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(4, 64)), nn.Tanh(), layer_init(nn.Linear(64, 1), 1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(4, 64)), nn.Tanh(), layer_init(nn.Linear(64, 2), 0.01))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        action = probs.sample() if action is None else action
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


def main():
    args = parse_args()
    num_envs, num_steps = (1 if args.variant == "slow" else 16), 128
    torch.manual_seed(0)
    envs = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(num_envs)])
    agent = Agent()
    optimizer = optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
    obs = torch.zeros(num_steps, num_envs, 4)
    actions, logprobs, rewards, dones, values = (torch.zeros(num_steps, num_envs) for _ in range(5))
    next_obs, next_done = torch.Tensor(envs.reset(seed=1)[0]), torch.zeros(num_envs)
    with rate(args.steps):
        for _ in range(args.steps // (num_steps * num_envs)):
            for step in range(num_steps):
                obs[step], dones[step] = next_obs, next_done
                with torch.no_grad():
                    action, logprob, _, value = agent.get_action_and_value(next_obs)
                    values[step] = value.flatten()
                actions[step], logprobs[step] = action, logprob
                next_obs, reward, terminations, truncations, _ = envs.step(action.numpy())
                rewards[step] = torch.tensor(reward).view(-1)
                next_obs = torch.Tensor(next_obs)
                next_done = torch.Tensor(np.logical_or(terminations, truncations))
            with torch.no_grad():
                advantages, last = torch.zeros_like(rewards), 0
                next_value = agent.get_value(next_obs).reshape(-1)
                for t in reversed(range(num_steps)):
                    is_last = t == num_steps - 1
                    alive = 1.0 - (next_done if is_last else dones[t + 1])
                    following = next_value if is_last else values[t + 1]
                    delta = rewards[t] + 0.99 * following * alive - values[t]
                    advantages[t] = last = delta + 0.99 * 0.95 * alive * last
                returns = advantages + values
            flat = obs.reshape(-1, 4), actions.flatten(), logprobs.flatten(), advantages.flatten(), returns.flatten()
            for _ in range(2):
                for chosen in torch.randperm(num_steps * num_envs).split(num_steps * num_envs // 4):
                    b_obs, b_actions, b_logprobs, b_advantages, b_returns = (part[chosen] for part in flat)
                    _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs, b_actions)
                    ratio = (newlogprob - b_logprobs).exp()
                    policy_loss = torch.max(-b_advantages * ratio, -b_advantages * ratio.clamp(0.8, 1.2)).mean()
                    loss = policy_loss - 0.01 * entropy.mean() + 0.5 * (newvalue.flatten() - b_returns).pow(2).mean()
                    optimizer.zero_grad()
                    loss.backward()
                    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                    optimizer.step()
    print("loss", loss.item())


main()
