"""Names of seams, the phases they count towards, and wrapping in place."""

from __future__ import annotations

import pytest

from unstall.child import recording, seams
from unstall.child.recording import PREFIX_PHASES, SEAM_PHASES, phase_of, wrap_attribute
from unstall.records.vocabulary import PHASES


@pytest.mark.parametrize("name, phase", sorted(SEAM_PHASES.items()))
def test_each_seam_has_its_phase(name, phase):
    assert phase_of(name) == phase


@pytest.mark.parametrize(
    "name, phase",
    [
        ("~comm.all_reduce", "comm"),
        ("~callback.torch.save", "callback"),
        ("~callback.matplotlib.Figure.savefig", "callback"),
        ("~transfer.to", "transfer"),
        ("~sync.item", "sync"),
    ],
)
def test_families_of_seams_have_a_phase_by_prefix(name, phase):
    assert phase_of(name) == phase


@pytest.mark.parametrize("name", ["~gc", "~net.recv", "forward", "comm.all_reduce", "my ~forward", "", "?"])
def test_users_spans_and_names_of_no_phase_have_none(name):
    assert phase_of(name) is None


def test_all_phases_are_of_the_contract():
    assert {*SEAM_PHASES.values(), *PREFIX_PHASES.values()} <= set(PHASES)


def test_tick_kinds_are_distinct():
    kinds = [
        recording.EXPLICIT,
        recording.ENV,
        recording.OPTIMIZER,
        recording.FORWARD,
        recording.DATA,
        recording.BACKWARD,
        recording.COMM,
        recording.OTHER,
    ]
    assert sorted(kinds) == list(range(8))


def test_an_attribute_is_wrapped_once():
    class Library:
        def call(self):
            return 7

    assert wrap_attribute(Library, "call", "attribute.once")
    wrapped = Library.call
    assert Library().call() == 7
    if recording.NATIVE:
        assert not wrap_attribute(Library, "call", "attribute.once")
        assert Library.call is wrapped


def test_an_attribute_that_is_not_there_is_left_alone():
    class Library:
        pass

    assert not wrap_attribute(Library, "call", "attribute.absent")
    assert not hasattr(Library, "call")


def test_properties_and_static_methods_are_left_alone():
    class Library:
        @staticmethod
        def fixed():
            return 1

        @classmethod
        def made(cls):
            return cls

        @property
        def value(self):
            return 2

    before = dict(vars(Library))
    for name in ("fixed", "made", "value"):
        assert not wrap_attribute(Library, name, f"attribute.{name}")
    assert dict(vars(Library)) == before


def test_an_inherited_method_is_wrapped_on_the_class_asked_for():
    class Base:
        def call(self):
            return type(self)

    class Derived(Base):
        pass

    original = Base.__dict__["call"]
    assert wrap_attribute(Derived, "call", "attribute.inherited")
    assert Base.__dict__["call"] is original
    assert Derived().call() is Derived


def test_a_seam_that_is_about_to_be_installed_opens_the_recording(monkeypatch):
    opened = []
    recording.seam_ready()
    monkeypatch.setattr(recording, "opened_by", lambda: opened.append(True))
    recording.seam_ready()
    assert opened == [True]


def test_nvtx_ranges_go_around_every_seam_but_sockets(monkeypatch):
    ranged = []

    def ranges(func, name):
        ranged.append(name)
        return func

    monkeypatch.setattr(recording, "nvtx_ranges", ranges)
    recording.wrap(len, "~nvtx.len")
    recording.wrap(len, "~nvtx.net", network=True)
    assert ranged == ["~nvtx.len"]


def test_every_seams_targets_are_merged():
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
