import pytest

from unstall.records import excerpts
from unstall.records import report as r

SOURCE = """\
import x


class Photos:
    @cached
    def load(self, path):
        data = open(path)

        for line in data:
            yield line


    async def other(self):
        return 2

top = 3
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    return path


def culprit(path, line, code):
    return r.Culprit(function="f", file=str(path), line=line, share=0.5, code=code)


def test_the_function_around_the_line(path):
    found = excerpts.around(culprit(path, 10, "yield line"))
    assert (found.first, found.lines[0], found.lines[-1]) == (6, "    def load(self, path):", "            yield line")
    assert found.holds(str(path), 6) and found.holds(str(path), 10)
    assert not found.holds(str(path), 11) and not found.holds("/other.py", 8)
    assert excerpts.around(culprit(path, 14, "return 2")).lines == ["    async def other(self):", "        return 2"]


def test_lines_of_no_function(path):
    found = excerpts.around(culprit(path, 16, "top = 3"))
    assert found.lines[-1] == "top = 3" and found.first == 2


def test_a_long_function_is_cut(tmp_path):
    path = tmp_path / "long.py"
    path.write_text("def f():\n" + "    pass\n" * 100 + "    x = 1\n" + "    pass\n" * 100)
    found = excerpts.around(culprit(path, 102, "x = 1"))
    assert 10 < len(found.lines) < 30 and found.holds(str(path), 102)


@pytest.mark.parametrize("line, code", ((7, "something else"), (7, ""), (0, "import x"), (999, "import x")))
def test_a_file_that_says_something_else_is_not_kept(path, line, code):
    assert excerpts.around(culprit(path, line, code)) is None
    assert excerpts.around(culprit(path.parent / "gone.py", line, code)) is None


def test_a_name_that_no_file_can_have_is_no_error():
    assert excerpts.around(culprit("\0", 1, "x")) is None
