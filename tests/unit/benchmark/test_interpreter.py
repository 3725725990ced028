"""Which commands start a Python that unstall cannot get into."""

import pytest

from unstall.benchmark import interpreter

COMMANDS = [
    ("python train.py -S -I", None),
    ("python -S train.py", "-S"),
    ("/opt/env/bin/python3.11 -I train.py", "-I"),
    ("python3 -uE -m train", "-E"),
    ("python -W ignore -B -sS train.py", "-S"),
    ("python -WS train.py", None),
    ("python -X importtime -I train.py", "-I"),
    ("python -X E train.py", None),
    ("python -c -S", None),
    ("python -mE", None),
    ("python - -S", None),
    ("python", None),
    ("torchrun -S train.py", None),
    ("python-config -S", None),
]


@pytest.mark.parametrize(("command", "option"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_the_options_before_the_script(command, option):
    why = interpreter.unrecorded(command.split())
    assert (why is None) == (option is None)
    assert option is None or f"python {option}" in why
    assert interpreter.ignores_site(command.split()) == (option == "-S")


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("#!/usr/bin/python3 -S", "-S"),
        ("#! /usr/bin/python3 -I", "-I"),
        ("#!/usr/bin/env -S python3 -I", "-I"),
        ("#!/usr/bin/env python3", None),
        ("#!/bin/sh -E", None),
        ("#!/usr/bin/env", None),
        ("#!/usr/bin/env 'python", None),
        ("#!", None),
        ("print('-S')", None),
    ],
)
def test_the_options_of_a_script_that_is_executable(tmp_path, line, option):
    script = tmp_path / "train"
    script.write_text(f"{line}\nprint()\n")
    why = interpreter.unrecorded([str(script), "-S"])
    assert (why is None) == (option is None)
    assert option is None or f"python {option}" in why
