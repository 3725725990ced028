"""Tables in the middle of a page: between a mark and the next ``<!-- end -->``."""

from __future__ import annotations

from pathlib import Path

_END = "<!-- end -->\n"


def put_between_marks(path: Path, mark: str, text: str) -> None:
    """Put a table in the place that a file keeps for it, after the mark. Raises SystemExit where it has none."""
    begin = f"<!-- {mark} -->\n"
    before, found, rest = path.read_text(encoding="utf-8").partition(begin)
    _, end, after = rest.partition(_END)
    if not found or not end:
        raise SystemExit(f"{path} has no place for the table: {begin.strip()} ... {_END.strip()}")
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
