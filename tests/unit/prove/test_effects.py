"""Whether two runs leave the same behind."""

from __future__ import annotations

import pytest

from unstall.prove.effects import STDOUT, Comparison, Content, Effects, split, written


def effects(output="", status=0, **files):
    contents = {name: Content.of(content) for name, content in files.items()}
    return Effects(status, "", {STDOUT: Content.of(output.encode()), **contents})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("epoch 1 loss 0.5 took 3.20 s\n", "epoch 1 loss 0.5 took 1.10 s\n"),
        ("loss 0.5, 120.5 it/s\n", "loss 0.5, 300 it/s\n"),
        ("time: 12.3\n", "time: 4\n"),
        ("steps_per_s=12.0\n", "steps_per_s=24.1\n"),
        ("[2026-01-02 12:31:07] done\n", "[2026-01-02 12:30:01] done\n"),
    ],
)
def test_figures_of_time_may_differ(before, after):
    assert Comparison([effects(before)]).first(effects(after)) is None


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("loss 0.50\n", "loss 0.51\n", "values"),
        ("learning rate 0.1\n", "learning rate 0.2\n", "values"),
        ("step 10\n", "step 9\n", "values"),
        ("epoch 1\nepoch 2\n", "epoch 1\n", "effects"),
        ("accuracy 0.5\n", "accurate 0.5\n", "effects"),
    ],
)
def test_anything_else_may_not(before, after, kind):
    difference = Comparison([effects(before)]).first(effects(after))
    assert difference is not None and difference.kind == kind and STDOUT in difference.place


def test_the_exit_code_and_the_set_of_files_are_compared():
    assert Comparison([effects()]).first(effects(status=1)).place == "exit code"
    assert Comparison([effects(model=b"\0a")]).first(effects()).detail == "is not written"
    assert Comparison([effects()]).first(effects(model=b"\0a")).place == "model"
    assert Comparison([effects(model=b"\0a")]).first(effects(model=b"\0b")).kind == "values"


def test_what_the_original_does_not_reproduce_is_judged_by_its_spread():
    comparison = Comparison([effects("loss 0.50\n"), effects("loss 0.52\n")])
    assert comparison.first(effects("loss 0.55\n")) is None
    assert comparison.first(effects("loss 0.80\n")) is not None
    random_names = Comparison([effects(a=b"\0"), effects(b=b"\0")])
    assert random_names.first(effects(b=b"\0")) is None


def test_rounding_is_as_large_as_perturbed_runs_show():
    comparison = Comparison(
        [effects("loss 0.50000\n")], [(effects("loss 0.70000\n"), effects("loss 0.70001\n"))], size=128
    )
    assert comparison.first(effects("loss 0.50100\n")) is None
    assert comparison.first(effects("loss 0.50200\n")) is not None
    whole = Comparison([effects("right 50\n")], [(effects("right 60\n"), effects("right 60\n"))], size=128)
    assert whole.first(effects("right 51\n")) is not None


def test_a_text_is_words_and_figures():
    words, figures = split("a 1.5e-3 b\nc 2 s")
    assert words == ["a ", " b\nc ", " s"]
    assert [(figure.text, figure.line, figure.is_time) for figure in figures] == [("1.5e-3", 1, False), ("2", 2, True)]


def test_what_a_layer_holds_is_what_was_written_and_is_new(tmp_path):
    machine, upper = tmp_path / "machine", tmp_path / "upper"
    for folder in (machine, upper, upper / "__pycache__"):
        folder.mkdir()
    (machine / "same.txt").write_text("1")
    (upper / "same.txt").write_text("1")
    (upper / "new.bin").write_bytes(b"\0" * (5 << 20))
    (upper / "train.py").write_text("put there")
    (upper / "__pycache__" / "train.pyc").write_bytes(b"\0")
    found = dict(written([(str(machine), upper)], {machine / "train.py"}))
    assert list(found) == [str(machine / "new.bin")]
    content = found[str(machine / "new.bin")]
    assert (content.size, content.text, content.digest) == (5 << 20, None, Content.of(b"\0" * (5 << 20)).digest)
