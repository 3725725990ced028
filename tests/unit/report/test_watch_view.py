import pytest
from changes import changed
from rich.cells import cell_len

from unstall.records.observations import LiveView, Usage
from unstall.report import watch_view


def shown(view, width=80):
    return watch_view.page(view, width).as_text()


@pytest.fixture
def view():
    return LiveView(
        "20260101-000000-abcdef",
        command="train.py --epochs 3",
        running_s=83.2,
        steps=1204,
        rate=20.4,
        rates=[5.0, 10.0, 20.0],
        phases={"data_wait": 0.03, "forward": 0.01, "other": 0.00001},
        phase_steps=990,
        usage={"main process": Usage(1, 0.93, 400_000_000), "loader workers": Usage(2, 1.0, 200_000_000)},
        gpus=[0.31],
        sampling="sampling stacks",
    )


def test_everything_that_is_known_is_shown(view):
    text = shown(view)
    for expected in (
        "20260101-000000-abcdef",
        "train.py --epochs 3",
        "83 s",
        "sampling stacks",
        "1,204 steps",
        "20.4 steps/s",
        "40 ms a step over 990 steps",
        "75 %",
        "2 loader workers 1 cores, 200 MB",
        "GPU 0 31 %",
    ):
        assert expected in " ".join(text.split()), expected
    assert "other " not in text


@pytest.mark.parametrize("width", (40, 60, 100, 300))
def test_it_fits_the_terminal(view, width):
    text = shown(changed(view, command="x\x1b[31m" * 200), width)
    assert "\x1b" not in text
    assert all(cell_len(line) <= width for line in text.splitlines())


def test_a_run_that_has_just_begun():
    text = shown(LiveView("id", running_s=0.2))
    assert "no step yet" in text and "starting" in text


def test_one_line_for_a_pipe(view):
    assert watch_view.line(view) == (
        "1,204 steps · 20.4 steps/s · sampling stacks · data_wait 75 % · forward 25 % · other < 0.1 %"
    )
