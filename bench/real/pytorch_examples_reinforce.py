"""Run the example REINFORCE as it is, until a mean return of 180."""

import runpy
import sys
import time

import gymnasium

sys.modules["gym"] = gymnasium
gymnasium.registry["CartPole-v1"].reward_threshold = 180
sys.argv = ["reinforce.py"]

began = time.perf_counter()
runpy.run_module("reinforcement_learning.reinforce", run_name="__main__")
print(f"seconds={time.perf_counter() - began:.3f}")
