"""What is planted in each program that was written last.

Their authors had seen neither unstall's source nor its pages, and had not run it. One whose verdict has led to a change
is no test any more; docs/accuracy.md names these. Names and options are those of tests/zoo, whose ``common`` they share.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "zoo"))

from cases import Case, case

CASES: tuple[Case, ...] = (
    case(
        "molecule_hops",
        "input-bound/collate",
        "shortest_ways",
        also_causes=("transform",),
        also_culprits=("Collator.hops", "Collator.__call__"),
        free=True,
    ),
    case("maze_runner", "environment-bound/env", "Maze.moves_left", also_culprits=("Maze.step",), free=True),
    case(
        "digit_gan",
        "callback-bound/plotting",
        "Samples.save",
        also_causes=("logging",),
        also_culprits=("Samples.on_step_end",),
        free=True,
    ),
    case("lesion_report", "host-bound/postprocess", "drop_specks", also_causes=("python",), free=True),
    case(
        "keyword_pcen",
        "overhead-bound/small-ops",
        "EnergyNorm.forward",
        also_patterns=("host-bound",),
        also_causes=("preprocess", "python"),
        also_culprits=("KeywordNet.features",),
        free=True,
    ),
    case(
        "click_ranking",
        "host-bound/preprocess",
        "ClickLog.clicked_by",
        also_patterns=("input-bound",),
        also_causes=("python", "transform"),
        also_culprits=("ClickLog.negatives",),
        free=True,
    ),
    case(
        "arm_demonstrations",
        "input-bound/storage",
        "Demonstrations.read",
        also_causes=("transform",),
        also_culprits=("Demonstrations.__getitem__",),
        free=True,
    ),
    case(
        "turned_photos",
        "input-bound/transform",
        "change_colours",
        also_culprits=("TurnedPhotos.augment", "TurnedPhotos.__getitem__"),
        free=True,
    ),
    case(
        "auc_by_user",
        "callback-bound/metrics",
        "UserAuc.update",
        also_patterns=("host-bound",),
        also_causes=("postprocess", "python"),
        also_culprits=("MetricsCallback.on_step_end",),
        free=True,
    ),
    case(
        "histogram_log",
        "callback-bound/logging",
        "HistogramLog.write",
        also_culprits=("HistogramLog.__call__",),
        free=True,
    ),
    case(
        "loan_features",
        "host-bound/preprocess",
        "RowFeatures.make",
        also_patterns=("input-bound",),
        also_causes=("transform", "python"),
        free=True,
    ),
    case(
        "semihard_triplets",
        "host-bound/python",
        "mine",
        also_causes=("postprocess",),
        also_culprits=("triplet_loss",),
        free=True,
    ),
    case(
        "meter_windows",
        "input-bound/storage",
        "Readings.between",
        also_causes=("transform",),
        free=True,
    ),
    case(
        "query_embedding",
        "overhead-bound/batching",
        "SearchService.embed",
        also_causes=("small-ops",),
        also_culprits=("TextEncoder.forward", "SearchService.answer"),
        free=True,
    ),
    case(
        "wrist_motion",
        "input-bound/transform",
        "Recordings.despike",
        also_culprits=("Recordings.__getitem__",),
        free=True,
    ),
    case(
        "phrase_pairs",
        "input-bound/collate",
        "Vocabulary.numbers",
        also_causes=("transform",),
        also_culprits=("Collate.__call__",),
        free=True,
    ),
)
