"""``optimize --agent``: a command changes the program's sources, and what it changed is one more candidate.

The command is run in the sandbox, where it may change the program's tree as it likes; only its Python files are taken.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from unstall.child.user_files import is_user_file
from unstall.environment import BRIEF
from unstall.optimize import agent_process
from unstall.optimize.brief import brief, ceiling
from unstall.optimize.program import Program
from unstall.optimize.proposal import Attempt, Proposal
from unstall.optimize.remedies.base import Exactness, Remedy
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.files import Sources
from unstall.optimize.thresholds import AGENT_IDLE
from unstall.optimize.trial_runner import TrialRunner, Variant, end_tree, write_files

if TYPE_CHECKING:
    from unstall.optimize.context import RemedyContext
    from unstall.optimize.result import Result

_PROCESS = Path(agent_process.__file__)


class AgentChange(Remedy):
    """A change that the agent wrote."""

    name = "agent"
    brief = "what the command of `--agent` changed"
    patterns = ()
    rounds_otherwise = False
    """It may do anything by chance."""

    def __init__(self, exactness: Exactness) -> None:
        self.exactness = exactness  # type: ignore[misc]  # of this search, by what is allowed

    def propose(self, context: RemedyContext) -> list[Proposal]:
        raise NotApplicable("the search asks the agent itself")


class Nothing(Exception):
    """The agent gave no candidate; the message says why, to it and to the person."""


class Agent:
    """The command of a search, asked again until it has nothing more to give."""

    def __init__(
        self, command: str, program: Program, runner: TrialRunner, exactness: Exactness, log: Callable[[str], None]
    ) -> None:
        self.command, self.program, self.runner, self.log = command, program, runner, log
        self.remedy = AgentChange(exactness)
        self.proposed: set[str] = set()
        """Digests of the sources that it has proposed."""
        self.asked = 0

    def is_worth_asking(self, result: Result, worth: float) -> bool:
        """Whether enough is left to gain; the first time it is asked in any case."""
        return not self.asked or ceiling(result.last) - 1 >= worth

    def ask(self, result: Result, seconds: float) -> Attempt | None:
        """Its next change on top of the best variant so far; None where it has none, after some tries.

        ``seconds``: the time that it may take each time.
        """
        remarks: list[str] = []
        while len(remarks) < AGENT_IDLE:
            self.asked += 1
            self.log(f"asking the agent: {self.command}")
            try:
                return self._propose(result, seconds, remarks)
            except Nothing as reason:
                remarks.append(str(reason))
                self.log(f"  no change to try: {reason}")
        return None

    def _propose(self, result: Result, seconds: float, remarks: list[str]) -> Attempt:
        """Raises Nothing."""
        folder = self.runner.make_folder()
        text = brief(self.program.words, result.last, result.attempts, remarks)
        (folder / "brief.md").write_text(text, encoding="utf-8")
        changed = self._changed(result.best, folder, seconds)
        sources = Sources({**result.best.sources.changed, **changed})
        digest = hashlib.sha256(repr(sorted(sources.changed.items())).encode()).hexdigest()
        if digest in self.proposed:
            raise Nothing("it is the same change as one before")
        self.proposed.add(digest)
        names = ", ".join(sorted(path.relative_to(self.program.root).as_posix() for path in changed))
        title = f"change {len(self.proposed)}: {names}"
        because = "the ceiling of the worst bottleneck"
        return Attempt(self.remedy, Proposal(title, ceiling(result.last), because, sources=sources, key=digest))

    def _changed(self, variant: Variant, folder: Path, seconds: float) -> dict[Path, bytes]:
        """What it changed, by the files' places. Raises Nothing."""
        self._run(variant, folder, seconds)
        try:
            facts = json.loads((folder / "changes.json").read_text())
            status, removed = facts["status"], facts["removed"]
            changed = {Path(path): _read_own(folder / Path(copy).name) for path, copy in facts["changed"]}
        except (OSError, ValueError, KeyError, TypeError) as error:  # the command can write there, too
            raise Nothing(f"its changes cannot be read ({type(error).__name__})") from error
        if status:
            raise Nothing(f"the command ended with exit code {status}")
        if removed:
            raise Nothing(f"a file may not be removed: {removed[0]}")
        if not changed:
            raise Nothing("no Python file was changed")
        for path in changed:
            if self.program.root not in path.resolve().parents or not is_user_file(str(path)):
                raise Nothing(f"{path} is not the program's own")
        return changed

    def _run(self, variant: Variant, folder: Path, seconds: float) -> None:
        """Run the command in the sandbox, to its end. Raises Nothing where that takes too long."""
        manifest = {
            "root": str(self.program.root), "sources": write_files(variant.files, folder),
            "command": self.command, "out": str(folder),
        }  # fmt: skip
        (folder / "manifest.json").write_text(json.dumps(manifest))
        words = [sys.executable, "-I", "-S", str(_PROCESS), str(folder / "manifest.json")]
        env = self.runner.sandbox.environment({**os.environ, BRIEF: str(folder / "brief.md")})
        with open(folder / "output.txt", "wb") as output:
            process = subprocess.Popen(
                self.runner.sandbox.command(words), env=env, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT,
            )  # fmt: skip
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Nothing(f"it did not end within {seconds:.0f} s") from None
        finally:
            end_tree(process, patience_s=0.0)


def _read_own(path: Path) -> bytes:
    """A file, and nothing that a link leads to. Raises OSError."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        return file.read()
