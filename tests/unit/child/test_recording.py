"""Wrapping in place, as the seams do it, and what the counts say."""

from __future__ import annotations

from unstall.child import recording
from unstall.child.recording import wrap_attribute
from unstall.records.vocabulary import Seam

CALL = Seam("~test.call")


def test_an_attribute_is_wrapped_once():
    class Library:
        def call(self):
            return 7

    assert wrap_attribute(Library, "call", CALL)
    wrapped = Library.call
    assert Library().call() == 7
    if recording.NATIVE:
        assert not wrap_attribute(Library, "call", CALL)
        assert Library.call is wrapped


def test_an_attribute_that_is_not_there_is_left_alone():
    class Library:
        pass

    assert not wrap_attribute(Library, "call", CALL)
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
        assert not wrap_attribute(Library, name, CALL)
    assert dict(vars(Library)) == before


def test_an_inherited_method_is_wrapped_on_the_class_asked_for():
    class Base:
        def call(self):
            return type(self)

    class Derived(Base):
        pass

    original = Base.__dict__["call"]
    assert wrap_attribute(Derived, "call", CALL)
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
    recording.wrap(len, Seam("~nvtx.len"))
    recording.wrap(len, Seam("~nvtx.net"), network=True)
    assert ranged == ["~nvtx.len"]
