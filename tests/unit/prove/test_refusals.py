"""What a patch may not touch."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstall.prove.refusals import first
from unstall.prove.trees import Sides


def of(after, before="", name="train.py"):
    path = Path("/program") / name
    return first(Sides({path: before.encode() if before is not None else None}, {path: after.encode()}))


@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.perf_counter = lambda: 0.0\n",
        "import time as t\nsetattr(t, 'monotonic', print)\n",
        "import sys\nsys.modules['time'] = None\n",
        "import torch\ntorch.nn.Module.__call__ = print\n",
        "from torch.optim import Optimizer\nOptimizer.step = print\n",
        "import unstall.child.trial.observe as o\n",
        "import os\nif 'UNSTALL_RUN_DIR' in os.environ: pass\n",
        "import time\nfor time.sleep in [print]: pass\n",
        "import time\n[time.sleep, other] = print, print\n",
        "import time\nwith open('a') as time.sleep: pass\n",
        "import time\nvars(time)['sleep'] = print\n",
        "import time\ntime.__dict__.update(sleep=print)\n",
        "import time\nobject.__setattr__(time, 'sleep', print)\n",
        "from unittest import mock\n@mock.patch('time.sleep', new=print)\ndef main(): pass\n",
        "from unittest.mock import patch\npatch('torch.optim.Adam.step').start()\n",
        "import time\nfrom unittest import mock\nmock.patch.object(time, 'sleep').start()\n",
        "import sys\nfast = sys.gettrace() is None\n",
        "from threading import settrace\nsettrace(None)\n",
        "import sys as s\ns.monitoring.free_tool_id(4)\n",
        "import ctypes\nctypes.pythonapi.PyEval_SetTrace(None, None)\n",
        "from ctypes import pythonapi as api\n",
        "import ctypes\ngetattr(ctypes.PyDLL(None), 'PyEval_SetTrace')(None, None)\n",
    ],
)
def test_what_touches_the_measuring_is_refused_with_its_place(source):
    difference = of(source)
    assert difference is not None and difference.place.startswith("train.py:")


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch.backends.cudnn.benchmark = True\n",
        "import torch\ntorch.set_num_threads(2)\n",
        "import os\nos.environ['OMP_NUM_THREADS'] = '2'\n",
        "import sys\nsys.path.insert(0, 'lib')\n",
        "import time\nbegan = time.perf_counter()\n",
        "from unittest import mock\n@mock.patch('train.download')\ndef main(): pass\n",
        "import torch\nfrom mock_data import make\nmake(torch.float32)\n",
        "import time\nvars(time).get('sleep')\n",
        "x = vars(args)\nx['lr'] = 1\n",
        "from my_tools import monitoring\nmonitoring.watch(3)\n",
        "class Model:\n    def __init__(self):\n        self.time = 3\n",
    ],
)
def test_settings_and_clocks_that_are_read_are_not(source):
    assert of(source) is None


@pytest.mark.parametrize("importing", ["from boxes.select import best\n", "import boxes.select as s\n"])
def test_a_folder_that_is_imported_by_its_name_hides_nothing(tmp_path, importing):
    """With or without an __init__.py: ``boxes/select.py`` is ``boxes.select``."""
    (tmp_path / "boxes").mkdir()
    module, train = tmp_path / "boxes" / "select.py", tmp_path / "train.py"
    train.write_text("import torch\n")
    assert "hides the module select" in first(Sides({module: None}, {module: b"x = 1\n"})).detail
    assert first(Sides({module: None, train: b""}, {module: b"x = 1\n", train: importing.encode()})) is None
    train.write_text(importing)
    assert first(Sides({module: None}, {module: b"x = 1\n"})) is None
    removed = first(Sides({module: None}, {module: b"x = 1\n", train: None}))
    assert "hides the module select" in removed.detail, "what is removed imports nothing any more"
    init = tmp_path / "boxes" / "__init__.py"
    train.write_text("")
    assert first(Sides({module: None, init: None}, {module: b"x = 1\n", init: b""})) is None


@pytest.mark.parametrize("more", ["__init__.py", "other.py"])
def test_a_folder_of_scripts_is_made_no_package_by_the_change(tmp_path, more):
    """``python train.py`` finds ``time.py`` beside it, with an ``__init__.py`` or without."""
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "train.py").write_text("x = 1\n")
    added = {
        folder / "time.py": b"x = 1\n",
        (folder if more == "__init__.py" else tmp_path) / more: b"import program\n",
    }
    assert "hides the module time" in first(Sides(dict.fromkeys(added), added)).detail


def test_what_the_original_does_too_is_not():
    source = "import time\ntime.sleep = print\n"
    assert of(source + "x = 1\n", source) is None


@pytest.mark.parametrize("name", ["sitecustomize.py", "time.py", "torch/__init__.py", "fast.pth", "fast.pyc"])
def test_files_that_take_the_place_of_others_are_refused(name):
    assert of("x = 1\n", None, name) is not None
