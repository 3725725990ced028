import os
import sys
from pathlib import Path

import pytest
from kineto_files import write

from unstall.trace.library import library
from unstall.trace.readers import read


@pytest.fixture(scope="session")
def real_traces() -> Path:
    """The folder of recorded traces beside the project, which is not part of it."""
    folder = Path(os.environ.get("UNSTALL_TRACES", Path(__file__).parents[4] / "shared" / "traces"))
    if not folder.is_dir():
        pytest.skip("no folder of recorded traces (UNSTALL_TRACES)")
    return folder


@pytest.fixture(params=["native", "python"])
def scanner(request, monkeypatch):
    """Read with each of the two scanners."""
    if request.param == "python":
        monkeypatch.setitem(sys.modules, "unstall.trace._scan", None)
    else:
        if not library():
            pytest.skip("the library in C was not built")


@pytest.fixture
def timeline_of(tmp_path, scanner):
    def one(content, name="trace.json"):
        (timeline,) = read(write(tmp_path / name, content))
        return timeline

    return one
