"""How well the clocks of two machines are put on one by the exchanges of their ranks, where the truth is known.

    make nodes-bench                      each way, three times
    python bench/nodes.py --rounds 1

Two machines are simulated on this one (network, host name and monotonic clock of their own; root only): the second's
clock is 50,000 s ahead. On each runs a rank of a training that DDP puts together. The second is late in every step,
because it sleeps or because it computes; with and without two more programs that take the cores.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

from machine import describe, version

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from harness import free_port  # noqa: E402
from nodes import ADDRESS, two_nodes  # noqa: E402

from unstall.benchmark.gather import clocks, parts  # noqa: E402
from unstall.benchmark.gather.store import FolderStore  # noqa: E402

AHEAD_S = 50_000
LATE = {"sleeps": "time.sleep(0.1)", "computes": "sum(number * number for number in range(1_000_000))"}
"""What the late rank does in a step."""
PROGRAM = """
    import time

    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(256, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(100):
        if dist.get_rank() == 1:
            {late}
        loss = model(torch.randn(64, 256)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()
    # A gloo thread that still holds a tensor aborts once the interpreter ends, one time in 40 (torch#179291).
    time.sleep(0.5)
"""


def main() -> int:
    """Measure and print; exit code 1 where a clock is more than a millisecond off on cores that nobody else takes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"{describe()}, version {version('src')}")
    worst = 0.0
    for late, work in LATE.items():
        for others in (0, 2):
            errors = []
            for _ in range(options.rounds):
                with busy(others):
                    errors.append(error_s(work))
            worst = max(worst, *map(abs, errors)) if not others else worst
            figures = ", ".join(f"{error * 1e3:+.2f} ms" for error in errors)
            print(f"the late rank {late}, {others} other programs: {figures}", flush=True)
    print(f"at most {worst * 1e3:.2f} ms off where no other program takes the cores")
    return int(worst > 1e-3)


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """So many programs that do nothing but take a core each."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def error_s(work: str) -> float:
    """Run the training on two nodes; how far the second's clock is put from where it is, in the middle of the run."""
    with tempfile.TemporaryDirectory() as folder, two_nodes() as on:
        (Path(folder) / "train.py").write_text(textwrap.dedent(PROGRAM.format(late=work)))
        shared, port = Path(folder) / "shared", free_port()
        environment = {**os.environ, "XDG_STATE_HOME": str(Path(folder) / "state")}
        nodes = []
        for i, ahead_s in enumerate((0, AHEAD_S)):
            command = [*on(i, ahead_s), sys.executable, "-m", "unstall", "run", "--gather", str(shared), "--"]
            command += [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", str(i)]
            command += ["--nproc-per-node", "1", "--master-addr", ADDRESS, "--master-port", str(port), "train.py"]
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            nodes.append(subprocess.Popen(command, cwd=folder, env=environment, **quiet))
        assert [node.wait() for node in nodes] == [0, 0]
        (job,) = (path for path in shared.iterdir() if path.is_dir())
        found = [parts.read(FolderStore(shared), job.name, path.name) for path in sorted(job.glob("*.part"))]
    first, second = (part.ranks[0] for part in found)
    known = clocks.between(first, second)
    assert known is not None
    return known[1].offset_s - AHEAD_S


if __name__ == "__main__":
    sys.exit(main())
