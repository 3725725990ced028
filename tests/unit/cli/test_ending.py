import pytest
import typer

from unstall.cli import ending


def test_bad_input_ends_with_a_line_and_its_own_code(capsys):
    with pytest.raises(typer.Exit) as ended:
        ending.fail("no such file: give another")
    assert ended.value.exit_code == ending.EXIT_USAGE == 2
    assert capsys.readouterr().err == "unstall: no such file: give another\n"


def test_a_folder_that_is_missing_is_named_before_any_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ending.need_folders(None, tmp_path / "report.json", tmp_path.relative_to(tmp_path) / "here.json")
    with pytest.raises(typer.Exit):
        ending.need_folders(tmp_path / "report.json", tmp_path / "gone" / "report.md")
    assert f"no folder {tmp_path / 'gone'}" in capsys.readouterr().err
