"""What is planted in each program by which no threshold was set.

They were written after the thresholds, and are run to be counted only: one whose verdict leads to a change moves to
tests/zoo, and another takes its place. Names and options are those of tests/zoo, whose ``common`` they share.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "zoo"))

from cases import Case, case

CASES: tuple[Case, ...] = (
    case("point_samples", "input-bound/transform", "Clouds.chosen", also_culprits=("Clouds.__getitem__",), free=True),
    case("ragged_collate", "input-bound/collate", "pad_tokens", free=True),
    case(
        "zip_archive",
        "input-bound/storage",
        "Pictures.read",
        also_causes=("transform",),
        also_culprits=("Pictures.__getitem__",),
        free=True,
    ),
    case(
        "neighbour_sampler",
        "input-bound/transform",
        "SetSampler.sample",
        also_causes=("preprocess", "python"),
        also_culprits=("node_batches",),
        free=True,
    ),
    case(
        "ragged_attention", "overhead-bound/small-ops", "Reader.weighted", also_culprits=("Reader.forward",), free=True
    ),
    case(
        "confusion_matrix",
        "callback-bound/metrics",
        "Confusion.update",
        also_patterns=("host-bound",),
        also_causes=("python", "postprocess"),
        free=True,
    ),
    case("best_weights", "callback-bound/checkpoint", "Best.keep", also_culprits=("Best.consider",), free=True),
    case("lidar_course", "environment-bound/env", "Course.scan", also_culprits=("Course.step",), free=True),
    case(
        "replay_rows",
        "host-bound/preprocess",
        "ListBuffer.sample",
        also_patterns=("input-bound",),
        also_causes=("transform", "python", "collate"),
        free=True,
    ),
    case(
        "jsonl_scan",
        "input-bound/storage",
        "Measurements.read_line",
        also_causes=("transform",),
        also_culprits=("Measurements.__getitem__",),
        free=True,
    ),
    case(
        "beam_scoring",
        "overhead-bound/batching",
        "one_by_one",
        also_culprits=("Scorer.forward", "main"),
    ),
    case("healthy_transformer", "healthy", also_patterns=("compute-bound",)),
    case("healthy_autoencoder", "healthy", also_patterns=("compute-bound",)),
)
