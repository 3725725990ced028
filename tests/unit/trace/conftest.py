import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_traces() -> Path:
    """The folder of recorded traces beside the project, which is not part of it."""
    folder = Path(os.environ.get("UNSTALL_TRACES", Path(__file__).parents[4] / "shared" / "traces"))
    if not folder.is_dir():
        pytest.skip("no folder of recorded traces (UNSTALL_TRACES)")
    return folder
