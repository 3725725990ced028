"""Which files are the user's own."""

from pathlib import Path

import pytest

import unstall
from unstall.child.user_files import is_user_file


@pytest.mark.parametrize(
    ("file", "user"),
    [
        ("/home/me/train.py", True),
        ("/home/me/lib/data.py", True),
        ("/home/me/python3.11-notes/data.py", True),
        ("<ipython-input-1-abc>", True),
        ("<string>", False),
        ("<frozen importlib._bootstrap>", False),
        ("/usr/lib/python3.11/threading.py", False),
        ("/opt/py/lib/python3.13t/json/decoder.py", False),
        ("/home/me/.venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", False),
        ("/usr/lib/python3/dist-packages/numpy/core.py", False),
        (str(Path(unstall.__file__).parent / "benchmark" / "recorder.py"), False),
    ],
)
def test_whose_file_it_is(file: str, user: bool):
    assert is_user_file(file) is user
