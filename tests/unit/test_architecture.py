"""The page on the architecture shows the rooms as the contracts of import-linter have them."""

import re
from pathlib import Path

import pytest

tomllib = pytest.importorskip("tomllib", reason="Python 3.11 or newer reads pyproject.toml by itself")

ROOT = Path(__file__).parents[2]


def _layers():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    rooms = next(contract for contract in config["tool"]["importlinter"]["contracts"] if contract["id"] == "rooms")
    return [set(re.findall(r"\w+", layer)) for layer in rooms["layers"]]


def _picture():
    page = (ROOT / "docs" / "architecture.md").read_text()
    block, *_ = re.findall(r"```text\n(.*?)```", page, re.DOTALL)  # then those of single rooms
    return [set(re.split(r"   ", re.sub(r"    +.*", "", line))) for line in block.splitlines()]


def test_the_picture_shows_the_layers_of_the_contract():
    there = {path.stem for path in (ROOT / "src" / "unstall").iterdir()}
    shown = [layer & there for layer in _layers()]
    assert [layer - {"__main__"} for layer in shown if layer != {"__main__"}] == _picture()
