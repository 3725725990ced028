"""A part of a file is read alone, and is what it was."""

from __future__ import annotations

import io
import pathlib
import textwrap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optimize_builders import make_context, make_module, make_report

from unstall.optimize.remedies.read_part import REMEDY
from unstall.optimize.rewrites.read_part import partial_reads, taken_alone
from unstall.optimize.runtime.own_array import _own_array
from unstall.optimize.runtime.part_of_file import _part_of_file
from unstall.optimize.source.errors import NotApplicable
from unstall.records.report import Hotspot

BOUND = st.none() | st.integers(-30, 30)


@given(st.binary(max_size=20), st.integers(0, 25), BOUND, BOUND)
def test_the_part_and_where_it_leaves_the_file_are_the_same(content, position, start, stop):
    files = [io.BytesIO(content) for _ in range(2)]
    for file in files:
        file.seek(position)
    assert _part_of_file(files[0], start, stop) == files[1].read()[start:stop]
    assert files[0].tell() == files[1].tell()


class Pipe:
    def seekable(self):
        return False

    def read(self):
        return b"0123456789"


def test_what_cannot_be_sought_in_is_read_as_a_whole():
    assert _part_of_file(Pipe(), 2, -5) == b"234"


def test_a_bound_that_is_no_number_is_an_error_as_it_was():
    with pytest.raises(TypeError):
        _part_of_file(io.BytesIO(b"abc"), "a", None)


@pytest.mark.parametrize("index", [1, -1, slice(1, 3), (slice(None), 1), [2, 0], ..., (1, 2)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_is_taken_of_an_array_in_a_file_is_as_it_was(index, order, tmp_path):
    array = np.arange(12.0).reshape(4, 3).astype(order=order, dtype=np.float32)
    np.save(tmp_path / "a.npy", array)
    index = tuple(index) if isinstance(index, tuple) else index
    before, after = np.load(tmp_path / "a.npy")[index], _own_array(np.load(tmp_path / "a.npy", mmap_mode="r")[index])
    assert type(before) is type(after) and before.dtype == after.dtype and np.array_equal(before, after)
    if isinstance(after, np.ndarray):
        assert after.flags.writeable and not isinstance(after.base, np.memmap)


def test_records_of_an_array_in_a_file_are_as_they_were(tmp_path):
    np.save(tmp_path / "a.npy", np.array([(1, 2.0), (3, 4.0)], dtype=[("n", "i4"), ("x", "f8")]))
    found = _own_array(np.load(tmp_path / "a.npy", mmap_mode="r")[1])
    assert found == np.load(tmp_path / "a.npy")[1] and found["x"] == 4.0


def rewritten(body):
    text = f"import numpy as np\nfrom pathlib import Path\n\n\ndef f(path, a, b):\n{textwrap.indent(body, '    ')}\n"
    module = make_module(text)
    (read,) = partial_reads(module, set(range(1, 20)))
    return taken_alone(module, read).code


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ('with open(path, "rb") as file:\n    return file.read()[a:b]', "_part_of_file(file, a, b)"),
        ('with open(path, mode="rb") as file:\n    part = file.read()[a : a + b]\n    file.fileno()\n    return part', "a + b)"),
        ('with open(path, "rb") as file:\n    head = file.read(4)\n    return file.read()[a:b], head, file.tell()', "_part_of_file(file, a, b)"),
        ('with open(path, "rb") as file:\n    return file.read()[:b]  # the first', "(file, None, b)  # the first"),
        ("return Path(path).read_bytes()[a:]", "_part_of_path(Path(path), a, None)"),
    ],
)  # fmt: skip
def test_files_are_read_in_part(body, asked, tmp_path):
    text = rewritten(body)
    assert asked in text
    (tmp_path / "data").write_bytes(bytes(range(100)))
    for source in (text, f"from pathlib import Path\ndef f(path, a, b):\n{textwrap.indent(body, '    ')}\n"):
        space: dict = {}
        exec(compile(source, "data.py", "exec"), space)
        parts = [space["f"](tmp_path / "data", *bounds) for bounds in ((3, 9), (-5, 99), (9, 3))]
        if source is text:
            wanted = parts
    assert parts == wanted


@pytest.mark.parametrize("body", ["return np.load(path)[a]", "table = np.load(path)\n# one row\nreturn table[a]"])
def test_arrays_are_mapped(body, tmp_path):
    text = rewritten(body)
    assert 'np.load(path, mmap_mode="r")' in text and "return _own_array(" in text
    np.save(tmp_path / "a.npy", np.arange(6).reshape(3, 2))
    space: dict = {}
    exec(compile(text, "data.py", "exec"), space)
    assert space["f"](tmp_path / "a.npy", 1, None).tolist() == [2, 3]


@pytest.mark.parametrize(
    "body",
    [
        'with open(path) as file:\n    return file.read()[a:b]',
        'with open(path, "rb+") as file:\n    return file.read()[a:b]',
        'with open(path, "rb", 0) as file:\n    return file.read()[a:b]',
        'with open(path, "rb") as file:\n    return file.read()[a]',
        'with open(path, "rb") as file:\n    return file.read()[a:b:2]',
        'with open(path, "rb") as file:\n    return file.read(100)[a:b]',
        "return path.read()[a:b]",
        "return np.load(path, allow_pickle=True)[a]",
        "return np.load(*path)[a]",
        "table = np.load(path)\nreturn table[a] + table[b]",
        "table = np.load(path)\nreturn table.sum()",
        "table = np.load(path)\ntable[a] = 3",
        "for table in (np.load(path),):\n    return table[a]",
    ],
)  # fmt: skip
def test_what_needs_more_of_the_file_is_left(body):
    text = f"import numpy as np\n\n\ndef f(path, a, b):\n{textwrap.indent(body, '    ')}\n"
    assert not list(partial_reads(make_module(text), set(range(1, 20))))


def context_of(tmp_path, source):
    path = tmp_path / "data.py"
    path.write_text(source)
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "load" in text)
    spot = Hotspot(file=str(path), line=line, function="f", share=0.7)
    return make_context(tmp_path, report=make_report(hotspots=[spot]))


def test_the_hot_line_is_proposed(tmp_path):
    context = context_of(
        tmp_path, "import numpy as np\n\n\ndef f(path, i):\n    rows = np.load(path)\n    return rows[i]\n"
    )
    (proposal,) = REMEDY.propose(context)
    assert proposal.title == "reads the part of a file that it takes (data.py:6)" and proposal.predicted > 1.5
    assert "mmap_mode" in proposal.sources.bytes_of(pathlib.Path(tmp_path / "data.py")).decode()


def test_one_that_takes_all_is_not(tmp_path):
    with pytest.raises(NotApplicable, match="for a part of it"):
        REMEDY.propose(context_of(tmp_path, "import numpy as np\n\n\ndef f(path):\n    return np.load(path)\n"))
