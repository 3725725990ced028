"""What every file of seams holds, and that seams are named nowhere else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import unstall
from unstall.child import layout, seams
from unstall.records.vocabulary import PHASE_NAMES, Seam, SeamGroup, Tick, seam_of

SOURCES = Path(unstall.__file__).parent


def test_every_file_has_its_seams_and_targets():
    targets = seams.targets()
    assert {
        "gc",
        "gymnasium.core",
        "logging",
        "socket",
        "torch.autograd",
        "torch.cuda",
        "torch.distributed.distributed_c10d",
        "torch.nn.modules.module",
        "torch.optim.optimizer",
        "torch.utils.data.dataloader",
    } <= set(targets)
    assert all(callable(install) for installs in targets.values() for install in installs)
    assert all(isinstance(seam, Seam) for seam in seams.built_in())


def test_seams_are_told_apart_and_of_known_phases():
    events = [seam.event for seam in seams.built_in()]
    assert len(set(events)) == len(events)
    assert {seam.phase for seam in seams.built_in()} <= {None, *PHASE_NAMES}
    for seam in seams.built_in():
        assert seam_of(seam.named("x") if seam.event.endswith(".*") else seam.event, seams.built_in()) is seam


def test_a_kind_of_work_that_is_taken_away_can_be_found():
    assert {seam.stub for seam in seams.built_in() if seam.stub} == set(seams.finders())


def test_what_is_noted_is_of_seams_that_are_looked_at():
    counted = {seam.event for seam in seams.built_in() if seam.counts is not None}
    assert set(seams.notes()) <= counted


def test_the_recorder_has_a_slot_for_every_kind_and_group():
    assert [int(kind) for kind in Tick] == list(range(layout.TICK_KINDS))
    assert [int(group) for group in SeamGroup] == list(range(layout.ROOT_GROUPS))


@pytest.mark.parametrize(
    "name, phase",
    [
        ("~forward", "forward"),
        ("~step.next", "data_wait"),
        ("~comm.all_reduce", "comm"),
        ("~callback.torch.save", "callback"),
        ("~callback.matplotlib.Figure.savefig", "callback"),
        ("~transfer.to", "transfer"),
        ("~sync.item", "sync"),
        ("~gc", None),
        ("~net.recv", None),
    ],
)
def test_the_phase_of_a_span_is_its_seams(name, phase):
    assert seam_of(name, seams.built_in()).phase == phase


@pytest.mark.parametrize("name", ["forward", "comm.all_reduce", "my ~forward", "~comm", "~forward.other", "", "?"])
def test_other_names_are_of_no_seam(name):
    assert seam_of(name, seams.built_in()) is None


def test_a_familys_names_and_members_are_inverse():
    family = Seam("~comm.*")
    assert family.named("barrier") == "~comm.barrier"
    assert family.member(family.named("barrier")) == "barrier"


def test_no_other_file_names_a_seam():
    """A name typed twice is a name that one forgets to change."""
    bare = re.compile(r"""["']~[a-z]""")
    files = [path for path in SOURCES.rglob("*.py") if path.parent.name != "seams"]
    found = [
        f"{path.relative_to(SOURCES)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if bare.search(line) and path.name != "vocabulary.py"
    ]
    assert found == []
