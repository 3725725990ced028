"""Whether two runs leave the same behind."""

from __future__ import annotations

import dataclasses
import io
import random

import numpy as np
import pytest

from unstall.prove.left_behind.effects import STDOUT, Content, Effects
from unstall.prove.left_behind.effects_comparison import EffectsComparison


def effects(output="", status=0, **files):
    contents = {name: Content.of(content) for name, content in files.items()}
    return Effects(status, "", {STDOUT: Content.of(output.encode()), **contents})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("epoch 1 loss 0.5 took 3.20 s\n", "epoch 1 loss 0.5 took 1.10 s\n"),
        ("loss 0.5, 120.5 it/s\n", "loss 0.5, 300 it/s\n"),
        ("iter 3: loss 0.5, mfu 0.02%\nSPS: 2861\n", "iter 3: loss 0.5, mfu 0.11%\nSPS: 955\n"),
        ("time: 12.3\n", "time: 4\n"),
        ("steps_per_s=12.0\n", "steps_per_s=24.1\n"),
        ("| lr 20.00 | ms/batch 112.28 | loss 6.31\n", "| lr 20.00 | ms/batch 80.21 | loss 6.31\n"),
        ("sec/epoch: 3.1\n", "sec/epoch: 2.9\n"),
        ("[2026-01-02 12:31:07] done\n", "[2026-01-02 12:30:01] done\n"),
    ],
)
def test_figures_of_time_may_differ(before, after):
    assert EffectsComparison([effects(before)]).first(effects(after)) is None


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("loss 0.50\n", "loss 0.51\n", "values"),
        ("learning rate 0.1\n", "learning rate 0.2\n", "values"),
        ("step 10\n", "step 9\n", "values"),
        ("epoch 1\nepoch 2\n", "epoch 1\n", "effects"),
        ("accuracy 0.5\n", "accurate 0.5\n", "effects"),
        ('{"loss": 1}\n', '2026-01-02 {"loss": 1}\n', "effects"),
        ("12:30:01 done\n", "done\n", "effects"),
    ],
)
def test_anything_else_may_not(before, after, kind):
    difference = EffectsComparison([effects(before)]).first(effects(after))
    assert difference is not None and difference.kind == kind and STDOUT in difference.place


def test_the_exit_code_and_the_set_of_files_are_compared():
    assert EffectsComparison([effects()]).first(effects(status=1)).place == "exit code"
    assert EffectsComparison([effects(model=b"\0a")]).first(effects()).detail == "is not written"
    assert EffectsComparison([effects()]).first(effects(model=b"\0a")).place == "model"
    assert EffectsComparison([effects(model=b"\0a")]).first(effects(model=b"\0b")).kind == "values"


def test_what_the_original_does_not_reproduce_is_judged_by_its_spread():
    comparison = EffectsComparison([effects("loss 0.50\n"), effects("loss 0.52\n")])
    assert comparison.first(effects("loss 0.55\n")) is None
    assert comparison.first(effects("loss 0.80\n")) is not None
    random_names = EffectsComparison([effects(a=b"\0"), effects(b=b"\0")])
    assert random_names.first(effects(b=b"\0")) is None


@pytest.mark.parametrize(("before", "after"), [("0.898685", "0.898686"), ("1.220818", "1.220819"), ("3e-05", "4e-05")])
def test_the_last_place_that_is_written_may_round_either_way_where_results_are_close(before, after):
    original, changed = (Effects(0, "", {STDOUT: Content.of(f"loss {text}\n".encode())}) for text in (before, after))
    assert EffectsComparison([original], size=128).first(changed) is None
    assert EffectsComparison([original]).first(changed) is not None


def test_a_figure_of_single_precision_may_be_off_by_rounding_that_no_perturbed_run_shows():
    loss, one_off, further = "loss 2.2195017337799072\n", "loss 2.219501495361328\n", "loss 2.2195117473602295\n"
    alike = [(effects(loss), effects(loss))]
    close = EffectsComparison([effects(loss)], alike, size=8)
    assert close.first(effects(one_off)) is None
    assert close.first(effects(further)).kind == "values"
    assert EffectsComparison([effects(loss)], alike).first(effects(one_off)).kind == "values"


def test_rounding_is_as_large_as_perturbed_runs_show():
    comparison = EffectsComparison(
        [effects("loss 0.50000\n")], [(effects("loss 0.70000\n"), effects("loss 0.70001\n"))], size=128
    )
    assert comparison.first(effects("loss 0.50100\n")) is None
    assert comparison.first(effects("loss 0.50200\n")) is not None
    whole = EffectsComparison([effects("right 50\n")], [(effects("right 60\n"), effects("right 60\n"))], size=128)
    assert whole.first(effects("right 51\n")) is not None


def test_figures_that_all_go_one_way_are_not_rounded_otherwise():
    draw = random.Random(7).uniform
    values = [draw(0, 9) for _ in range(200)]
    rounded, cut = ("".join(f"{figure:.2f}\n" for figure in figures)
                    for figures in (values, [int(value * 100) / 100 for value in values]))  # fmt: skip
    nudged = "".join(f"{value + draw(-0.004, 0.004):.2f}\n" for value in values)
    close = EffectsComparison([effects(rounded)], size=0.1)
    assert "all of them are smaller" in close.first(effects(cut)).detail
    assert nudged != rounded and close.first(effects(nudged)) is None


@pytest.mark.parametrize("text", ["samples {}", "rows: {}", "steps {}", "eta {}", "loss {} min 0.1", "{}\nh"])
def test_a_count_or_a_loss_is_no_figure_of_time(text):
    before, after = text.format("0.50") + "\n", text.format("0.75") + "\n"
    assert EffectsComparison([effects(before)]).first(effects(after)) is not None


@pytest.mark.parametrize("text", ["took {} min\n", "{} min, loss 3\n", "{} steps per second\n", "12 samples/s: {}\n"])
def test_a_duration_or_a_rate_is_one(text):
    assert EffectsComparison([effects(text.format("0.50"))]).first(effects(text.format("0.75"))) is None


def npy(values):
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def test_a_binary_file_of_the_same_length_must_hold_the_same_numbers_but_for_rounding():
    values = np.linspace(0.5, 2, 4000, dtype=np.float32)
    off = np.nextafter(values, np.float32(3))
    noise = [(effects(model=npy(values)), effects(model=npy(off)))]
    comparison = EffectsComparison([effects(model=npy(values))], noise, size=128)
    signs = np.where(np.arange(values.size) % 2, 1, -1).astype(np.float32)
    assert comparison.first(effects(model=npy(values + signs * (off - values) * 3))) is None
    untrained = comparison.first(effects(model=npy(values[::-1])))
    assert untrained is not None and untrained.place == "model" and "rounding" in untrained.detail


def test_other_permissions_of_a_file_are_another_effect():
    open_to_all, to_its_owner = (
        Effects(0, "", {"model.pt": dataclasses.replace(Content.of(b"weights"), permissions=permissions)})
        for permissions in (0o644, 0o600)
    )
    difference = EffectsComparison([open_to_all]).first(to_its_owner)
    assert difference is not None and difference.detail == "its permissions are 0600 instead of 0644"
    assert EffectsComparison([open_to_all]).first(open_to_all) is None
