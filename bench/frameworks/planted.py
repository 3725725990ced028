"""What every program here shares: its options, and the rate that it prints last."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Iterator


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--variant", choices=("slow", "fast"), default="slow")
    parser.add_argument("--steps", type=int, default=100)
    return parser.parse_args()


@contextlib.contextmanager
def rate(steps: int) -> Iterator[None]:
    """Print how many of so many steps a second what is inside does."""
    began = time.perf_counter()
    yield
    print(f"steps_per_s={steps / (time.perf_counter() - began):.3f}", flush=True)
