"""What is planted in each program of the zoo: the answers that a verdict is judged by."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One program and its truth.

    ``culprit`` is the deepest function of the program that holds the time (or keeps the memory), as
    ``function`` or ``Class.method``; ``also_*`` are other fair answers. ``launch`` is the launcher in
    front of the script, empty for plain Python.
    """

    name: str
    script: str
    pattern: str
    cause: str | None = None
    culprit: str | None = None
    also_patterns: tuple[str, ...] = ()
    also_causes: tuple[str, ...] = ()
    also_culprits: tuple[str, ...] = ()
    launch: tuple[str, ...] = ()
    args: tuple[str, ...] = ()


def case(name: str, verdict: str, culprit: str | None = None, **also: tuple[str, ...]) -> Case:
    """A case whose script is ``<name>.py``, from a verdict written as ``pattern/cause``."""
    pattern, _, cause = verdict.partition("/")
    return Case(name, f"{name}.py", pattern, cause or None, culprit, **also)


MODULE = "<module>"
TORCHRUN = ("torchrun", "--standalone", "--nproc-per-node", "2")

CASES: tuple[Case, ...] = (
    case("image_transform_main", "input-bound/transform", "shift_hue"),
    case("image_transform_workers", "input-bound/transform", "Despeckle.__call__"),
    case(
        "jpeg_fullres",
        "input-bound/transform",
        "read_rgb",
        also_culprits=("Album.__getitem__",),
    ),
    case(
        "file_scan",
        "input-bound/storage",
        "ShardedRecords.read_record",
        also_culprits=("ShardedRecords.__getitem__",),
    ),
    case(
        "sqlite_scan",
        "input-bound/storage",
        "ReviewDataset.fetch",
        also_culprits=("ReviewDataset.__getitem__",),
    ),
    case(
        "http_dataset",
        "input-bound/network",
        "RemotePhotos.fetch",
        also_culprits=("RemotePhotos.__getitem__",),
    ),
    case("collate_pad", "input-bound/collate", "pad_batch"),
    case(
        "worker_restart",
        "input-bound/workers",
        "WordDataset.load_lexicon",
        also_culprits=("WordDataset.__getitem__", "train_epoch"),
    ),
    case(
        "text_stream",
        "input-bound/transform",
        "MergeTokenizer.merge_word",
        also_culprits=("MergeTokenizer.encode",),
    ),
    case("plain_generator", "input-bound/transform", "draw", also_culprits=("batches",)),
    case(
        "csv_batches",
        "input-bound/transform",
        "load_batch",
        also_causes=("storage",),
    ),
    case(
        "float64_model",
        "compute-bound/precision",
        "Regressor.forward",
        also_culprits=("train",),
    ),
    case(
        "big_conv",
        "compute-bound/kernel",
        "ContextBlock.forward",
        also_causes=("model",),
    ),
    case(
        "attention_naive",
        "compute-bound/model",
        "BroadcastAttention.forward",
        also_causes=("kernel",),
    ),
    case("rnn_loop", "overhead-bound/small-ops", "MinimalGRU.forward"),
    case(
        "item_inference",
        "overhead-bound/batching",
        "score",
        also_culprits=("main", "RiskModel.forward", "Residual.forward"),
    ),
    case("nms_postprocess", "host-bound/postprocess", "nms", also_culprits=("iou",)),
    case("feature_prep", "host-bound/preprocess", "frame_features"),
    case("gc_each_step", "host-bound/gc", "free_memory", also_culprits=("train",)),
    case(
        "python_loss",
        "host-bound/python",
        "AnchorLoss.match",
        also_causes=("preprocess", "postprocess"),
        also_culprits=("AnchorLoss.forward",),
    ),
    case(
        "log_each_step",
        "callback-bound/logging",
        "JsonLogger.describe",
        also_culprits=("JsonLogger.on_step_end",),
    ),
    case("metrics_each_step", "callback-bound/metrics", "EpochMetrics.compute"),
    case("plot_progress", "callback-bound/plotting", "plot_fit"),
    case("checkpoint_often", "callback-bound/checkpoint", "Checkpointer.__call__"),
    case("tensorboard_histograms", "callback-bound/logging", "log_histograms"),
    case(
        "grid_env",
        "environment-bound/env",
        "HeatPlate.diffuse",
        also_culprits=("HeatPlate.step",),
    ),
    case(
        "single_env",
        "environment-bound/batching",
        "collect",
        also_patterns=("overhead-bound",),
        also_causes=("env",),
        also_culprits=("ActorCritic.forward",),
    ),
    case("leak_graph", "memory-growth/graph", "train_epoch"),
    case(
        "leak_cache",
        "memory-growth/cache",
        "CropDataset.crop",
        also_culprits=("CropDataset.__getitem__",),
    ),
    case(
        "leak_outputs",
        "memory-growth/cache",
        "AgreementMonitor.update",
        also_culprits=(MODULE,),
    ),
    case(
        "ddp_allreduce",
        "communication-bound/bandwidth",
        "train_step",
        also_causes=("bucketing",),
        launch=TORCHRUN,
    ),
    case(
        "ddp_straggler",
        "straggler/transform",
        "Scans.__getitem__",
        launch=TORCHRUN,
    ),
    case("healthy_mlp", "healthy", also_patterns=("compute-bound",)),
    case("healthy_cnn_loader", "healthy", also_patterns=("compute-bound",)),
    case("healthy_gru", "healthy", also_patterns=("compute-bound",)),
    case(
        "optimizer_heavy",
        "compute-bound/optimizer",
        "main",
        also_patterns=("overhead-bound",),
    ),
    case("threads_one", "compute-bound/threads", "train", also_causes=("kernel",)),
)
