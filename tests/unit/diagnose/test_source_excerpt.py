import pytest

from unstall.diagnose import source_excerpt as excerpts
from unstall.records import report as r
from unstall.records.archive import Excerpt
from unstall.records.run import RunInfo, Throughput, Utilization

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


def test_what_was_kept_with_the_run_goes_before_the_file(path):
    blamed = culprit(path, 16, "top = 3")
    kept = Excerpt(str(path), 15, ["", "top = 3  # as it was"])
    assert excerpts.of_report(report(blamed), [kept]) == [kept]
    assert excerpts.of_report(report(blamed)) == [excerpts.around(blamed)]


def report(blamed):
    finding = r.Finding(
        pattern="host-bound",
        headroom=2.0,
        headroom_known_by="estimated",
        confidence="high",
        evidence=[],
        advice=[],
        culprit=blamed,
    )
    run = RunInfo(id="1", command=[], started="", duration_s=1, steps=9, exit_code=0, environment={})
    return r.Report(
        kind="run",
        run=run,
        throughput=Throughput(steps_per_s=1.0),
        utilization=Utilization(),
        phases=[],
        verdict=finding,
        findings=[finding],
    )
