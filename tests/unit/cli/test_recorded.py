"""What ``unstall run`` does when something of its own fails."""

from __future__ import annotations

from unstall.cli.recorded import _keep_traceback


def fail(folder):
    try:
        raise KeyError("phases")
    except KeyError:
        _keep_traceback(folder)


def test_the_traceback_of_a_failed_report_lies_beside_the_recording(tmp_path):
    fail(tmp_path)
    text = (tmp_path / "traceback.txt").read_text()
    assert "KeyError: 'phases'" in text and "in fail" in text


def test_a_folder_that_is_gone_hides_nothing_else(tmp_path):
    fail(tmp_path / "gone")
    assert not (tmp_path / "gone").exists()
