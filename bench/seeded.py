"""Run a script as it is, with its random numbers seeded first: python bench/seeded.py script.py [arguments]."""

from __future__ import annotations

import os
import random
import runpy
import sys

import numpy as np
import torch

random.seed(0)
np.random.seed(0)  # noqa: NPY002 (what programs use)
torch.manual_seed(0)
del sys.argv[0]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
