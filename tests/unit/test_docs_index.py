"""The tables of the documentation that are made from the program's own objects."""

import subprocess
import sys
from pathlib import Path

from unstall.diagnose.patterns import all_patterns

_ROOT = Path(__file__).parents[2]


def test_the_pages_are_as_generated():
    done = subprocess.run(
        [sys.executable, _ROOT / "docs" / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_every_pattern_has_its_page_in_the_navigation():
    navigation = (_ROOT / "mkdocs.yml").read_text()
    for name in all_patterns():
        assert (_ROOT / "docs" / "patterns" / f"{name}.md").exists()
        assert f"patterns/{name}.md" in navigation
