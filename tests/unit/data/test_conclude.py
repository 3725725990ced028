import io

import pytest
from rich.console import Console

from unstall.data.conclude import conclude, slowest
from unstall.data.examine import PipelineFacts
from unstall.report import data_view as view


def stage(name, seconds, *, order, depth=1, replayed=True, **more):
    facts = {
        "name": name,
        "file": "/home/me/photos.py",
        "line": 10 + order,
        "depth": depth,
        "order": order,
        "calls": 1.0,
    }
    times = {"taken_s": seconds, "cpu_s": seconds, "blocked_s": 0.0, "reads_s": 0.0, "replayed": replayed}
    return facts | times | more


def facts(**more):
    """A loader of 10 ms a sample: 2 to read, 7 in a transform of two members, and 1 more."""
    loader = {"dataset": "Photos", "length": 800, "batch_size": 32, "workers": 2, "prefetch": 2, "iterable": False}
    loader |= {"items": "samples", "collate": "default_collate", "cores": 4.0, "cuda": False}
    given = {
        "loader": loader,
        "sample": {"count": 100, "first_s": 0.011, "taken_s": 0.010, "cpu_s": 0.009, "blocked_s": 0.001},
        "stages": [
            stage("Photos.read", 0.002, order=1, reads_s=0.001),
            stage("Compose.__call__", 0.007, order=2),
            stage("Despeckle", 0.006, order=3, depth=2),
            stage("numpy.array", 0.0055, order=4, depth=3, replayed=False, why="written in C", file="", line=0),
        ],
        "after": {"collate": {"items": 32, "taken_s": 0.001, "cpu_s": 0.001, "blocked_s": 0.0}},
        "rates": [
            {"workers": 0, "items_per_s": 90.0, "cores": 1.0, "start_s": 0.1},
            {"workers": 2, "items_per_s": 180.0, "cores": 2.0, "start_s": 0.2},
            {"workers": 4, "items_per_s": 300.0, "cores": 3.9, "start_s": 0.3},
            {"workers": 6, "items_per_s": 301.0, "cores": 4.0, "start_s": 0.5},
        ],
    }
    return PipelineFacts(**given | more)


def test_shares_are_of_the_whole_item():
    report = conclude(["train.py"], facts(), model_items_per_s=None)
    shares = {found.name: found.share for found in report.stages}
    assert shares["one item"] + shares["collate"] == pytest.approx(1)
    assert shares["Photos.read"] == pytest.approx(2 / 11)
    assert shares["the rest of an item"] == pytest.approx(1 / 11)
    read = next(found for found in report.stages if found.name == "Photos.read")
    assert read.blocked_s == pytest.approx(0.001)


def test_blames_the_innermost_stage_of_the_users_that_holds_the_time():
    report = conclude(["train.py"], facts(), model_items_per_s=None)
    found = slowest(report.stages)
    assert found is not None and found.name == "Despeckle"
    assert "Despeckle (photos.py:13) takes 55 %" in report.conclusion


def test_says_how_many_workers_are_enough_and_what_is_now():
    report = conclude(["train.py"], facts(), model_items_per_s=None)
    assert report.ceiling_items_per_s == 301.0
    assert "with 4 workers (180 samples/s with 2 workers as it is)" in report.conclusion
    assert "The model's speed is not known" in report.conclusion
    assert all(found.cores_needed is None for found in report.stages)


def test_compares_with_what_the_model_takes():
    slow = conclude(["train.py"], facts(), model_items_per_s=602.0)
    assert "the model would take 602 samples/s, 2× as much" in slow.conclusion
    fast = conclude(["train.py"], facts(), model_items_per_s=100.0)
    item = next(found for found in fast.stages if found.name == "one item")
    assert item.cores_needed == pytest.approx(0.9)
    assert "for which the data need 1 of the 4 cores" in fast.conclusion


def test_a_loader_that_cannot_run_says_why():
    rates = [{"workers": count, "error": "PicklingError: lambda"} for count in (1, 2)]
    report = conclude(["train.py"], facts(rates=rates), model_items_per_s=None)
    assert report.ceiling_items_per_s is None and "could not be run" in report.conclusion
    assert "with 1, 2 workers: PicklingError: lambda" in shown(report)


def test_what_cannot_be_measured_is_said():
    loader = facts().loader | {"iterable": True}
    report = conclude(["train.py"], facts(loader=loader, stages=[]), model_items_per_s=None)
    notes = " ".join(report.notes)
    assert "iterable dataset" in notes and "no stages could be distinguished" in notes and "no CUDA device" in notes


def test_the_table_shows_the_order_and_the_nesting():
    text = shown(conclude(["train.py"], facts(), model_items_per_s=100.0))
    rows = [line.split()[:3] for line in text.splitlines()]
    assert ["·", "Despeckle", "167"] in rows
    assert "numpy.array *" in text and "in the main process" in text


def test_hostile_names_do_not_reach_the_terminal():
    loader = facts().loader | {"dataset": "\x1b[2JPhotos\n"}
    text = shown(conclude(["train.py"], facts(loader=loader), model_items_per_s=None))
    assert "\x1b" not in text and "Photos" in text


def shown(report):
    console = Console(file=io.StringIO(), width=100, color_system=None)
    view.page(report, console.width).show(console)
    return console.file.getvalue()
