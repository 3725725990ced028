"""Both recorders as tests use them, and what they wrote read back."""

from __future__ import annotations

import importlib

import pytest

from unstall.benchmark.reader import read_spans


class Recorder:
    """A recorder under test and its file. ``api`` is the module: ``native`` or ``fallback``."""

    def __init__(self, api, directory):
        self.api = api
        self.path = directory / "rec-1.bin"

    def open(self):
        self.api.open(str(self.path))
        return self

    def spans(self):
        """All records so far, in the order in which the spans ended."""
        return read_spans(self.path)[0]

    def header(self):
        return read_spans(self.path)[1]

    def names(self):
        """The name of each record."""
        known = {number: name for name, number in self.api.names().items()}
        return [known[int(number)] for number in self.spans()["name"]]


def load(name):
    """The recorder module of that name; skips where the C one was not built."""
    module = {"native": "unstall.child._recorder", "fallback": "unstall.child.fallback"}[name]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        pytest.skip(f"the C recorder is not built for this Python: {error}")


def silence(api):
    """Undo whatever a test set in a recorder, which is one for the whole process."""
    api.watch(None, False)
    api.on_name(None)
    api.modules(False)
    api.close()
