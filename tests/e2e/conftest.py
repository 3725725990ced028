"""What the end-to-end tests share: a workspace for the programs that they run."""

import subprocess

import pytest
from harness import Workspace
from programs import TINY


@pytest.fixture
def workspace(tmp_path):
    """A workspace whose directory holds ``tiny.py``, a training loop for the programs to go through."""
    made = Workspace(tmp_path)
    made.write("tiny.py", TINY)
    yield made
    made.close()


@pytest.fixture
def namespace():
    """Makes the words that run a command with mounts of its own: ``namespace("mount ...", folder)``."""
    try:
        subprocess.run(["unshare", "-Urm", "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no private mounts here: `unshare -Urm` is not allowed")

    def wrapper(mounts, folder):
        # "$0" is the folder; the command follows it.
        return ["unshare", "-Urm", "sh", "-ec", f'{mounts}; cd "$PWD"; exec "$@"', folder]

    return wrapper
