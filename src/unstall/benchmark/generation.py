"""Requests of ``generate()``, measured: prompts and new tokens, prefill and decode, and whether a cache is used."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unstall.benchmark.reader import ProcessRecording, Spans, ends, starts
from unstall.benchmark.steps import Bools, Loop, main_spans
from unstall.benchmark.thresholds import MOST_GROW
from unstall.child.seams.transformers import INPUTS, REQUEST, SEQUENCES_SHIFT
from unstall.records.run import Generation


def measure(process: ProcessRecording, loop: Loop, chosen: Bools) -> Generation | None:
    """The mean request of the measured steps; None where a step is none, or the calls in it were not seen."""
    if loop.kind != "request":
        return None
    spans = main_spans(process)
    requests = spans[np.isin(spans["name"], process.of(REQUEST))]
    step = loop.step_of(requests)
    requests = requests[(step >= 0) & chosen[np.maximum(step, 0)]]
    calls, request = _calls_in(requests, spans[np.isin(spans["name"], process.of(INPUTS))])
    if not len(calls):
        return None
    tokens = (calls["arg"] & ((1 << SEQUENCES_SHIFT) - 1)).astype(np.float64)
    _, first, count = np.unique(request, return_index=True, return_counts=True)
    last, requests = first + count - 1, requests[request[first]]
    until = np.append(starts(calls)[1:], np.inf)
    until[last] = ends(requests)
    decoding = np.ones(len(calls), dtype=bool)
    decoding[first] = False
    grows = np.append(False, np.diff(tokens) == 1)[decoding]
    given = (calls["arg"][first] >> SEQUENCES_SHIFT).astype(np.float64)
    return Generation(
        sequences=float(np.where(requests["arg"] > 0, requests["arg"], given).mean()),
        prompt_tokens=float(tokens[first].mean()),
        new_tokens=float(count.mean()),
        prefill_s=float((until[first] - starts(requests)).mean()),
        decode_s=float((until - starts(calls))[decoding].sum() / len(requests)),
        cached=not (grows.size and grows.mean() > MOST_GROW),
        longest_input=float(tokens[last].mean()),
    )


def _calls_in(requests: Spans, calls: Spans) -> tuple[Spans, npt.NDArray[np.int64]]:
    """The calls in these requests, and the index of each one's request."""
    request = np.searchsorted(starts(requests), starts(calls), side="right") - 1
    inside = (request >= 0) & (starts(calls) < np.append(ends(requests), -np.inf)[request])
    return calls[inside], request[inside]
