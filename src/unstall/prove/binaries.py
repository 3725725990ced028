"""Two binary files of the same length, number by number: is one as far from the other as rounding goes?

Files of ``torch.save``, ``numpy.save``, ``numpy.savez`` and safetensors say which numbers they hold. What rounding does
to a file is seen in files of the original that is off by one unit in the last place. Nothing in a file is run: of a
pickle only the kinds of its storages are read, and every class that it names is an empty one.
"""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unstall.optimize.sameness import Limits, ObservedTensor

_KINDS = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "F32": "float32", "F64": "float64", "F16": "float16", "BF16": "bfloat16",
    "float32": "float32", "float64": "float64", "float16": "float16",
}  # fmt: skip
"""By what torch, safetensors and NumPy call them."""
_OF_CONTENT = (".data/serialization_id", "/.data/serialization_id")
"""Members that hold a digest of the others."""
_MAGIC = b"\x93NUMPY"
_MOST_HEADER = 100_000_000


class Part(NamedTuple):
    """Numbers of one kind; of no known kind where that is empty."""

    kind: str
    content: bytes


def beyond_rounding(original: bytes, changed: bytes, perturbed: Sequence[tuple[bytes, bytes]]) -> str | None:
    """Where and by how much a file is further from the original's than rounding takes it; None where it is not.

    ``perturbed``: files of the original, as it is and off by one unit in the last place. They may be of other seeds.
    """
    before, after = parts(original), parts(changed)
    noise = [(parts(a), parts(b)) for a, b in perturbed]
    if list(before) != list(after):
        return "it holds other parts"
    for name, part in before.items():
        if part == after[name] or name.endswith(_OF_CONTENT):
            continue
        beyond = _beyond(part, after[name], [(a[name], b[name]) for a, b in noise if name in a and name in b])
        if beyond is not None:
            return f"{name}: {beyond}" if name else beyond
    return None


def parts(content: bytes) -> Mapping[str, Part]:
    """The numbers in a file, by the names that it gives them; as one part where its format is not known."""
    if content.startswith(_MAGIC):
        return {"": _of_numpy(content)}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return _of_archive({name: archive.read(name) for name in archive.namelist()})
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, ValueError):
        return _of_safetensors(content) or {"": Part("", content)}


def _of_archive(members: Mapping[str, bytes]) -> dict[str, Part]:
    storages = {
        f"{name.removesuffix('data.pkl')}data/{key}": kind
        for name, content in members.items()
        if name.endswith("data.pkl")
        for key, kind in _storages(content).items()
    }
    return {
        name: _of_numpy(content) if content.startswith(_MAGIC) else Part(storages.get(name, ""), content)
        for name, content in members.items()
    }


def _of_numpy(content: bytes) -> Part:
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, OSError, EOFError):
        return Part("", content)
    return Part(_KINDS.get(array.dtype.name, ""), array.tobytes()) if array.dtype.isnative else Part("", content)


def _of_safetensors(content: bytes) -> dict[str, Part]:
    length = int.from_bytes(content[:8], "little")
    if not 2 <= length <= min(len(content) - 8, _MOST_HEADER):
        return {}
    try:
        header = json.loads(content[8 : 8 + length])
        return {"header": Part("", content[: 8 + length])} | {
            name: Part(_KINDS.get(tensor["dtype"], ""), content[8 + length :][slice(*tensor["data_offsets"])])
            for name, tensor in header.items()
            if name != "__metadata__"
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


class _Inert:
    """Stands for whatever a pickle names."""

    def __init__(self, *args: Any, **kwargs: Any):
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _Inert()

    def __setstate__(self, state: Any) -> None:
        pass

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    def append(self, item: Any) -> None:
        """As lists do."""

    def extend(self, items: Any) -> None:
        """As lists do."""


class _Storages(pickle.Unpickler):
    """Notes the kind of each storage that a pickle of torch's refers to."""

    def __init__(self, content: bytes):
        super().__init__(io.BytesIO(content))
        self.kinds: dict[str, str] = {}

    def find_class(self, module: str, name: str) -> Any:
        """An empty class of that name."""
        return type(name, (_Inert,), {})

    def persistent_load(self, identity: Any) -> Any:
        """``("storage", class, key, device, how many)``."""
        _, storage, key, *_ = identity
        self.kinds[str(key)] = _KINDS.get(getattr(storage, "__name__", ""), "")
        return _Inert()


def _storages(content: bytes) -> dict[str, str]:
    reader = _Storages(content)
    try:
        reader.load()
    except Exception:  # a pickle that is damaged, or needs more than empty classes: what was read until then is right
        pass
    return reader.kinds


def _beyond(before: Part, after: Part, perturbed: Sequence[tuple[Part, Part]]) -> str | None:
    """Why a part is not close; None where it is."""
    if not before.kind or (before.kind, len(before.content)) != (after.kind, len(after.content)):
        return "other content, which is not read number by number"
    values = _numbers(before)
    deviations = [
        _numbers(b) - _numbers(a) for a, b in perturbed if a.kind == b.kind == before.kind
        and len(a.content) == len(b.content) == len(before.content)
    ]  # fmt: skip
    runs = [[_tensor(before.kind, values + np.nan_to_num(off, posinf=0.0, neginf=0.0))] for off in deviations]
    verdict = Limits([_tensor(before.kind, values)], runs).judge([_tensor(before.kind, _numbers(after))])
    return None if verdict.sameness in ("exact", "close") else (verdict.reason or "").partition(": ")[2]


def _numbers(part: Part) -> npt.NDArray[np.float64]:
    if part.kind == "bfloat16":
        return (np.frombuffer(part.content, np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return np.frombuffer(part.content, part.kind).astype(np.float64)


def _tensor(kind: str, values: npt.NDArray[np.float64]) -> ObservedTensor:
    content = values.astype("float64" if kind == "float64" else "float32").tobytes()
    return ObservedTensor("weights.0.file.0", 0, kind, values.shape, content, content)
