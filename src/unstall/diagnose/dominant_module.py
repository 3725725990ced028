"""A module out of all proportion: which one takes most of the model's time, where that is no matter of course."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from unstall.child.user_files import is_program_file
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.layer_types import RECURRENT
from unstall.diagnose.thresholds import (
    DOMINANT,
    DOMINANT_ALONE,
    FEW_MODULES,
    LARGE_KERNEL,
    PYTHON_IN_FORWARD,
    SLOW_RATE,
)
from unstall.records.model import ModuleMeasurement
from unstall.records.vocabulary import FORWARD


def own_share(modules: Sequence[ModuleMeasurement], module: ModuleMeasurement) -> float:
    """Share of the modules' own time that this one takes, or, for a class of the user's, all of that class together.

    Blocks of one class repeat the same code; layers of a library's class have only the name in common.
    """
    total = sum(other.self_s for other in modules)
    alike = [other for other in modules if other is module or _same_class(other, module)]
    return sum(other.self_s for other in alike) / total if total else 0.0


def _same_class(module: ModuleMeasurement, other: ModuleMeasurement) -> bool:
    return is_program_file(module.file) and (module.type, module.file, module.line) == (
        other.type,
        other.file,
        other.line,
    )


def dominant_module(host: HostFeatures) -> ModuleMeasurement | None:
    """A module out of all proportion, in a model of several.

    Some layer always takes the most. One is out of proportion when next to nothing else takes time, or when it takes
    most of it and is the user's own code, has a very large kernel, or computes at a poor rate. A recurrent layer is
    left alone: it is what such a model is made of.
    """
    modules = host.measurement.modules
    working = [module for module in modules if module.self_s > 0 and module.type not in RECURRENT]
    if len(working) < FEW_MODULES or host.python_in_forward > PYTHON_IN_FORWARD * host.phase_s(FORWARD.name):
        return None
    top = max(working, key=lambda module: (own_share(modules, module), module.self_s))
    share = own_share(modules, top)
    slow = host.efficiency is not None and host.efficiency < SLOW_RATE
    odd = is_program_file(top.file) or _large_kernel(top) or slow
    return top if share >= DOMINANT_ALONE or (share >= DOMINANT and odd) else None


def _large_kernel(module: ModuleMeasurement) -> bool:
    sizes = re.search(r"kernel_size=\(([\d, ]+)\)", module.detail)
    return sizes is not None and math.prod(int(size) for size in re.findall(r"\d+", sizes[1])) >= LARGE_KERNEL
