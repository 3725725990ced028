"""What the child wrote is read back as it was meant; what it did not get to write is nothing."""

from __future__ import annotations

import json
from pathlib import Path

from unstall.optimize.observed import RuntimeFacts, read_runtime_facts
from unstall.optimize.source.places import CallSite

SITE = {"file": "/x/train.py", "line": 3, "function": "main", "span": [3, 3, 4, 20]}
FACTS = [
    {"kind": "torch", "site": None, "threads": 4},
    {"kind": "loader", "site": SITE, "id": 7, "num_workers": 2, "batch_size": 8, "getitem_line": None, "new": 1},
    {"kind": "loader", "site": None, "id": 8},
    {"kind": "optimizer", "site": {**SITE, "span": None}, "type": "Adam", "module": "torch.optim.adam", "fused": None},
    {"kind": "iterated", "site": None, "id": 7},
    {"kind": "threads", "site": SITE, "count": 2},
    {"kind": "model", "site": SITE, "shapes": [[1, 3]], "bytes": 12, "callers": [SITE]},
]


def test_only_loaders_that_were_iterated_are_there(tmp_path):
    path = tmp_path / "probe.jsonl"
    path.write_text("".join(json.dumps(fact) + "\n" for fact in FACTS))
    facts = read_runtime_facts(path)
    site = CallSite(Path("/x/train.py"), 3, "main", (3, 3, 4, 20))
    assert [(one.id, one.num_workers, one.call) for one in facts.loaders] == [(7, 2, site)]
    assert facts.threads == 4 and facts.thread_settings == (site,)
    assert facts.model_calls[0].shapes == ((1, 3),) and facts.model_calls[0].callers == (site,)
    assert facts.optimizers[0].call.span is None and facts.optimizers[0].type == "Adam"


def test_a_file_that_is_not_there_or_broken_off_says_nothing(tmp_path):
    path = tmp_path / "probe.jsonl"
    assert read_runtime_facts(path) == RuntimeFacts()
    path.write_text('{"kind": "loader", "si')
    assert read_runtime_facts(path) == RuntimeFacts()
