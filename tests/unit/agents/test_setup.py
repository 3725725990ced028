"""What clients read is merged into their files and taken back without a trace."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

tomlkit = pytest.importorskip("tomlkit", reason="the extra unstall[mcp] brings it")

from unstall.agents import setup  # noqa: E402
from unstall.cli import setup_agent  # noqa: E402
from unstall.cli.main import app  # noqa: E402

JSON_CLIENTS = [name for name, client in setup.CLIENTS.items() if client.servers.endswith(".json")]


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.setenv("HOME", os.fspath(tmp_path / "home"))
    monkeypatch.chdir(folder)
    return folder


def servers_of(name: str) -> Path:
    return Path.cwd() / Path(setup.CLIENTS[name].servers).expanduser()


def ask(*words: str, input: str | None = None):
    return CliRunner().invoke(app, ["setup-agent", *words], input=input)


def tree(*roots: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for root in roots for path in sorted(root.rglob("*")) if path.is_file()}


def test_the_command_offers_every_client():
    assert tuple(setup.CLIENTS) == setup_agent.CLIENTS


@pytest.mark.parametrize("name", setup.CLIENTS)
def test_what_is_written_is_shown_and_taken_back_whole(name, project, tmp_path):
    done = ask(name, "--yes")
    assert done.exit_code == 0 and "unstall" in servers_of(name).read_text()
    assert str(servers_of(name)) in done.stdout and '"mcp"' in done.stdout
    skill = project / setup.CLIENTS[name].skill
    assert skill.read_text().startswith("---\nname: unstall\n")
    before = tree(tmp_path)
    assert "already" in ask(name, "--yes").stderr and tree(tmp_path) == before
    assert ask(name, "--remove", "--yes").exit_code == 0
    assert tree(tmp_path) == {} and list(project.iterdir()) == []
    assert "nothing" in ask(name, "--remove", "--yes").stderr


@pytest.mark.parametrize("name", setup.CLIENTS)
def test_nothing_is_written_without_consent(name, tmp_path):
    assert ask(name, input="n\n").exit_code == 0
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("name", JSON_CLIENTS)
@pytest.mark.parametrize("indent, end", [(2, "\n"), (4, "\n"), ("\t", ""), (2, "\r\n")])
def test_other_servers_and_settings_stay(name, indent, end):
    key = "servers" if name == "vscode" else "mcpServers"
    others = {"theme": "düster", key: {"other": {"command": "other", "args": []}}, "last": [1]}
    text = json.dumps(others, indent=indent, ensure_ascii=False)
    original = (text.replace("\n", end) if end == "\r\n" else text).encode() + end.encode()
    path = servers_of(name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(original)
    ask(name, "--yes")
    written = json.loads(path.read_bytes())
    assert written[key].pop("unstall")["args"] == ["mcp"] and written == others
    ask(name, "--remove", "--yes")
    # a list is written in several lines, as the standard library does
    assert json.loads(path.read_bytes()) == others and path.read_bytes().endswith(original[-2:])


CONFIG = """\
# mine
model = "large"  # the good one

[mcp_servers.other]   # keep
command = "other"

[profiles.fast]
effort = "low"
"""


@pytest.mark.parametrize("text", [CONFIG, '# only a comment\nmodel = "x"\n', '[mcp_servers.other]\ncommand = "o"\n'])
def test_comments_in_toml_stay(text):
    path = servers_of("codex")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    ask("codex", "--yes")
    written = path.read_text()
    assert tomlkit.parse(written)["mcp_servers"]["unstall"].unwrap() == {"command": "unstall", "args": ["mcp"]}
    assert set(text.splitlines()) <= set(written.splitlines())
    ask("codex", "--remove", "--yes")
    assert path.read_text() == text


@pytest.mark.parametrize(
    "name, text",
    [
        ("claude", "{ // a comment\n}"),
        ("claude", '{"mcpServers": []}'),
        ("cursor", "[]"),
        ("codex", "mcp_servers = 3"),
        ("codex", "= ="),
    ],
)
def test_a_file_that_is_not_understood_stays_as_it_is(name, text):
    path = servers_of(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    done = ask(name, "--yes")
    assert done.exit_code == 2 and path.name in done.stderr and done.stderr.count("\n") == 1
    assert path.read_text() == text


def test_a_skill_that_somebody_changed_is_not_removed(project):
    ask("claude", "--yes")
    skill = project / setup.CLIENTS["claude"].skill
    skill.write_text("mine\n")
    ask("claude", "--remove", "--yes")
    assert skill.read_text() == "mine\n" and not servers_of("claude").exists()


def test_a_link_to_a_configuration_elsewhere_stays_one(tmp_path):
    elsewhere = tmp_path / "dotfiles.json"
    elsewhere.write_text("{}\n")
    servers_of("claude").symlink_to(elsewhere)
    ask("claude", "--yes")
    assert servers_of("claude").is_symlink() and "unstall" in elsewhere.read_text()
