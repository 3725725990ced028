"""Memory kept for the next step: where it is proposed, what is written, and that the kernel is asked no more."""

from __future__ import annotations

import subprocess
import sys

import pytest
from optimize_builders import make_context, make_measurement

from unstall.optimize.remedies import keep_freed_memory
from unstall.optimize.source.errors import NotApplicable
from unstall.records.measurements import MemoryMeasurement

ROOM = MemoryMeasurement(rss_peak=1 << 30, available=8 << 30)
STEPS = """
import resource
def step():
    held = [bytearray(64 << 20) for _ in range(4)]
step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def measured(**changes):
    facts = {"phases": {"forward": 1.0}, "main_kernel_s": 0.04, "page_faults": 1e5, "main_cpu_s": 0.1, "memory": ROOM}
    return make_measurement(**{**facts, **changes})


def propose(tmp_path, source="import torch\n", **changes):
    script = tmp_path / "train.py"
    script.write_text(source)
    context = make_context(tmp_path, script=script, measurement=measured(**changes))
    [proposal] = keep_freed_memory.REMEDY.propose(context)
    return proposal, proposal.sources.bytes_of(script).decode()


def test_it_stands_after_the_imports_of_the_script(tmp_path):
    proposal, source = propose(tmp_path, "import argparse\nfrom model import Model\n\nmodel = Model()\n")
    first, second = keep_freed_memory._LINES
    assert source == (
        f"import argparse\nimport ctypes\nfrom model import Model\n\n{first}\n{second}\n\nmodel = Model()\n"
    )
    assert proposal.settings == {"keep_freed_memory": True}


def test_no_more_is_promised_than_the_kernel_takes(tmp_path):
    proposal, _ = propose(tmp_path)
    assert 1.5 < proposal.predicted <= 1 / (1 - 0.04 / measured().step.mean)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"page_faults": 10.0}, "page faults take"),
        ({"main_kernel_s": 0.001}, "page faults take"),
        ({"main_cpu_s": 50.0}, "page faults take"),
        ({"memory": MemoryMeasurement(rss_peak=4 << 30, available=8 << 30)}, "not enough memory"),
        ({"memory": MemoryMeasurement()}, "not enough memory"),
    ],
    ids=["the kernel reads files", "few pages", "many threads", "no room", "nothing known"],
)
def test_it_is_left_alone(tmp_path, changes, reason):
    with pytest.raises(NotApplicable, match=reason):
        propose(tmp_path, **changes)


def faults_of(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_what_is_freed_is_not_asked_for_again():
    written = "import ctypes\n" + "\n".join(keep_freed_memory._LINES)
    at_run_time = "from unstall.child import allocator\nassert allocator.can_keep()\nallocator.keep_freed()"
    plain = faults_of(STEPS)
    assert plain > 100  # sixteen thousand a block, or 32 where the kernel gives huge ones
    for kept in (written, at_run_time):
        assert faults_of(kept + STEPS) < plain / 10
