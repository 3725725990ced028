"""Keeps samples in files from one epoch to the next."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import weakref
from collections.abc import Callable
from typing import Any

from unstall.optimize.runtime.sample_pickler import _SamplePickler


class _SampleCache:
    """Loaded samples, kept in files for the next epoch and shared by the loader's workers.

    It leaves half of the disk space that was free untouched, and removes its files at exit.
    """

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="samples-")
        self.reserve = shutil.disk_usage(self.folder).free // 2
        weakref.finalize(self, self.remove, self.folder, os.getpid())

    @staticmethod
    def remove(folder: str, owner: int) -> None:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    def get(self, load: Callable[[Any], Any], index: Any) -> Any:
        path = os.path.join(self.folder, repr(index).encode().hex())
        try:
            with open(path, "rb", buffering=0) as file:
                return pickle.loads(file.readall())
        except FileNotFoundError:
            sample = load(index)
        if shutil.disk_usage(self.folder).free > self.reserve:
            with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as draft:
                _SamplePickler(draft, pickle.HIGHEST_PROTOCOL).dump(sample)
            os.replace(draft.name, path)
        return sample
