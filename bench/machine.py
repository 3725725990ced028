"""The machine and the day, as every table of figures names them."""

from __future__ import annotations

import platform
from datetime import date

from unstall.benchmark.environment import cpu_model, usable_cores


def describe() -> str:
    """For example "2 cores of AMD EPYC, Python 3.11.7, 2026-11-21"."""
    return f"{usable_cores():g} cores of {cpu_model()}, Python {platform.python_version()}, {date.today():%Y-%m-%d}"
