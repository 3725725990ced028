"""NumPy's BLAS on one thread: where it is proposed, and where it is written."""

from __future__ import annotations

import pytest
from factory import measurement
from optimize_builders import make_context

from unstall.optimize.remedies import blas_threads
from unstall.optimize.source.errors import NotApplicable
from unstall.records.model import ModelMeasurement

LINE = 'os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")'


def contended(**changes):
    values = {
        "unhindered_s": {"forward": 0.01, "backward": 0.02, "other": 0.02},
        "run_delay": 0.4,
        "team_delay_s": 0.1,
        "model": ModelMeasurement(threads=2),
    }
    return measurement({"forward": 0.04, "backward": 0.06, "other": 0.02}, **{**values, **changes})


@pytest.mark.parametrize("library", ["import numpy as np\nimport torch\n", "from torch import nn\nimport torch\n"])
def test_it_is_set_before_the_library_is_imported(tmp_path, library):
    script = tmp_path / "train.py"
    script.write_text(f'"""Trains."""\n\n{library}')
    [proposal] = blas_threads.REMEDY.propose(make_context(tmp_path, script=script, measurement=contended()))
    assert proposal.predicted == pytest.approx(1 / (1 - 0.9 * 0.07 / 0.12))
    source = proposal.sources.bytes_of(script).decode()
    assert source == f'"""Trains."""\n\nimport os\n\n{LINE}\n\n{library}'


def test_a_program_whose_threads_do_not_wait_is_left_as_it_is(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import numpy\n")
    with pytest.raises(NotApplicable, match="do not take each other's cores"):
        blas_threads.REMEDY.propose(make_context(tmp_path, script=script, measurement=contended(run_delay=0.01)))


def test_a_script_that_imports_neither_is_no_place_for_it(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import mylib\n")
    with pytest.raises(NotApplicable, match="does not import torch"):
        blas_threads.REMEDY.propose(make_context(tmp_path, script=script, measurement=contended()))
