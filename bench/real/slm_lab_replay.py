"""Train a DQN on a pole to balance, with SLM-Lab's replay memory."""

import random
import time
from types import SimpleNamespace

import gymnasium
import numpy as np
import torch
from stand_in import stand_in

stand_in("colorlog", "cv2", "gym", "plotly", "ray", "regex", "roboschool", "ujson", "unityagents", "xvfbwrapper")

from slm_lab.agent.memory.replay import Replay  # noqa: E402
from slm_lab.lib import util  # noqa: E402
from torch import nn  # noqa: E402

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
STEPS, START, BATCH, DISCOUNT = 20_000, 500, 32, 0.99

game = gymnasium.make("CartPole-v1")
size, actions = game.observation_space.shape[0], int(game.action_space.n)
body = SimpleNamespace(
    state_dim=size, action_space=game.action_space, env=SimpleNamespace(is_venv=False), aeb=(0, 0, 0)
)
memory = Replay({"name": "Replay", "batch_size": BATCH, "max_size": 10_000, "use_cer": True}, body)
online = nn.Sequential(nn.Linear(size, 64), nn.SELU(), nn.Linear(64, actions))
target = nn.Sequential(nn.Linear(size, 64), nn.SELU(), nn.Linear(64, actions))
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)


def learn():
    batch = util.to_torch_batch(memory.sample(), "cpu", memory.is_episodic)
    chosen = online(batch["states"]).gather(1, batch["actions"].long().unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        best = target(batch["next_states"]).max(1)[0]
    loss = nn.functional.mse_loss(chosen, batch["rewards"] + DISCOUNT * (1 - batch["dones"]) * best)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


state, _ = game.reset(seed=0)
memory.update(None, None, np.nan, state, False)
began = time.perf_counter()
for step in range(STEPS):
    if random.random() < max(0.05, 1 - step / 4000):
        action = random.randrange(actions)
    else:
        with torch.no_grad():
            action = int(online(torch.from_numpy(state)).argmax())
    following, reward, done, cut, _ = game.step(action)
    memory.update(state, action, reward, following, done)
    state = following
    if done or cut:
        state, _ = game.reset()
        memory.update(None, None, np.nan, state, False)
    if step >= START:
        loss = learn()
        if step % 2000 == 0:
            target.load_state_dict(online.state_dict())
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
print(f"seconds={time.perf_counter() - began:.3f}")
