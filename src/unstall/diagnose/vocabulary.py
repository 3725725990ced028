"""What names tell: libraries and words by which a stack is known for what it does. General, never of one program."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

from unstall.records.observations import Frame

TENSOR_CONSTRUCTORS = frozenset(
    ("tensor", "as_tensor", "Tensor", "FloatTensor", "DoubleTensor", "LongTensor", "IntTensor")
)
"""Functions and classes of torch that make a tensor of a list, and read it item by item."""

_CALLBACK_LIBRARIES = re.compile(
    r"[/\\](matplotlib|seaborn|plotly|tensorboard|tensorboardX|wandb|mlflow|comet_ml|neptune|clearml|aim|torchmetrics|"
    r"torcheval)[/\\]|[/\\]sklearn[/\\]metrics[/\\]|[/\\]torch[/\\]utils[/\\]tensorboard[/\\]"
    r"|[/\\]logging[/\\]__init__\.py$|[/\\]torch[/\\]serialization\.py$"
)
_PROGRESS = re.compile(r"[/\\](tqdm|rich|progressbar|alive_progress)[/\\]")
_PLOTTING = re.compile(r"[/\\](matplotlib|seaborn|plotly)[/\\]")
_CHECKPOINT = re.compile(r"[/\\]torch[/\\]serialization\.py$|[/\\]safetensors[/\\]|[/\\]joblib[/\\]")
_METRICS = re.compile(r"[/\\](torchmetrics|torcheval)[/\\]|[/\\]sklearn[/\\]metrics[/\\]")
_NETWORK_LIBRARIES = re.compile(
    r"[/\\](requests|urllib3|aiohttp|httpx|httpcore|botocore|boto3|s3fs|gcsfs|fsspec[/\\]implementations[/\\]http|redis|"
    r"pymongo|psycopg2?|pymysql|grpc|websockets?)[/\\]|[/\\](urllib[/\\]request|http[/\\]client|socket|ssl|ftplib)\.py$"
)
_SERVERS = re.compile(
    r"[/\\](litserve[/\\]loops|uvicorn|hypercorn|gunicorn|starlette|fastapi|flask|werkzeug|aiohttp[/\\]web\w*|tornado|sanic|"
    r"bentoml|mosec|gradio|ray[/\\]serve|wsgiref)[/\\.]|[/\\]grpc[/\\](aio[/\\])?_server\.py$"
    r"|[/\\](http[/\\]server|socketserver)\.py$"
)
_LOADER = re.compile(r"[/\\]torch[/\\]utils[/\\]data[/\\]dataloader\.py$")
_WAITS = re.compile(
    r"select|_?poll|epoll|get|_?recv(_bytes)?|_recv_bytes|accept|wait|readline|readinto|"
    r"run|asyncio_run|run_until_complete|run_forever|_run_once|serve_forever"
)
"""Functions that a server's loop waits in; one written in C shows as the one that calls it."""

_STORAGE_LIBRARIES = re.compile(
    r"[/\\](h5py|zarr|lmdb|sqlite3|zipfile|tarfile|gzip|bz2|lzma|_compression|pathlib|mmap|shutil)[/\\.]"
    r"|[/\\](_?io|os|codecs)\.py$|[/\\]numpy[/\\]lib[/\\](_?format|_?npyio)"
)

_OF_MATHEMATICS = (
    r"(prob\w*|softmax|sum(exp)?|lik\w*|partition\w*|potential\w*|marginal\w*|det\w*|sigmoid|densit\w+|posterior\w*|"
    r"prior\w*|evidence|odds|ratios?|std|var|variance|scale|alpha|pi|p|q|z|mel|gamma|cosh|cdf|pdf|pmf)(_|\.|$)"
)
"""What follows "log" where it is the logarithm."""
_CALLBACK_WORDS = re.compile(
    r"(^|[._])_?(log(?!_?"
    + _OF_MATHEMATICS
    + r")|logs|logger|logging|metric|metrics|plot|plots|plotting|draw|render|figure|checkpoint\w*|ckpt|save|saves|"
    r"dump|report|monitor|summar\w+|track|tracker|record|callback\w*|on_(train|batch|step|epoch)\w*|evaluate|evaluation|"
    r"accuracy|auc|f1|confusion\w*|score|scores|visuali[sz]e\w*|histogram\w*|statistics|stats|progress|telemetry|audit|"
    r"journal|history|dashboard|snapshot|export|write|print)(_|\.|$)",
    re.IGNORECASE,
)
_CALLBACK_CLASS = re.compile(
    r"(Logger|Callback|Monitor|Meter|Metric|Plotter|Checkpoint|Tracker|Writer|Reporter|Recorder|Journal|Board|Stats)",
)
_METRIC_WORDS = re.compile(
    r"metric|accuracy|auc|f1|confusion|precision|recall|score|evaluat|meter|statistic|percentile|quantile",
    re.IGNORECASE,
)
_PLOT_WORDS = re.compile(r"plot|draw|figure|render|chart|visuali|image|savefig|curve", re.IGNORECASE)
_CHECKPOINT_WORDS = re.compile(r"checkpoint|ckpt|save_model|save_state|snapshot|torch\.save|state_dict", re.IGNORECASE)

_CALLBACK_CALLS = re.compile(
    r"(^|\.)(print|write|writerow|writerows|writelines|flush|fsync|dump|dumps|save|savefig|log|info|debug|warning|add_scalar|"
    r"add_histogram|imsave|imwrite)$"
)
_STORAGE_CALLS = re.compile(
    r"(^|\.)(read|readline|readlines|readinto|read_bytes|read_text|open|execute|executemany|fetchone|fetchall|fetchmany|"
    r"fromfile|memmap|pread|preadv|seek|getvalue|extractfile|read_parquet|read_feather|posix_fadvise|stat|listdir|glob|"
    r"walk|scandir|copyfile|copy2)$|(^|\.)(np|numpy)\.load$"
)
_DATA_WORDS = re.compile(
    r"(^|[._])_?(load|loads|loader|read|reads|reader|fetch|batch|batches|make_batch|next_batch|get_batch|sample|samples|"
    r"collate|decode|tokeni[sz]e\w*|encode|augment\w*|transform\w*|parse|dataset|data|stream|generate|generator|"
    r"__getitem__|__next__|__iter__)(_|\.|\d|$)",
    re.IGNORECASE,
)


def is_callback_library(frames: Sequence[Frame]) -> bool:
    """Whether a frame is of a library that logs, plots, measures quality or saves, or the last of one for progress.

    A progress bar is around what it goes through: what is made for it is no progress.
    """
    return any(_CALLBACK_LIBRARIES.search(frame.file) for frame in frames) or any(
        _PROGRESS.search(frame.file) for frame in frames[-1:]
    )


def is_network_library(frames: Iterable[Frame]) -> bool:
    """Whether a frame is of a library that talks over a network."""
    return any(_NETWORK_LIBRARIES.search(frame.file) for frame in frames)


def draws_samples(frames: Sequence[Frame]) -> bool:
    """Whether torch's loader asks a sampler there which samples come next, or begins to."""
    return any(
        _LOADER.search(above.file)
        and (
            above.function.endswith("_next_index")
            # A sampler of batches whose __iter__ is no generator works when the loader is begun.
            or (below.function.endswith("__iter__") and not _LOADER.search(below.file))
        )
        for above, below in itertools.pairwise(frames)
    )


def is_server(frames: Iterable[Frame]) -> bool:
    """Whether a frame is of a library that serves requests, around the program's own code."""
    return any(_SERVERS.search(frame.file) for frame in frames)


def waits(frames: Sequence[Frame]) -> bool:
    """Whether a stack of a server ends where it waits for requests."""
    return bool(frames) and _WAITS.fullmatch(frames[-1].function.rpartition(".")[2]) is not None


def names_callback(qualname: str) -> bool:
    """Whether a function's qualified name says that it logs, plots, measures quality or saves."""
    class_name = qualname.rpartition(".")[0]
    return bool(_CALLBACK_WORDS.search(qualname) or (class_name and _CALLBACK_CLASS.search(class_name)))


def names_data(qualname: str) -> bool:
    """Whether a function's qualified name says that it makes or loads data."""
    return bool(_DATA_WORDS.search(qualname))


def calls_callback(calls: Iterable[str]) -> bool:
    """Whether a line's calls print, write or save."""
    return any(_CALLBACK_CALLS.search(call) for call in calls)


def calls_storage(calls: Iterable[str]) -> bool:
    """Whether a line's calls read files or databases."""
    return any(_STORAGE_CALLS.search(call) for call in calls)


def reads_storage(frame: Frame) -> bool:
    """Whether a library's frame is one that reads files or databases, not one that decodes what was read."""
    return bool(_STORAGE_LIBRARIES.search(frame.file))


def calls_checkpoint(calls: Iterable[str]) -> bool:
    """Whether one of a function's calls asks for a model's state or saves it."""
    return any(_CHECKPOINT_WORDS.search(call) for call in calls)


def callback_cause(files: Iterable[str], words: str) -> str:
    """``plotting``, ``checkpoint``, ``metrics`` or ``logging``: by library first, then by the words in the names."""
    files = list(files)
    for pattern, cause in (
        (_PLOTTING, "plotting"),
        (_METRICS, "metrics"),
        (_CHECKPOINT, "checkpoint"),
    ):
        if any(pattern.search(file) for file in files):
            return cause
    for pattern, cause in (
        (_CHECKPOINT_WORDS, "checkpoint"),
        (_METRIC_WORDS, "metrics"),
        (_PLOT_WORDS, "plotting"),
    ):
        if pattern.search(words):
            return cause
    return "logging"
