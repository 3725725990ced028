"""The experiments that a person asks for: ``--stub NAME``, ``--delay NAME=+20%``, ``--set NAME=N``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from unstall.child.experiments import functions
from unstall.runs.errors import Refused
from unstall.simplify import plan, registry
from unstall.simplify.experiment import Experiment

_FUNCTION = re.compile(r"[\w.<>]+")
_DELAY = re.compile(r"(?P<name>[\w.<>-]+)(?:@(?P<rank>\d+))?=\+?(?P<share>\d+(?:\.\d+)?)\s*%(?::(?P<by>sleep|spin))?")
_SETTING = re.compile(rf"(?P<name>{'|'.join(plan.SETTINGS)})=(?P<value>\d+)")


def parse(stubs: Iterable[str], delays: Iterable[str], settings: Iterable[str]) -> list[Experiment]:
    """The experiments in this order. Raises Refused for one that is not written as it should be."""
    return [*map(_stub, stubs), *map(_delay, delays), *map(_setting, settings)]


def _stub(name: str) -> Experiment:
    kind = registry.components().get(name)
    if kind is not None:
        return plan.free(kind)
    if not _FUNCTION.fullmatch(name):
        raise Refused(f"--stub {name}: give a function as Class.method or package.module.function")
    return plan.stub(plan.ReplaceableFunction(functions.strip_locals(name), None, of_data=True))


def _delay(text: str) -> Experiment:
    """``:sleep`` at the end lets the delay take no core, ``@1`` after the name slows rank 1 alone."""
    match = _DELAY.fullmatch(text)
    if match is None or float(match["share"]) <= 0:
        raise Refused(
            f"--delay {text}: write it as NAME=+20% (NAME=+20%:sleep takes no core, NAME@1=+20% slows rank 1 alone)"
        )
    name, by = match["name"], match["by"] or "spin"
    kinds = registry.components()
    if name in kinds and not kinds[name].can_be_slowed:
        slowed = ", ".join(name for name, kind in kinds.items() if kind.can_be_slowed)
        raise Refused(f"--delay {name}: of the kinds of work only {slowed} can be slowed")
    rank = int(match["rank"]) if match["rank"] else None
    share = float(match["share"]) / 100
    return plan.delay(functions.strip_locals(name), None, share, by, touches_data=True, rank=rank)


def _setting(text: str) -> Experiment:
    match = _SETTING.fullmatch(text)
    if match is None:
        raise Refused(f"--set {text}: write it as NAME=N, with NAME one of {', '.join(plan.SETTINGS)}")
    name, value = match["name"], int(match["value"])
    if name in ("ranks", "keep-memory") and value != 1:
        raise Refused(f"--set {text}: {name} can only be 1")
    if name in ("prefetch", "threads") and value < 1:
        raise Refused(f"--set {text}: {name} must be at least 1")
    return plan.setting(name, value)
