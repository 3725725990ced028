"""Culprits and hot lines in a library that somebody published."""

from __future__ import annotations

import pytest
from blamecase import TEXT, blame_of
from factory import FETCH, WORKER, WORKER_PID, Source, lib, stack

from unstall.diagnose.blame import culprit, hotspots, in_package, line_culprit
from unstall.records.measurements import SeamSite
from unstall.records.report import Caller


@pytest.fixture
def library(tmp_path):
    """A training loop that somebody published, version 1.2.1."""
    info = tmp_path / "site-packages" / "planted-1.2.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1.2.1\n")
    (info / "RECORD").write_text("planted/program.py,,\n")
    return Source(tmp_path / "program.py", TEXT, "installed")


@pytest.fixture
def driver(tmp_path):
    return Source(
        tmp_path / "driver.py", "def hook():\n    return 1  # hook\n\ndef main():\n    planted.train()  # fit\n"
    )


def test_in_a_library_package_version_and_the_users_line_are_named(library, driver):
    frames = (driver.at("main", "# fit"), library.at("train", "# call tidy"), library.at("tidy", "# tidy"))
    found = in_package(culprit(blame_of([stack(*frames, lib("numpy/core.py", "sort"))]).main, 50, "main"))
    assert (found.function, found.file, found.line) == ("tidy", library.file, library.line("# tidy"))
    assert (found.package, found.version, found.via) == ("planted", "1.2.1", "numpy.core.sort")
    assert found.called_by == Caller(function="main", file=driver.file, line=driver.line("# fit"))


def test_the_users_function_is_blamed_where_it_is_deeper_than_the_library(library, driver):
    frames = (driver.at("main", "# fit"), library.at("train", "# call tidy"), driver.at("hook", "# hook"))
    found = in_package(culprit(blame_of([stack(*frames)]).main, 50, "main"))
    assert (found.function, found.file, found.package) == ("hook", driver.file, "")


def test_an_operator_that_a_tensor_class_hands_on_is_its_callers(library, driver, tmp_path):
    tensors = Source(
        tmp_path / "tensors.py",
        "class Scan:\n    def __torch_function__(self, func):\n        return func()  # hand on\n"
        "def note(scan):\n    return dict(scan)  # note\n",
    )
    handed = (driver.at("main", "# fit"), library.at("tidy", "# tidy"), tensors.at("__torch_function__", "# hand on"))
    found = culprit(blame_of([stack(*handed, lib("torch/_tensor.py", "mean"))]).main, 50, "main")
    assert (found.function, found.line) == ("tidy", library.line("# tidy"))
    found = culprit(blame_of([stack(*handed, tensors.at("note", "# note"))]).main, 50, "main")
    assert found.function == "note"


@pytest.fixture
def framework(tmp_path):
    """A framework that runs loops."""
    path = tmp_path / "site-packages" / "skorch" / "net.py"
    path.parent.mkdir(parents=True)
    text = "def fit(net):\n    for batch in net.batches:\n        net.step(batch)  # step\n        note(net)  # note\n"
    return Source(path, text + "\ndef note(net):\n    return [row for row in net.history]  # search\n")


def own(driver, framework, *innermost, starts=True):
    """Who is blamed for a framework's stack."""
    call = ("main", "# fit")
    known = [driver.site(seam, *call) for seam in ("~forward", "~backward")] if starts else []
    frames = (driver.at(*call), framework.at("fit", "# note"), framework.at("note", "# search"), *innermost)
    blame = blame_of([stack(*frames)], sites=known)
    return in_package(blame.main_culprit(blame.main))


def test_a_framework_that_runs_the_loop_is_blamed_for_what_it_does_itself(driver, framework):
    found = own(driver, framework)
    assert (found.function, found.line, found.package) == ("note", framework.line("# search"), "skorch")
    assert found.called_by == Caller(function="main", file=driver.file, line=driver.line("# fit"))


def test_it_is_not_for_what_it_calls_or_where_the_line_starts_no_loop(driver, framework):
    assert own(driver, framework, lib("torch/_tensor.py", "item")).function == "main"
    assert own(driver, framework, starts=False).function == "main"


def test_what_is_the_users_is_in_no_package(driver):
    found = in_package(culprit(blame_of([stack(driver.at("main", "# fit"))]).main, 50, "main"))
    assert (found.package, found.version, found.called_by) == ("", "", None)


def test_where_no_sample_shows_the_users_line_the_sites_do(library, driver):
    (worker,) = blame_of([stack(WORKER, FETCH, library.at("crop", "# crop"), pid=WORKER_PID)]).workers
    above = ((driver.file, "main", driver.line("# fit")),)
    site = SeamSite("~forward", library.file, "train", library.line("# call model"), above)
    found = in_package(culprit([worker], 50, "worker"), [site])
    assert found.called_by == Caller(function="main", file=driver.file, line=driver.line("# fit"))
    assert line_culprit(site, share=0.1).called_by == found.called_by


def test_hotspots_in_a_library_name_it_as_well(library, driver):
    frames = (driver.at("main", "# fit"), library.at("tidy", "# tidy"))
    (spot,) = hotspots(blame_of([stack(*frames)]))
    assert (spot.function, spot.package, spot.version, spot.called_by.line) == ("tidy", "planted", "1.2.1", 5)


def test_an_environment_of_several_is_waited_for(tmp_path):
    text = "class Envs:\n    def reset(self):\n        pass\n\n    def step_wait(self):\n        return 1  # wait\n"
    envs = Source(tmp_path / "vector.py", text, "installed")
    (placed,) = blame_of([stack(envs.at("Envs.step_wait", "# wait"))]).main
    assert placed.phase == "env"
