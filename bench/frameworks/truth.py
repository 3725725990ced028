"""What is planted in each program, by family of frameworks: what must be installed for it, and the answers."""

from __future__ import annotations

from dataclasses import dataclass

from cases import MODULE, TORCHRUN, Case, case


@dataclass(frozen=True)
class Family:
    """Programs that need the same packages."""

    name: str
    pins: tuple[str, ...]
    """Distributions, each as ``name==version``."""
    cases: tuple[Case, ...]


TRANSFORMERS = ("transformers==5.23.0", "accelerate==1.15.0")

FAMILIES: tuple[Family, ...] = (
    Family(
        "Lightning",
        ("lightning==2.6.6",),
        (
            case("lightning_slides", "input-bound/transform", "Slides.stained", steps=40),
            case("lightning_histograms", "callback-bound/logging", "WeightJournal.on_train_batch_end", steps=100),
            case("lightning_ddp_shards", "straggler/transform", "Documents.encode", steps=60),
            case("fabric_checkpoints", "callback-bound/checkpoint", "save_checkpoint", steps=80),
        ),
    ),
    Family(
        "Transformers Trainer",
        TRANSFORMERS,
        (
            case("hf_trainer_merges", "input-bound/transform", "Reviews.merge", steps=50),
            case("hf_trainer_spectra", "callback-bound/logging", "Spectra.on_step_end", steps=50),
            case("hf_trainer_masking", "input-bound/collate", "WordMasking.__call__", steps=60),
        ),
    ),
    Family(
        "Accelerate",
        ("accelerate==1.15.0",),
        (
            case("accelerate_auc", "callback-bound/metrics", "RecentQuality.area", steps=150),
            case(
                "accelerate_two_ranks",
                "straggler/logging",
                "Keeper.save",
                also_patterns=("callback-bound",),
                also_causes=("checkpoint",),
                launch=TORCHRUN,
                steps=100,
            ),
        ),
    ),
    Family(
        "Keras",
        ("keras==3.15.1", "jax==0.10.2"),
        (
            case("keras_torch_speckle", "input-bound/transform", "Scans.speckled", steps=120),
            case("keras_jax_journal", "callback-bound/logging", "WeightJournal.on_train_batch_end", steps=100),
        ),
    ),
    Family(
        "JAX and Optax",
        ("jax==0.10.2", "optax==0.2.8"),
        (
            case("jax_lengths", "compile-bound/recompilation", "main", steps=40),
            case("optax_warp", "input-bound/transform", "bend", also_culprits=("bent",), steps=200),
            case("jax_confusion", "callback-bound/metrics", "ConfusionMatrix.update", steps=300),
        ),
    ),
    Family(
        "Flax",
        ("flax==0.12.8", "jax==0.10.2", "optax==0.2.8"),
        (
            case(
                "flax_dialogue",
                "compile-bound/recompilation",
                "main",
                also_culprits=(MODULE, "train_step"),
                steps=40,
            ),
        ),
    ),
    Family(
        "Ray Train",
        ("ray==2.60.0", "tensorboardX==2.6.5"),
        (case("ray_train_reviews", "input-bound/transform", "Reviews.pairs", steps=150),),
    ),
    Family(
        "Ray Data",
        ("ray==2.60.0", "pyarrow==26.0.1", "tensorboardX==2.6.5"),
        (case("ray_data_letters", "input-bound/transform", "count_pairs", steps=150),),
    ),
    Family(
        "RLlib",
        (
            "ray==2.60.0",
            "gymnasium==1.2.2",
            "dm-tree==0.1.10",
            "lz4==4.4.5",
            "ormsgpack==1.13.1",
            "tensorboardX==2.6.5",
        ),
        (case("rllib_ferry", "environment-bound/env", "Ferry.swell", steps=512),),
    ),
    Family(
        "LitServe",
        ("litserve==0.2.19", "fastmcp==2.14.7", "mcp==1.30.0"),
        (case("litserve_letters", "host-bound/preprocess", "Scoring.decode_request", steps=300),),
    ),
    Family(
        "DeepSpeed",
        ("deepspeed==0.19.8",),
        (case("deepspeed_ledger", "input-bound/collate", "collate", steps=60),),
    ),
    Family(
        "PettingZoo",
        ("pettingzoo==1.27.0", "gymnasium==1.4.0"),
        (case("pettingzoo_herd", "environment-bound/env", "Herd.pushes", steps=640),),
    ),
    Family(
        "TorchRL",
        ("torchrl==0.14.1", "gymnasium==1.4.0"),
        (case("torchrl_cargo", "environment-bound/env", "Hold.emptiest", steps=2048),),
    ),
    Family(
        "Gymnasium and CleanRL",
        ("gymnasium==1.4.0",),
        (
            case(
                "gym_reservoir",
                "environment-bound/env",
                "Reservoir.flow",
                steps=640,
            ),
            case("gym_wrapped_ponds", "environment-bound/env", "smooth", steps=1600),
            case(
                "cleanrl_single",
                "environment-bound/batching",
                "main",
                also_patterns=("overhead-bound",),
                also_causes=("env",),
                also_culprits=("Agent.get_action_and_value",),
                steps=4096,
            ),
        ),
    ),
    Family(
        "Stable-Baselines3",
        ("stable-baselines3==2.9.2", "gymnasium==1.4.0"),
        (
            case("sb3_warehouse", "environment-bound/env", "Warehouse.nearest", steps=256),
            case("sb3_markets", "environment-bound/env", "Market.averages", steps=1200),
            case("sb3_heatmap", "callback-bound/logging", "VisitMap._on_step", steps=512),
        ),
    ),
    Family(
        "SPDL",
        ("spdl==0.8.0",),
        (case("spdl_spectrogram", "input-bound/transform", "spectrogram", steps=50),),
    ),
    Family(
        "torchdata",
        ("torchdata==0.11.0",),
        (
            case("nodes_json", "input-bound/transform", "parse", steps=120),
            case("stateful_median", "input-bound/transform", "Micrographs.median", steps=60),
        ),
    ),
    Family(
        "Hugging Face datasets",
        ("datasets==5.2.0",),
        (
            case("datasets_stream", "input-bound/transform", "hash_grams", steps=100),
            case("datasets_transform", "input-bound/transform", "count_letters", steps=800),
        ),
    ),
    Family(
        "Grain",
        ("grain==0.2.18",),
        (case("grain_spectra", "input-bound/transform", "spectrum", steps=60),),
    ),
    Family(
        "WebDataset",
        ("webdataset==1.0.2",),
        (case("webdataset_photos", "input-bound/transform", "decode_photo", steps=50),),
    ),
    Family(
        "Generation and pipelines",
        TRANSFORMERS,
        (
            case("generate_no_cache", "recompute-bound/kv-cache", "main", steps=12),
            case(
                "generate_one_by_one",
                "overhead-bound/batching",
                "answer",
                also_culprits=("main",),
                steps=96,
            ),
            case(
                "generate_banned_words",
                "host-bound/postprocess",
                "BanWords.__call__",
                also_causes=("python", "preprocess"),
                steps=30,
            ),
            case("pipeline_one_by_one", "overhead-bound/batching", "classify", also_culprits=("main",), steps=640),
        ),
    ),
    Family(
        "ONNX Runtime",
        ("onnxruntime==1.32.0", "onnx==1.23.2"),
        (
            case(
                "onnx_letters",
                "host-bound/preprocess",
                "count_letters",
                also_patterns=("input-bound",),
                also_causes=("transform", "python"),
                steps=400,
            ),
        ),
    ),
    Family(
        "DDP and FSDP2",
        (),
        (
            case("spawn_shards", "straggler/transform", "Reviews.tokens", also_causes=("python",), steps=400),
            case(
                "ddp_rank_zero_logs",
                "straggler/logging",
                "log_weights",
                launch=TORCHRUN,
                steps=100,
            ),
            case(
                "fsdp2_shards",
                "straggler/transform",
                "count_pairs",
                also_causes=("python", "preprocess"),
                launch=TORCHRUN,
                steps=60,
            ),
        ),
    ),
    Family(
        "torch.compile",
        (),
        (
            case(
                "compile_lengths",
                "compile-bound/recompilation",
                "main",
                also_culprits=(MODULE, "Tagger.forward"),
                steps=40,
            ),
        ),
    ),
)

CASES: tuple[Case, ...] = tuple(one for family in FAMILIES for one in family.cases)
