"""What is planted in each program that needs a GPU: the answers that a verdict is judged by.

Names and options are those of tests/zoo, whose ``common`` they share. Patterns are those of the trace, too.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "zoo"))

from cases import Case, case

CASES: tuple[Case, ...] = (
    case("read_norms", "sync-bound/item", "gradient_norm"),
    case("masked_tokens", "sync-bound/shape", "Tagger.loss", also_causes=("item",), also_culprits=("train",)),
    case("pageable_volumes", "transfer-bound/pageable", "train", also_culprits=("to_device",)),
    case("own_adam", "overhead-bound", "PlainAdam.step"),
    case("one_request", "overhead-bound", "answer", also_culprits=("Ranker.forward", "serve")),
    case("full_precision", "compute-bound/precision", None),
    case("materialized_attention", "compute-bound/kernel", "Attention.forward"),
    case("edit_distances", "host-bound/python", "edit_distance", also_patterns=("callback-bound",)),
    case("augment_main", "input-bound/transform", "Augmented.__getitem__"),
    case("healthy_bfloat16", "healthy"),
)
