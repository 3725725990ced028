"""``unstall setup-agent``: what makes a coding agent's client start the server, and the skill that tells it how.

A client's configuration holds other things too: only our entry is written and taken back. In TOML, comments and
spaces stay; JSON is written anew with the indentation that it had.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table

NAME = "unstall"
_SKILL = Path(__file__).with_name("skill.md")
_COMMAND = "unstall"
_ARGUMENTS = ("mcp",)
Edit = Callable[[str, bool], str]
"""From a file's text, empty where there is none, to the wanted one; the flag: take our entry out instead."""


class NotUnderstood(Exception):
    """A file that is there is not what its name says; the message is one line."""


@dataclass(frozen=True)
class Client:
    """A coding agent's client: where it reads servers and instructions."""

    servers: str
    """Path of the file that names servers; from the project's folder, or with ``~``."""
    edit: Edit
    skill: str
    """Path of the page of instructions; from the project's folder."""


@dataclass(frozen=True)
class FileChange:
    """A file to be written, or, where ``new`` is None, removed."""

    path: Path
    old: str | None
    new: str | None

    def diff(self) -> str:
        """As a unified diff, for a person."""
        old, new = ((text or "").splitlines(keepends=True) for text in (self.old, self.new))
        before, after = (str(self.path) if text is not None else os.devnull for text in (self.old, self.new))
        lines = difflib.unified_diff(old, new, before, after)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def make(self) -> None:
        """Write or remove the file, in one step. Raises OSError."""
        path = self.path.resolve()  # a link to a file elsewhere stays one
        if self.new is None:
            path.unlink()
            _remove_empty_folders(path)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.new")
        draft.write_text(self.new, encoding="utf-8", newline="")
        if self.old is not None:
            draft.chmod(path.stat().st_mode & 0o7777)
        draft.replace(path)


def _remove_empty_folders(path: Path) -> None:
    """Those above a file that was removed, as far as nothing is in them, below the project and the home folder."""
    ends = (Path.cwd(), Path.home())
    for folder in path.parents:
        if folder in ends or any(folder in end.parents for end in ends):
            return
        try:
            folder.rmdir()
        except OSError:
            return


def changes(client: Client, project: Path, *, remove: bool) -> list[FileChange]:
    """What is to be written, or taken back; nothing where all is as wanted.

    Raises:
        NotUnderstood: a file that is there cannot be read, or is not what its name says.
    """
    servers = (project / Path(client.servers).expanduser(), client.edit)
    skill = (project / client.skill, _edit_skill)
    wanted = []
    for path, edit in (servers, skill):
        old = _read(path)
        if old is None and remove:
            continue
        try:
            new = edit(old or "", remove) or None
        except (TOMLKitError, ValueError) as error:
            raise NotUnderstood(f"{path}: {' '.join(str(error).split())}") from error
        if new != old:
            wanted.append(FileChange(path, old, new))
    return wanted


def _read(path: Path) -> str | None:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NotUnderstood(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise NotUnderstood(f"{path}: not UTF-8") from error


def _json_editor(key: str, **entry: str) -> Edit:
    """Of a JSON file whose servers stand under a key."""

    def edit(text: str, remove: bool) -> str:
        content = json.loads(text) if text.strip() else {}
        if not isinstance(content, dict) or not isinstance(content.get(key, {}), dict):
            raise ValueError(f"{key} is not a table of servers")
        wanted = {**entry, "command": _COMMAND, "args": list(_ARGUMENTS)}
        servers: dict[str, Any] = content.get(key, {})
        if (remove and NAME not in servers) or (not remove and servers.get(NAME) == wanted):
            return text
        if remove:
            del servers[NAME]
            content = {name: value for name, value in content.items() if name != key or servers}
        else:
            content[key] = {**servers, NAME: wanted}
        return _json(content, like=text) if content else ""

    return edit


def _json(content: dict[str, Any], *, like: str) -> str:
    """With the indentation and the line ends of a text."""
    indent = re.search(r"^([ \t]+)\S", like, re.MULTILINE)
    text = json.dumps(content, indent=indent[1] if indent else 2, ensure_ascii=False)
    text += "\n" if not like or like.endswith("\n") else ""
    return text.replace("\n", "\r\n") if "\r\n" in like else text


def _edit_toml(text: str, remove: bool) -> str:
    """Of a TOML file with ``[mcp_servers.NAME]``; all else stays as it is, comments included."""
    document = tomlkit.parse(text)
    servers = document.get("mcp_servers")
    if servers is not None and not hasattr(servers, "items"):
        raise ValueError("mcp_servers is not a table of servers")
    if remove:
        if not servers or NAME not in servers:
            return text
        del servers[NAME]
        if not servers:
            del document["mcp_servers"]
        return tomlkit.dumps(document).rstrip() + "\n" if document else tomlkit.dumps(document)
    wanted = {"command": _COMMAND, "args": list(_ARGUMENTS)}
    if servers and servers.get(NAME) == wanted:
        return text
    if servers is None:
        servers = document["mcp_servers"] = tomlkit.table(is_super_table=True)
    servers[NAME] = _toml_table(wanted)
    return tomlkit.dumps(document)


def _toml_table(values: dict[str, Any]) -> Table:
    table = tomlkit.table()
    table.update(values)
    return table


def _edit_skill(text: str, remove: bool) -> str:
    """The page of ours, whole: one that somebody has changed stays when it is to be removed."""
    page = _SKILL.read_text(encoding="utf-8")
    if remove:
        return "" if text == page else text
    return page


CLIENTS = {
    "claude": Client(".mcp.json", _json_editor("mcpServers", type="stdio"), ".claude/skills/unstall/SKILL.md"),
    "codex": Client("~/.codex/config.toml", _edit_toml, ".agents/skills/unstall/SKILL.md"),
    "cursor": Client(".cursor/mcp.json", _json_editor("mcpServers"), ".cursor/skills/unstall/SKILL.md"),
    "gemini": Client(".gemini/settings.json", _json_editor("mcpServers"), ".gemini/skills/unstall/SKILL.md"),
    "vscode": Client(".vscode/mcp.json", _json_editor("servers", type="stdio"), ".github/skills/unstall/SKILL.md"),
}
"""The coding agents that can be set up, by the name that a person gives."""
