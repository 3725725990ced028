"""What the pipeline model predicts for a trial, from the first run: said beside what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unstall.simplify.trial import Specification, Trial

if TYPE_CHECKING:
    from unstall.benchmark.measure import Measured
    from unstall.simplify.model import Changes, Pipeline

_PHASES = {"callbacks": "callback", "collectives": "comm"}


class Predictor:
    """Answers for one run; without a model of it, None to everything."""

    def __init__(self, measured: Measured | None):
        self._pipeline = _pipeline(measured)

    def ratio(self, trial: Trial) -> float | None:
        """Base over arm, as the model has it; None where the model has no word for the trial."""
        if self._pipeline is None or trial.placebo or "ranks" in (trial.settings or {}):
            return None
        base, both = _changes(trial.base, None), _changes((*trial.base, *trial.arm), trial.settings)
        if base is None or both is None:
            return None
        try:
            from unstall.simplify.model import predict

            return predict(self._pipeline, base).step_s / predict(self._pipeline, both).step_s
        except (ValueError, ZeroDivisionError):
            return None  # the program has no place for it


def _pipeline(measured: Measured | None) -> Pipeline | None:
    if measured is None:
        return None
    from unstall.simplify import model

    try:
        return model.of(measured)
    except ValueError:
        return None


def _changes(interventions: tuple[Specification, ...], settings: Specification | None) -> Changes | None:
    from unstall.simplify.model import ChangeError, parse

    words, threads = [], None
    for one in interventions:
        name = str(one.get("name", one["kind"]))
        name = "forward" if one["kind"] == "delay" and name.endswith(".forward") else _PHASES.get(name, name)
        if one["kind"] == "threads":
            threads = int(one["threads"])
        elif one["kind"] == "delay":
            words.append(f"{name}=+{100 * one['share']:g}%")
        elif one["kind"] == "sleep":
            return None
        else:
            words.append(f"{'data' if one['kind'] == 'cached' else name}=0")
    loader = (settings or {}).get("loader", {})
    try:
        return parse(words, threads=threads, workers=loader.get("num_workers"), prefetch=loader.get("prefetch_factor"))
    except ChangeError:
        return None
