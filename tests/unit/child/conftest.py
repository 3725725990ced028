"""For tests of what looks at the modules of the program that it is in: here that is the whole suite."""

import sys
from pathlib import Path

import pytest

TESTS = str(Path(__file__).resolve().parents[2])


@pytest.fixture
def alone(request, monkeypatch):
    """No module of the other tests is loaded, which a look at all of them would take seconds for."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if file.startswith(TESTS) and module is not request.module:
            monkeypatch.delitem(sys.modules, name)
