from __future__ import annotations

import io
import re

import pytest

from unstall.report.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _terminal_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def shown(stream: Terminal) -> list[str]:
    """The words written, one string an update, without the control sequences."""
    updates = stream.getvalue().split("\x1b[J")[1:]
    return [re.sub(r"\x1b(\[\d*[A-Z]|.)", "", update) for update in updates]


def test_one_line_is_rewritten_and_erased() -> None:
    stream, clock = Terminal(), Clock()
    progress = Progress(stream, clock)
    progress.update("warming up", 0, None)
    clock.now += 1
    progress.update("measuring", 1200, 41.52)
    progress.clear()
    assert shown(stream) == [
        "unstall · warming up",
        "unstall · measuring · 1,200 steps · 41.5 steps/s",
        "",
    ]


def test_the_cursor_stays_where_the_program_left_it() -> None:
    stream = Terminal()
    Progress(stream).update("measuring", 1, None)
    text = stream.getvalue()
    assert text.index("\x1b7") < text.index("unstall") < text.index("\x1b8")
    assert text.endswith("\x1b8")
    assert "\n" not in text and "\r" not in text


def test_at_most_four_times_a_second() -> None:
    stream, clock = Terminal(), Clock()
    progress = Progress(stream, clock)
    for step in range(1000):
        clock.now += 0.01
        progress.update("measuring", step, None)
    assert len(shown(stream)) in range(39, 42)


def test_silent_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, dumb = io.StringIO(), Terminal()
    progresses = [Progress(pipe)]
    monkeypatch.setenv("TERM", "dumb")
    progresses.append(Progress(dumb))
    for progress in progresses:
        progress.update("measuring", 1, 1.0)
        progress.clear()
    assert pipe.getvalue() == dumb.getvalue() == ""


def test_never_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress()
    progress.update("measuring", 1, 1.0)
    progress.clear()
    assert capsys.readouterr() == ("", "")


def test_clear_writes_nothing_when_nothing_is_shown() -> None:
    stream = Terminal()
    progress = Progress(stream)
    progress.clear()
    progress.update("measuring", 1, None)
    progress.clear()
    progress.clear()
    assert [bool(text) for text in shown(stream)] == [True, False]


def test_a_long_line_does_not_wrap() -> None:
    stream = Terminal()
    Progress(stream).update("x" * 500, 3, 2.0)
    assert len(shown(stream)[0]) == 79


def test_a_terminal_that_goes_away_does_no_harm() -> None:
    stream = Terminal()
    progress = Progress(stream)
    progress.update("measuring", 1, None)
    stream.close()
    progress.clear()
    progress.update("measuring", 2, None)


def test_without_a_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    Progress().update("measuring", 1, None)
    Progress().log("measuring")


def test_lines_that_stay_have_their_time_and_stand_above_the_other() -> None:
    stream, clock = Terminal(), Clock()
    with Progress(stream, clock) as progress:
        progress.update("reading")
        clock.now += 12
        progress.log("  pair 1:\x1b[31m 3 ms")
        progress.update("reading")
    text = stream.getvalue()
    assert "unstall:   12 s    pair 1: 3 ms\n" in text
    assert shown(stream)[0] == "unstall · reading" and text.endswith("\x1b[J")


def test_lines_that_stay_are_for_pipes_too() -> None:
    pipe = io.StringIO()
    Progress(pipe, Clock()).log("diagnosing")
    assert pipe.getvalue() == "unstall:    0 s  diagnosing\n"


def test_short_work_shows_no_progress() -> None:
    stream, clock = Terminal(), Clock()
    progress = Progress(stream, clock, after_s=2.0)
    progress.update("reading")
    assert stream.getvalue() == ""
    clock.now += 3
    progress.update("reading")
    assert shown(stream) == ["unstall · reading"]
