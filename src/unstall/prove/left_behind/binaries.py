"""Two binary files of the same length, number by number: is one as far from the other as rounding goes?

Files of ``torch.save``, ``numpy.save``, ``numpy.savez`` and safetensors say which numbers they hold. What rounding does
to a file is seen in files of the original that is off by one unit in the last place. Nothing in a file is run: of a
pickle only the kinds of its storages are read, and every class that it names is an empty one.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import pickletools
import random
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from unstall.optimize.sameness import Limits, ObservedTensor
from unstall.prove.left_behind.layouts import Layout, of_tensor, without_order

_KINDS = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "F32": "float32", "F64": "float64", "F16": "float16", "BF16": "bfloat16",
    "float32": "float32", "float64": "float64", "float16": "float16",
}  # fmt: skip
"""Kinds of numbers, by what torch, safetensors and NumPy call them."""
OF_CONTENT = ".data/serialization_id"
"""A member that holds a digest of the others."""
_MOST_HEADER = 100_000_000
_MOST_REORDERED = 1 << 28  # bytes of a storage: a larger one is read as it lies in the file
_BLOCK_BYTES = 1 << 22  # a multiple of every width
_WIDTHS = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2}
_SAMPLE_BYTES = 1 << 20
"""How much of a file's numbers is kept: all of a small file, evenly chosen ones of a large one."""

_FIRST = random.SystemRandom().randrange(1 << 30)
"""Where the chosen numbers begin: a changed program cannot know which they are."""


class BinaryPart(NamedTuple):
    """Numbers of one kind; of no known kind where that is empty."""

    kind: str
    size: int
    """Bytes."""
    digest: bytes
    sample: bytes

    def is_like(self, other: BinaryPart) -> bool:
        """Whether the two can be compared number by number."""
        return bool(self.kind) and (self.kind, self.size) == (other.kind, other.size)


Parts = Mapping[str, BinaryPart]
"""Parts by the names that a file gives them; one without a name where its format is not known."""


def beyond_rounding(original: Parts, changed: Parts, perturbed: Sequence[tuple[Parts, Parts]]) -> str | None:
    """Where and by how much a file is further from the original's than rounding takes it; None where it is not.

    ``perturbed``: files of the original, as it is and off by one unit in the last place. They may be of other seeds.
    """
    if list(original) != list(changed):
        return "it holds other parts"
    for name, part in original.items():
        if part == changed[name] or name.endswith(OF_CONTENT):
            continue
        beyond = _beyond(part, changed[name], [(a[name], b[name]) for a, b in perturbed if name in a and name in b])
        if beyond is not None:
            return f"{name}: {beyond}" if name else beyond
    return None


def hold_the_same(a: Parts, b: Parts) -> bool:
    """Whether two files hold the same in all parts, which a file of another name may say in other words."""
    return list(a) == list(b) and all(part == b[name] or name.endswith(OF_CONTENT) for name, part in a.items())


def parts_of(file: BinaryIO) -> Parts:
    """The numbers in a file that is open for reading and can be sought in."""
    file.seek(0)
    begins_as_archive = file.read(2) == b"PK"  # zipfile finds one behind other bytes too, which nobody else reads
    try:
        if begins_as_archive:
            with zipfile.ZipFile(file) as archive:
                return _of_archive(archive)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError, EOFError, ValueError):
        pass
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    kind, header = _header_of_numpy(file)
    if kind:
        return {"header": _words(header), "": _read(kind, file, size - file.tell(), _SAMPLE_BYTES)}
    return _of_safetensors(file, size) or {"": _whole(file, size)}


def _whole(file: BinaryIO, size: int) -> BinaryPart:
    file.seek(0)
    return _read("", file, size, 0)


def _of_archive(archive: zipfile.ZipFile) -> dict[str, BinaryPart]:
    names = archive.namelist()
    if len(set(names)) < len(names):  # which of two a reader takes is its own affair
        raise zipfile.BadZipFile
    pickles = {
        name: _storages(archive.read(name))
        for name in names
        if name.endswith("data.pkl") and archive.getinfo(name).file_size < _MOST_HEADER
    }
    storages = {
        f"{name.removesuffix('data.pkl')}data/{key}": storage
        for name, reader in pickles.items()
        for key, storage in reader.kept.items()
    }
    root = _root(names) if pickles else ""
    parts: dict[str, BinaryPart] = {}
    if pickles:  # torch maps the numbers of its own into memory, as they lie in the file
        stored = [(name.removeprefix(root), archive.getinfo(name).compress_type) for name in names]
        parts["how it is stored"] = _words(repr(stored).encode())
    for name in names:
        if name in pickles:
            parts |= _of_pickle(name.removeprefix(root), pickles[name])
            continue
        with archive.open(name) as member:
            kind, header = _header_of_numpy(member)
            if kind:
                parts[f"header of {name}"] = _words(header)
            else:
                member.seek(0)
            size = archive.getinfo(name).file_size - member.tell()
            if name in storages:
                kind, layout = storages[name]
                member = _in_rows(member, size, kind, layout)
            parts[name.removeprefix(root)] = _read(kind, member, size, _SAMPLE_BYTES // len(names))
    return parts


def _in_rows(member: IO[bytes], size: int, kind: str, layout: Layout | None) -> IO[bytes]:
    """The numbers of a storage in the order of rows, if it has another; as they are where that is not known."""
    if layout is None or not kind or size > _MOST_REORDERED or layout.order == sorted(layout.order):
        return member
    content = member.read()
    try:
        return io.BytesIO(layout.in_rows(content, _WIDTHS[kind]))
    except ValueError:  # not as many numbers as it says
        return io.BytesIO(content)


def _root(names: Sequence[str]) -> str:
    """The folder that all members are in, which torch names after the file."""
    roots = {name.partition("/")[0] for name in names}
    return f"{roots.pop()}/" if len(roots) == 1 else ""


def _of_pickle(name: str, reader: _Storages) -> dict[str, BinaryPart]:
    """A pickle as what it says, and the numbers in it: a loss or a learning rate that is saved beside the weights."""
    words, numbers = hashlib.blake2b(digest_size=16), []
    try:
        operations = [(operation.name, argument) for operation, argument, _ in pickletools.genops(reader.content)]
        for operation, argument in without_order(operations, reader.have_layouts):
            is_number = operation == "BINFLOAT"
            words.update(repr((operation, None if is_number else argument)).encode())
            numbers += [argument] if is_number else []
    except Exception:  # damaged: it is compared as it is
        return {name: _words(reader.content)}
    values = np.array(numbers, np.float64).tobytes()
    return {
        name: BinaryPart("", 0, words.digest(), b""),
        f"numbers in {name}": _read("float64", io.BytesIO(values), len(values), len(values)),
    }


def _header_of_numpy(file: IO[bytes]) -> tuple[str, bytes]:
    """The kind of the numbers that follow, and what says so; nothing where the file is not NumPy's."""
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, is_fortran, dtype = read(file)
    except Exception:  # not NumPy's, or damaged: its reader raises many kinds
        return "", b""
    return (_KINDS.get(dtype.name, "") if dtype.isnative else "", repr((shape, is_fortran, dtype)).encode())


def _of_safetensors(file: BinaryIO, size: int) -> dict[str, BinaryPart]:
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= min(size - 8, _MOST_HEADER):
        return {}
    try:
        header = file.read(length)
        tensors = {name: tensor for name, tensor in json.loads(header).items() if name != "__metadata__"}
        parts = {"header": _words(header)}
        for name, tensor in tensors.items():
            first, end = (int(place) for place in tensor["data_offsets"])
            if not 0 <= first <= end <= size - 8 - length:
                return {}
            file.seek(8 + length + first)
            parts[name] = _read(_KINDS.get(tensor["dtype"], ""), file, end - first, _SAMPLE_BYTES // len(tensors))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return parts


def _words(content: bytes) -> BinaryPart:
    """What must be the same to the last byte."""
    return _read("", io.BytesIO(content), len(content), 0)


def _read(kind: str, file: IO[bytes], size: int, sample_bytes: int) -> BinaryPart:
    """The next so many bytes of a file."""
    width = _WIDTHS.get(kind, 0)
    stride = max(1, -(-size // max(sample_bytes, 1)))
    digest, done, sample = hashlib.blake2b(digest_size=16), 0, []
    while block := file.read(min(_BLOCK_BYTES, size - done)):
        digest.update(block)
        if width:
            values = np.frombuffer(block[: len(block) // width * width], f"V{width}")
            sample.append(values[(_FIRST - done // width) % stride :: stride].tobytes())
        done += len(block)
    return BinaryPart(kind, done, digest.digest(), b"".join(sample))


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


class _Storage(NamedTuple):
    """That a pickle refers to."""

    key: str
    numbers: int


class _Storages(pickle.Unpickler):
    """Notes the kind of each storage that a pickle of torch's refers to, and how the tensor of it lies there."""

    def __init__(self, content: bytes):
        super().__init__(io.BytesIO(content))
        self.content = content
        self.kinds: dict[str, str] = {}
        self.referred: list[str] = []
        self.layouts: dict[str, Layout | None] = {}

    def find_class(self, module: str, name: str) -> Any:
        """An empty class of that name, but for what makes a tensor of a storage."""
        return self._tensor if name == "_rebuild_tensor_v2" else type(name, (_Inert,), {})

    def persistent_load(self, identity: Any) -> Any:
        """``("storage", class, key, device, how many)``."""
        _, storage, key, _, numbers, *_ = identity
        self.kinds[str(key)] = _KINDS.get(getattr(storage, "__name__", ""), "")
        self.referred.append(str(key))
        return _Storage(str(key), numbers)

    def _tensor(self, storage: _Storage, offset: int, size: Any, stride: Any, *_: Any) -> Any:
        self.layouts[storage.key] = of_tensor(offset, size, stride, storage.numbers)
        return _Inert()

    @property
    def kept(self) -> dict[str, tuple[str, Layout | None]]:
        """(kind, layout of the tensor whose storage it is alone) of each."""
        times = Counter(self.referred)
        return {key: (kind, self.layouts.get(key) if times[key] == 1 else None) for key, kind in self.kinds.items()}

    @property
    def have_layouts(self) -> list[bool]:
        """Of each that is referred to, in turn, whether numbers of it are read in the order of rows."""
        kept = self.kept
        return [bool(kept[key][0]) and kept[key][1] is not None for key in self.referred]


def _storages(content: bytes) -> _Storages:
    reader = _Storages(content)
    try:
        reader.load()
    except Exception:  # a pickle that is damaged, or needs more than empty classes: what was read until then is right
        pass
    return reader


def _beyond(before: BinaryPart, after: BinaryPart, perturbed: Sequence[tuple[BinaryPart, BinaryPart]]) -> str | None:
    """Why a part is not close; None where it is."""
    if not before.is_like(after):
        return "other content, which is not read number by number"
    values = _numbers(before)
    deviations = [_numbers(b) - _numbers(a) for a, b in perturbed if before.is_like(a) and before.is_like(b)]
    runs = [[_tensor(before.kind, values + np.nan_to_num(off, posinf=0.0, neginf=0.0))] for off in deviations]
    verdict = Limits([_tensor(before.kind, values)], runs).judge([_tensor(before.kind, _numbers(after))])
    return None if verdict.sameness in ("exact", "close") else (verdict.reason or "").partition(": ")[2]


def _numbers(part: BinaryPart) -> npt.NDArray[np.float64]:
    if part.kind == "bfloat16":
        return (np.frombuffer(part.sample, np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return np.frombuffer(part.sample, part.kind).astype(np.float64)


def _tensor(kind: str, values: npt.NDArray[np.float64]) -> ObservedTensor:
    content = values.astype("float64" if kind == "float64" else "float32").tobytes()
    return ObservedTensor("weights.0.file.0", 0, kind, values.shape, content, content)
