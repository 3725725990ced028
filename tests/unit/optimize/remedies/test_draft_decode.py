"""JPEGs decoded at reduced size: what is written, and that the image has the size it had."""

from __future__ import annotations

import pytest

from unstall.optimize.remedies.draft_decode import with_draft
from unstall.optimize.sources import Sources

TEXT = """from PIL import Image

SIZE = 40


def read(path, side=30):
    {lines}
    return small
"""


def written(tmp_path, *lines):
    path = tmp_path / "photos.py"
    path.write_text(TEXT.replace("{lines}", "\n    ".join(lines)))
    sources, places = with_draft(Sources(), path, {7})
    return sources.bytes_of(path).decode(), places


@pytest.mark.parametrize(
    "lines",
    [
        ("image = Image.open(path)  # a photograph", "small = image.resize((SIZE, SIZE))"),
        ('image = Image.open(path).convert("RGB")', "small = image.resize((SIZE, 30))"),
        ('small = Image.open(path).convert("RGB").resize((40, SIZE))',),
        ("small = Image.open(path)", "small.thumbnail((40, 40))"),
    ],
)
def test_the_image_is_smaller_before_it_is_shrunk(tmp_path, lines):
    image_module = pytest.importorskip("PIL.Image")
    image_module.new("RGB", (1600, 1600), (200, 30, 90)).save(tmp_path / "photo.jpg")
    text, places = written(tmp_path, *lines)
    assert places == [7] and '.draft("RGB", (2 * ' in text and ("# a photograph" in text) == ("#" in lines[0])
    before, after = {}, {}
    exec(TEXT.replace("{lines}", "\n    ".join(lines)), before)
    exec(text, after)
    full, draft = before["read"](tmp_path / "photo.jpg"), after["read"](tmp_path / "photo.jpg")
    assert full.size == draft.size and full.mode == draft.mode
    assert all(abs(a - b) < 8 for a, b in zip(full.getpixel((5, 5)), draft.getpixel((5, 5))))


@pytest.mark.parametrize(
    "lines",
    [
        ("image = Image.open(path)", "small = image.resize((image.width // 2, 20))"),
        ("image = Image.open(path)", "small = image.rotate(20)"),
        ("image = Image.open(path)", "small = image.resize((20, 20)).resize((40, 40))"),
        ("small = [Image.open(one).resize((40, 40)) for one in path]",),
    ],
)
def test_what_is_not_shrunk_to_a_known_size_is_left_alone(tmp_path, lines):
    assert written(tmp_path, *lines) == (TEXT.replace("{lines}", "\n    ".join(lines)), [])
