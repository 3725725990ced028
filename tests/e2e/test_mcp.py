"""`unstall mcp` in a real process, asked by the client of the same package as coding agents ask it."""

from __future__ import annotations

import difflib
import os
import sys
import textwrap
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from harness import marked

anyio = pytest.importorskip("anyio", reason="the extra unstall[mcp] brings it")
mcp = pytest.importorskip("mcp", reason="the extra unstall[mcp] brings it")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

TOOLS = ["run", "simplify", "data", "what_if", "optimize", "prove", "compare", "trace", "report", "history"]
LIMIT_BYTES = 4096
MARK = "agent"
PROGRAM = """
    import sys

    from tiny import training

    steps = int(sys.argv[1])
    print("begins", flush=True)
    for step, loss in training(steps, pause=0.01):
        pass
    print("ends")
"""


@asynccontextmanager
async def connected(workspace):
    """A client of a server in the workspace, whose processes carry a mark."""
    env = {
        **os.environ, "UNSTALL_TEST_MARK": MARK + workspace.folder.as_posix(),
        "XDG_STATE_HOME": os.fspath(workspace.beside / "state"), "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": os.fspath(workspace.beside / "temporary"),
    }  # fmt: skip
    (workspace.beside / "temporary").mkdir(exist_ok=True)
    server = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "unstall", "mcp"], env=env, cwd=workspace.folder
    )
    async with mcp.Client(server) as client:
        yield client


def processes(workspace):
    return marked(MARK + workspace.folder.as_posix())


async def gone(condition, *, within_s=30):
    with anyio.fail_after(within_s):
        while condition():
            await anyio.sleep(0.05)


@pytest.fixture
def program(workspace):
    workspace.write("train.py", PROGRAM)
    return workspace


def asking(program, ask):
    async def session():
        async with connected(program) as client:
            await ask(client)
        await gone(lambda: processes(program))
        assert not list((program.beside / "temporary").glob("unstall-mcp-*"))

    anyio.run(session)


def test_the_tools_are_listed_with_their_types(program):
    async def ask(client):
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == TOOLS
        for tool in tools:
            assert tool.description and tool.output_schema["properties"]["next"]["type"] == "array"

    asking(program, ask)


def test_a_run_is_measured_and_its_answer_is_short_with_the_rest_in_resources(program):
    async def ask(client):
        heard = []

        async def on_progress(progress, total, message):
            heard.append((progress, message))

        done = await client.call_tool("run", {"program": ["train.py", "300"]}, progress_callback=on_progress)
        assert not done.is_error, done.content
        assert len(done.content[0].text.encode()) <= LIMIT_BYTES
        answer = done.structured_content
        assert 0 < answer["steps"] <= 300 and answer["exit_code"] == 0 and answer["next"]
        assert answer["verdict"]["pattern"] and answer["verdict"]["pattern"] in answer["headline"]
        assert heard and heard == sorted(heard, key=lambda each: each[0])
        files = {Path(each["path"]).name: each for each in answer["resources"]}
        assert (await client.read_resource(files["stdout.txt"]["uri"])).contents[0].text == "begins\nends\n"
        whole = (await client.read_resource(files["answer.json"]["uri"])).contents[0].text
        assert answer["run"] in whole and Path(files["answer.json"]["path"]).read_text() == whole

        again = (await client.call_tool("report", {})).structured_content
        assert again["run"] == answer["run"] and again["headline"] == answer["headline"]
        history = (await client.call_tool("history", {})).structured_content
        assert [run["id"] for run in history["runs"]] == [answer["run"]]
        predicted = (await client.call_tool("what_if", {"run": answer["run"]})).structured_content
        assert predicted["recorded_step_s"] > 0
        second = await client.call_tool("run", {"program": ["train.py", "300"], "steps": 40})
        assert second.structured_content["run"] != answer["run"]
        compared = await client.call_tool("compare", {"before": answer["run"]})
        assert compared.structured_content["next"] and compared.structured_content["conclusion"]

    asking(program, ask)


@pytest.mark.parametrize(
    "tool, arguments, error",
    [
        ("run", {"program": ["missing.py"]}, "missing.py"),
        ("run", {"program": ["--json", "elsewhere.json", "train.py"]}, "--json is no program"),
        ("report", {"run": "--open"}, "--open"),
        ("history", {"folder": "nowhere"}, "No such file or directory"),
        ("trace", {"files": ["nothing.json"]}, "no such file"),
        ("prove", {"program": ["train.py"]}, "give either patch or against"),
    ],
)
def test_an_error_is_one_line(program, tool, arguments, error):
    async def ask(client):
        done = await client.call_tool(tool, arguments)
        text = done.content[0].text
        assert done.is_error and error in text and "\n" not in text

    asking(program, ask)
    assert not (program.folder / "elsewhere.json").exists()


def test_a_change_that_stops_the_clock_is_refused(program):
    changed = "import time\ntime.perf_counter = lambda: 0.0\n" + program.folder.joinpath("train.py").read_text()
    lines = [text.splitlines(keepends=True) for text in (program.folder.joinpath("train.py").read_text(), changed)]
    program.write("fast.patch", "".join(difflib.unified_diff(*lines, "a/train.py", "b/train.py")))

    async def ask(client):
        answer = (await client.call_tool("prove", {"program": ["train.py"], "patch": "fast.patch"})).structured_content
        assert answer["verdict"] == "refused" and "time.perf_counter" in answer["headline"]
        assert answer["ratio"] is None and "Take out" in answer["next"][0]

    asking(program, ask)


IGNORES = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"


@pytest.mark.parametrize("first", ["pass", pytest.param(IGNORES, marks=pytest.mark.long)])
def test_a_run_that_is_cancelled_ends_with_all_its_processes(program, first):
    program.write("train.py", f"{first}\n" + textwrap.dedent(PROGRAM))

    async def ask(client):
        before = set(processes(program))
        async with anyio.create_task_group() as tasks:
            begun = anyio.Event()

            async def on_progress(progress, total, message):
                outputs = (program.beside / "temporary").glob("unstall-mcp-*/1/stdout.txt")
                if any(b"begins" in output.read_bytes() for output in outputs):
                    begun.set()

            async def run():
                await client.call_tool("run", {"program": ["train.py", "1000000"]}, progress_callback=on_progress)

            tasks.start_soon(run)
            await begun.wait()
            tasks.cancel_scope.cancel()
        await gone(lambda: set(processes(program)) - before)
        assert not (await client.call_tool("history", {})).is_error

    asking(program, ask)


def test_a_server_that_is_killed_takes_its_program_along(program):
    async def session():
        with pytest.raises(Exception):  # noqa: B017, PT012  the client's own, of a connection that is gone
            async with connected(program) as client, anyio.create_task_group() as tasks:
                before = set(processes(program))
                tasks.start_soon(client.call_tool, "run", {"program": ["train.py", "1000000"]})
                await gone(lambda: len(set(processes(program)) - before) < 2)
                (server,) = before
                os.kill(server, 9)
        await gone(lambda: processes(program))

    anyio.run(session)
