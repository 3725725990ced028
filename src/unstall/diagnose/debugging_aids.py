"""What helps to find errors and costs each step: checks and records of libraries, which they can be told to leave out.

PyTorch's tuning guide lists its own under "Disable debugging APIs". They are seen in stack samples, by the library's
functions that do the work.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from unstall.diagnose.placing import Placed
from unstall.diagnose.program_frames import short


@dataclass(frozen=True)
class DebuggingAid:
    """One of them."""

    cause: str
    what: str
    """What it does, for a person: after "is"."""
    file: re.Pattern[str]
    functions: re.Pattern[str]
    """The library's functions that do it."""
    advice: str
    switched_by: tuple[str, ...] = ()
    """The functions that turn it on, where it is off by default."""


ANOMALY = DebuggingAid(
    cause="anomaly-detection",
    what="autograd's anomaly detection, which notes the stack of each operator and looks for NaN in each gradient",
    file=re.compile(r"[/\\]torch[/\\]fx[/\\]traceback\.py$"),
    functions=re.compile(r"format_stack"),
    advice="once the NaN is found: torch.autograd.set_detect_anomaly(False), or detect_anomaly() around the few "
    "steps in question",
    switched_by=("set_detect_anomaly", "detect_anomaly"),
)
DISTRIBUTIONS = DebuggingAid(
    cause="argument-checks",
    what="the checks of parameters and values in torch.distributions",
    file=re.compile(r"[/\\]torch[/\\]distributions[/\\](distribution|constraints)\.py$"),
    functions=re.compile(r"__init__|_validate_sample|check"),
    advice="once the model works: torch.distributions.Distribution.set_default_validate_args(False), or "
    "validate_args=False; a NaN is no error there any more",
)
ENVIRONMENT = DebuggingAid(
    cause="environment-checker",
    what="gymnasium's checker, which looks at the spaces and first answers of each environment that is made",
    file=re.compile(r"[/\\]gymnasium[/\\](utils[/\\]passive_env_checker|wrappers[/\\]common)\.py$"),
    functions=re.compile(r"check_\w+|\w+_passive_checker|data_shares_objects"),
    advice="once the environment is known to be right: gymnasium.make(..., disable_env_checker=True)",
)
AIDS = (ANOMALY, DISTRIBUTIONS, ENVIRONMENT)

_WORK = ("step", "reset", "render")
"""What an environment does: that is called by what checks its answer."""


def aid_of(placed: Placed) -> DebuggingAid | None:
    """The aid that a sample is in, None where it is in none."""
    for frame in reversed(placed.sample.frames):
        function = short(frame.function)
        for aid in AIDS:
            if aid.file.search(frame.file) and aid.functions.fullmatch(function):
                return aid
        if function in _WORK:
            return None
    return None
