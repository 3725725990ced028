"""Which lines hold up the step: of each file its own, also where several are called the same."""

from __future__ import annotations

import pytest
from optimize_builders import make_context, make_measurement, make_report

from unstall.optimize.hot_lines import (
    files_in_stacks,
    hot_functions_within,
    hot_modules,
    share_in_libraries,
    share_of_sample_lines,
)
from unstall.records.observations import Frame, StackSample
from unstall.records.report import Hotspot

DATASET = """class Images:
    def __getitem__(self, index):
        return self.table.iloc[index]
"""
PANDAS = "/env/lib/python3.11/site-packages/pandas/core/indexing.py"
FETCH = "/env/lib/python3.11/site-packages/torch/utils/data/_utils/fetch.py"


@pytest.fixture
def files(tmp_path):
    """Two datasets in files of one name, each with a hot line."""
    paths = [tmp_path / "faces" / "data.py", tmp_path / "streets" / "data.py"]
    for path in paths:
        path.parent.mkdir()
        path.write_text(DATASET)
    return paths


def make_sample(path, count, *inner):
    frames = (Frame("fetch", FETCH, 52), Frame("Images.__getitem__", str(path), 3), *inner)
    return StackSample(1, "MainThread", frames, count)


def make_case(tmp_path, files):
    """The first of the files waits for pandas, in 30 samples of 40."""
    spots = [Hotspot(function="__getitem__", file=str(path), line=3, share=0.4, phase="data_wait") for path in files]
    phases = {"data_wait": 0.8, "forward": 0.2}
    samples = [make_sample(files[0], 30, Frame("__getitem__", PANDAS, 10)), make_sample(files[1], 10)]
    return make_context(
        tmp_path,
        report=make_report(hotspots=spots, phases=phases),
        measurement=make_measurement(phases=phases, samples=samples),
    )


def test_a_share_is_that_of_the_file_and_not_of_its_namesake(tmp_path, files):
    context = make_case(tmp_path, files)
    shares = [share_of_sample_lines(context, path, 2, 3, in_workers=False) for path in files]
    assert shares == [pytest.approx(0.8 * 30 / 40), pytest.approx(0.8 * 10 / 40)]


def test_what_a_namesake_calls_is_not_what_the_file_calls(tmp_path, files):
    context = make_case(tmp_path, files)
    assert [share_in_libraries(context, path, {3}) for path in files] == [1.0, 0.0]
    assert [path for path, _, _ in hot_functions_within(context, "pandas")] == files[:1]


def test_the_script_comes_first_and_a_file_once_whatever_it_is_called(tmp_path, files):
    link = tmp_path / "link"
    link.symlink_to(files[0].parent, target_is_directory=True)
    script = tmp_path / "train.py"
    script.write_text("import faces\n")
    samples = [make_sample(path, 1, Frame("__getitem__", PANDAS, 10)) for path in (files[0], link / "data.py")]
    context = make_context(tmp_path, script=script, measurement=make_measurement(samples=samples))
    assert files_in_stacks(context) == [script, files[0]]


def test_files_that_cannot_be_read_are_left_out(tmp_path, files):
    context = make_case(tmp_path, files)
    files[0].write_text("def (:\n")
    ((path, module, of_line),) = hot_modules(context)
    assert path == files[1] and module.text == DATASET and of_line == {3: pytest.approx(0.4)}
