"""Where the machines of a run leave their parts: a folder that they share, or any address that fsspec knows."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

MOST_FILES = 1 << 16
"""The most files that are looked at in a folder."""


class StoreError(Exception):
    """Something cannot be written to or read from the store; the message is one line."""


@dataclass(frozen=True)
class StoredFile:
    """A file of a folder in the store."""

    name: str
    modified: float | None
    """When it was changed, by the store's clock, which all machines see alike; None where it does not say."""


class Store(Protocol):
    """Names are relative, with ``/``. All methods raise StoreError."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file whole or not at all, with the folders above it."""

    def files(self, folder: str) -> list[StoredFile]:
        """Those of a folder; none where it is not there."""

    def read(self, name: str, most: int) -> bytes:
        """A file of at most so many bytes."""

    def remove(self, name: str) -> None:
        """Remove a file."""

    def address(self, name: str) -> str:
        """The file as a person finds it."""


def open_store(address: str) -> Store:
    """The store at an address: a folder's path, or a URL (``s3://bucket/runs``). Raises StoreError, and ImportError."""
    return RemoteStore(address) if "://" in address else FolderStore(Path(address).absolute())


def now(store: Store) -> float | None:
    """The store's own time, by a file that is written for that; None where it does not say."""
    name = f"started-{secrets.token_hex(8)}"
    store.write(name, b"")
    try:
        return next((file.modified for file in store.files("") if file.name == name), None)
    finally:
        store.remove(name)


class FolderStore:
    """A folder that every machine mounts."""

    def __init__(self, root: Path):
        self.root = root

    def write(self, name: str, data: bytes) -> None:
        """To a file beside it first: a reader sees the whole of it, or nothing."""
        path = self.root / name
        partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
        except OSError as error:
            raise StoreError(f"cannot write {path}: {error.strerror or error}") from error
        finally:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)

    def files(self, folder: str) -> list[StoredFile]:
        try:
            with os.scandir(self.root / folder) as entries:
                files = [_regular(entry) for entry, _ in zip(entries, range(MOST_FILES))]
            return [file for file in files if file is not None]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"cannot read {self.root / folder}: {error.strerror or error}") from error

    def read(self, name: str, most: int) -> bytes:
        """A link or a pipe of a stranger's is not followed, and not waited for."""
        path = self.root / name
        try:
            number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(number, "rb") as file:
                if not stat.S_ISREG(os.fstat(number).st_mode):
                    raise StoreError(f"{path} is no file")
                return _bounded(file.read(most + 1), most, str(path))
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error.strerror or error}") from error

    def remove(self, name: str) -> None:
        try:
            (self.root / name).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"cannot remove {self.root / name}: {error.strerror or error}") from error

    def address(self, name: str) -> str:
        return str(self.root / name)


class MemoryStore:
    """What came another way, for this process alone."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}

    def write(self, name: str, data: bytes) -> None:
        self._files[name] = data

    def files(self, folder: str) -> list[StoredFile]:
        split = [name.rpartition("/") for name in self._files]
        return [StoredFile(name, None) for above, _, name in split if above == folder]

    def read(self, name: str, most: int) -> bytes:
        if name not in self._files:
            raise StoreError(f"there is no {name}")
        return _bounded(self._files[name], most, name)

    def remove(self, name: str) -> None:
        self._files.pop(name, None)

    def address(self, name: str) -> str:
        return name


class RemoteStore:
    """An object store, or whatever else fsspec has a file system for. Each raises errors of its own kinds."""

    def __init__(self, url: str):
        import fsspec

        self.url = url.rstrip("/")
        self._system, self._root = _trying(url, lambda: fsspec.core.url_to_fs(self.url))

    def write(self, name: str, data: bytes) -> None:
        """At once, as object stores do; where a reader may see half of it, its checksum says so."""
        path = self._path(name)

        def put() -> None:
            self._system.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._system.pipe_file(path, data)

        _trying(self.address(name), put)

    def files(self, folder: str) -> list[StoredFile]:
        path = self._path(folder)

        def listed() -> list[StoredFile]:
            self._system.invalidate_cache()
            entries = self._system.ls(path, detail=True) if self._system.exists(path) else []
            names = [entry["name"] for entry in entries[:MOST_FILES] if entry["type"] == "file"]
            return [StoredFile(name.rpartition("/")[2], self._modified(name)) for name in names]

        return _trying(self.address(folder), listed)

    def _modified(self, path: str) -> float | None:
        try:
            return float(self._system.modified(path).timestamp())
        except (NotImplementedError, FileNotFoundError):
            return None

    def read(self, name: str, most: int) -> bytes:
        path = self._path(name)
        data: bytes = _trying(self.address(name), lambda: self._system.cat_file(path, start=0, end=most + 1))
        return _bounded(data, most, self.address(name))

    def remove(self, name: str) -> None:
        _trying(self.address(name), lambda: self._system.rm_file(self._path(name)))

    def address(self, name: str) -> str:
        return f"{self.url}/{name}"

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}".rstrip("/")


def _regular(entry: os.DirEntry[str]) -> StoredFile | None:
    """None for what is no file, or is gone by now."""
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    return StoredFile(entry.name, status.st_mtime) if stat.S_ISREG(status.st_mode) else None


def _bounded(data: bytes, most: int, name: str) -> bytes:
    if len(data) > most:
        raise StoreError(f"{name} is larger than {most >> 20} MB")
    return data


def _trying(name: str, action: Callable[[], T]) -> T:
    try:
        return action()
    except ImportError:
        raise
    except Exception as error:
        reason: Any = str(error) or type(error).__name__
        raise StoreError(f"{name}: {' '.join(reason.split())[:200]}") from error
