"""Starts the program: once to be watched, then as often as the experiments need it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unstall.benchmark.launcher import Options, Program
from unstall.benchmark.rundir import RunDir
from unstall.child.experiments.switchboard import Switchboard
from unstall.simplify import ranks
from unstall.simplify.controlled_process import ControlledProcess, Wait
from unstall.simplify.first_run import FirstRun, watch

if TYPE_CHECKING:
    from unstall.sandbox import Sandbox

ENGINE = "unstall.child.experiments.engine"


class ProgramStarter:
    """One program in its sandbox. ``line``: what is started; ``words``: what the person wrote."""

    def __init__(self, line: list[str], words: list[str], directory: RunDir, sandbox: Sandbox, wait: Wait):
        self.line, self.words, self.directory, self.sandbox, self.wait = line, words, directory, sandbox, wait
        self.started = 0

    def watch(self) -> FirstRun:
        """The first run, as it is, recorded and sampled. OSError when there is nothing to start."""
        self.started += 1
        return watch(self.line, self.words, self.directory, self.sandbox, self.wait)

    def refusal(self, settings: dict[str, Any]) -> str | None:
        """Why the program cannot be started with these settings, if so."""
        if "ranks" in settings and ranks.alone(self.line) is None:
            return "only the ranks that torchrun starts, by --nproc-per-node, can be fewer"
        return None

    def start(self, kind: str, settings: dict[str, Any], *, is_second: bool) -> ControlledProcess:
        """A child under experiment; ``kind``: what counts its steps; ``is_second``: another one is running."""
        self.started += 1
        folder = self.directory.path / f"child-{self.started}"
        folder.mkdir()
        line = ranks.alone(self.line) if "ranks" in settings else self.line
        assert line is not None
        output = folder / "output.txt"
        options = Options(
            sampling=False,
            probing=False,
            flops=False,
            extensions=[ENGINE],
            settings=settings,
            environ=self.sandbox.environment,
            output=output,
        )
        board = Switchboard(folder, create=True)
        command = self.sandbox.command(ranks.at_another_port(line) if is_second else line)
        return ControlledProcess(Program(command, folder, options), board, output, self.wait, kind=kind)
