"""Plug-ins in the user's process: what is taken in, what is refused and why."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from unstall.child import plugins, seams
from unstall.records.vocabulary import Phase, Seam, Tick

TOKENIZE = Phase("tokenize", "turning text into numbers")
ENCODE = Seam("~tokens.encode", "tokenize", Tick.OTHER, stub="tokens")


def good(**changes):
    """What a module of seams holds."""
    contents = {"SEAMS": (ENCODE,), "TARGETS": {"toytokens": print}, "FINDERS": {"tokens": list}, **changes}
    return SimpleNamespace(**{name: value for name, value in contents.items() if value is not None})


@pytest.fixture
def declare(monkeypatch):
    """Loads plug-ins that lie in a module of their own: ``declare(phases=..., seams=...)``, by name."""
    monkeypatch.setattr(seams, "_added", [])

    def load(phases=(), seams=()):
        module = SimpleNamespace(phases=SimpleNamespace(**dict(phases)), seams=SimpleNamespace(**dict(seams)))
        monkeypatch.setitem(sys.modules, "the_plugins", module)
        return plugins.load(
            {
                "unstall.phases": [(name, f"the_plugins:phases.{name}") for name in dict(phases)],
                "unstall.seams": [(name, f"the_plugins:seams.{name}") for name in dict(seams)],
            }
        )

    return load


def test_what_fits_is_taken_in(declare):
    added, problems = declare({"tokenize": TOKENIZE}, {"tokens": good()})
    assert problems == []
    assert added == ((TOKENIZE,), (ENCODE,))
    assert ENCODE in seams.all_seams() and ENCODE not in seams.built_in()
    assert seams.targets()["toytokens"] == [print]
    assert seams.finders()["tokens"] is list


def test_a_seam_may_be_of_a_built_in_phase_and_of_none(declare):
    added = (Seam("~brax.step", "env", Tick.ENV), Seam("~brax.jit"))
    assert declare(seams={"brax": good(SEAMS=added)})[0].seams == added


def test_a_seam_without_its_phase_is_left_out(declare):
    added, problems = declare(seams={"tokens": good()})
    assert added.seams == ()
    assert seams.all_seams() == seams.built_in()
    ((what, why),) = problems
    assert what == "plug-in 'tokens' (unstall.seams = the_plugins:seams.tokens) is ignored"
    assert why.startswith("there is no phase 'tokenize'")


@pytest.mark.parametrize(
    "module, why",
    [
        (SimpleNamespace(), "its SEAMS are no tuple"),
        (good(SEAMS=()), "its SEAMS are no tuple"),
        (good(SEAMS=[ENCODE]), "its SEAMS are no tuple"),
        (good(SEAMS=("~tokens.encode",)), "its SEAMS are no tuple"),
        (good(SEAMS=(ENCODE._replace(event="tokens.encode"),)), "cannot be called 'tokens.encode'"),
        (good(SEAMS=(ENCODE._replace(event="~forward"),)), "cannot be called '~forward'"),
        (good(SEAMS=(ENCODE._replace(frames=(("(", "x"),)),)), "error: missing )"),
        (good(TARGETS=None), "its TARGETS are no mapping"),
        (good(TARGETS={"toytokens": "install"}), "its TARGETS are no mapping"),
        (good(FINDERS=[list]), "its FINDERS are no mapping"),
        (good(NOTES=print), "its NOTES are no mapping"),
    ],
)
def test_what_is_no_module_of_seams_is_left_out(declare, module, why):
    added, problems = declare({"tokenize": TOKENIZE}, {"bad": module, "brax": good(SEAMS=(Seam("~brax.step", "env"),))})
    assert added.seams == (Seam("~brax.step", "env"),)
    assert why in problems[0][1]


@pytest.mark.parametrize(
    "phase, why",
    [
        ("tokenize", "it is a str, and no Phase"),
        (Phase("forward", "mine"), "there is a phase 'forward' already"),
        (Phase("Tokens!", "mine"), "a phase cannot be called 'Tokens!'"),
        (Phase("x" * 40, "mine"), "a phase cannot be called"),
    ],
)
def test_what_is_no_phase_is_left_out(declare, phase, why):
    added, problems = declare({"tokenize": TOKENIZE, "bad": phase})
    assert added.phases == (TOKENIZE,)
    assert why in problems[0][1]


@pytest.mark.parametrize("error", [ImportError("no such thing"), SystemExit("it left"), ZeroDivisionError()])
def test_whatever_a_plugin_raises_stays_out_of_the_program(tmp_path, monkeypatch, error):
    (tmp_path / "rude_plugin.py").write_text(f"raise {error!r}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    _, ((_, why),) = plugins.load({"unstall.seams": [("rude", "rude_plugin")]})
    assert why.startswith(type(error).__name__)
