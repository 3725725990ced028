"""Packages that are never blamed: what trainings are built on. Whoever calls them chose the work.

All other installed packages may be: a training loop, a data set or a model that somebody published is a program's own
code that happens to be installed. Standard library only: the recorder asks as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class PackageGroup(NamedTuple):
    """Packages of one kind."""

    why: str
    packages: str
    """Import names; with a slash, what a part of a package begins with. Regular expressions."""
    runs_loops: bool = False
    """What they do besides calling others may be theirs to mend."""


GROUPS: tuple[PackageGroup, ...] = (
    PackageGroup(
        "compute with tensors: their time is that of the operator that was asked for",
        """
        torch torchvision torchaudio torchtext torchdata torchgen functorch tensordict triton jax jaxlib tensorflow
        keras xformers flash_attn apex bitsandbytes transformer_engine nvidia cupy cuda onnx onnxruntime einops
        opt_einsum safetensors
        """,
    ),
    PackageGroup(
        "compute with arrays, tables and graphs of numbers",
        """
        numpy scipy numba llvmlite numexpr bottleneck pandas polars pyarrow narwhals dask xarray sklearn
        threadpoolctl joblib networkx sympy mpmath shapely faiss
        """,
    ),
    PackageGroup(
        "decode and encode pictures, sound, video and text",
        """
        PIL cv2 skimage imageio imageio_ffmpeg tifffile turbojpeg simplejpeg rasterio pydicom nibabel SimpleITK av
        decord torchcodec soundfile audioread soxr tokenizers sentencepiece tiktoken regex yaml orjson ujson
        simplejson lxml
        """,
    ),
    PackageGroup(
        "read files, databases and networks: what counts is who asks for how much",
        """
        h5py zarr numcodecs lmdb fsspec s3fs gcsfs huggingface_hub msgpack msgspec cloudpickle dill zstandard lz4
        isal blosc2? requests urllib3 httpx httpcore h11 h2 aiohttp anyio certifi botocore boto3 s3transfer google
        grpc redis pymongo psycopg2? pymysql sqlalchemy websockets? filelock
        """,
    ),
    PackageGroup(
        "run loops over what others wrote: the hooks that they call are to blame, or what configures them",
        """
        lightning pytorch_lightning lightning_fabric lightning_utilities accelerate ignite fastai fastcore skorch
        composer deepspeed fairscale horovod ray
        transformers/(?:trainer|training_args|generation|integrations|utils|modeling_utils|optimization|hf_argparser)
        stable_baselines3/common/(?:callbacks|monitor|vec_env) gymnasium
        gym pettingzoo ale_py mujoco pygame flax optax orbax chex equinox haiku spdl grain hydra omegaconf fire
        click typer absl optuna
        """,
        runs_loops=True,
    ),
    PackageGroup(
        "log, plot, measure and show progress: as often as the program asks",
        """
        tqdm rich loguru structlog matplotlib seaborn plotly tensorboard tensorboardX wandb mlflow comet_ml neptune
        clearml aim torchmetrics torcheval psutil pynvml sentry_sdk opentelemetry prometheus_client
        """,
    ),
    PackageGroup(
        "are in between: declarations, wrappers, notebooks, tools for development",
        r"""
        typing_extensions attrs? pydantic pydantic_core beartype typeguard jaxtyping wrapt decorator six packaging
        setuptools pkg_resources _distutils_hack pip importlib_metadata cffi Cython jinja2 pygments IPython
        ipykernel ipywidgets traitlets tornado zmq jupyter_client debugpy _?pytest pluggy coverage memray
        line_profiler viztracer more_itertools toolz cytoolz sortedcontainers __editable__\w* sitecustomize
        """,
    ),
)


def _pattern(groups: Iterable[PackageGroup]) -> re.Pattern[str]:
    names = [name for group in groups for name in group.packages.split()]
    packages = "|".join(name for name in names if "/" not in name)
    return re.compile("|".join([rf"(?:{packages})(?=[/.]|$)", *(name for name in names if "/" in name)]))


_SUBSTRATE = _pattern(GROUPS)
_LOOPS = _pattern(group for group in GROUPS if group.runs_loops)


def is_substrate(path: str) -> bool:
    """Whether a file is of such a package. ``path``: within the folder of packages, as ``torch/nn/functional.py``."""
    return bool(_SUBSTRATE.match(path.replace("\\", "/")))


def runs_loops(path: str) -> bool:
    """Whether it is of one that runs loops over what others wrote."""
    return bool(_LOOPS.match(path.replace("\\", "/")))
