"""torchrun's command lines: with one rank, and beside another."""

import pytest

from unstall.simplify import ranks

TORCHRUN = ["/usr/bin/torchrun", "--nproc-per-node=2", "train.py", "--epochs", "3"]
MODULE = ["python", "-m", "torch.distributed.run", "--nproc_per_node", "4", "train.py"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (TORCHRUN, ["/usr/bin/torchrun", "--nproc-per-node=1", "train.py", "--epochs", "3"]),
        (MODULE, ["python", "-m", "torch.distributed.run", "--nproc_per_node", "1", "train.py"]),
        (["torchrun", "--nproc-per-node=1", "train.py"], None),
        (["torchrun", "train.py"], None),
        (["python", "train.py", "--nproc-per-node=2"], None),
    ],
)
def test_one_rank_alone(line, expected):
    given = list(line)
    assert ranks.alone(line) == expected
    assert line == given


def test_a_second_program_meets_elsewhere():
    assert ranks.at_another_port(TORCHRUN, 7) == ["/usr/bin/torchrun", "--master-port=7", *TORCHRUN[1:]]
    assert ranks.at_another_port(["torchrun", "--master_port", "5", "a.py"], 7) == [
        "torchrun",
        "--master_port",
        "7",
        "a.py",
    ]


@pytest.mark.parametrize("option", ["--standalone", "--rdzv-backend=c10d", "--rdzv_endpoint=host:0"])
def test_what_finds_its_own_port_is_left_alone(option):
    line = ["torchrun", option, "train.py"]
    assert ranks.at_another_port(line, 7) == line


def test_other_programs_are_left_alone():
    assert ranks.at_another_port(["python", "train.py"], 7) == ["python", "train.py"]
