"""What goes through the standard streams, and streams that are not there."""

from __future__ import annotations

from .case import Case, programs

OUTPUT = programs(
    "output",
    {
        "every byte": "import sys\nsys.stdout.buffer.write(bytes(range(256)) * 3)",
        "every byte to stderr": "import sys\nsys.stderr.buffer.write(bytes(range(256)))",
        "a megabyte": "import sys\nsys.stdout.write('0123456789abcdef' * 65536)",
        "no end of line": "print('no end', end='')",
        "carriage returns": "for n in range(5):\n    print(f'\\r{n}', end='', flush=True)",
        "escape sequences": "print('\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07')",
        "by descriptor": "import os\nos.write(1, b'one')\nos.write(2, b'two')",
        "mixed": "import sys\nfor n in range(50):\n    print(n, file=(sys.stdout, sys.stderr)[n % 2])",
        "from threads": "import threading\nlock = threading.Lock()\ndef say(n):\n    with lock:\n        print(n % 1)\nts = [threading.Thread(target=say, args=(n,)) for n in range(20)]\n[t.start() for t in ts]\n[t.join() for t in ts]",
        "from a child": "import subprocess\nsubprocess.run(['sh', '-c', 'echo out; echo err >&2'])",
        "from a fork without flush": "import os\nprint('twice')\npid = os.fork()\nif pid:\n    os.wait()",
        "redirected": "import os\nfd = os.open('elsewhere', os.O_CREAT | os.O_WRONLY)\nos.dup2(fd, 1)\nprint('to the file')",
        "replaced": "import io, sys\nsys.stdout = io.StringIO()\nprint('swallowed')\nsys.__stdout__.write(sys.stdout.getvalue().upper())",
        "detached": "import sys\nraw = sys.stdout.detach()\nraw.write(b'raw')",
        "closed by itself": "import sys\nsys.stdout.close()",
        "closed descriptor": "import os\nos.close(1)\nprint('lost')",
        "another encoding": "import sys\nsys.stdout.reconfigure(encoding='latin-1')\nprint('é')",
        "what cannot be encoded": "import sys\nsys.stdout.reconfigure(encoding='ascii')\nprint('é')",
        "surrogates": "print('\\udc80')",
        "not blocking": "import os\nprint(os.get_blocking(0), os.get_blocking(1), os.get_blocking(2))",
        "display hook": "import sys\nsys.displayhook([1, None])\nsys.displayhook(None)",
        "logging": "import logging\nlogging.basicConfig(level='DEBUG', format='%(name)s %(levelname)s %(message)s')\nlogging.getLogger('mine').debug('x')\nprint(sorted(logging.root.manager.loggerDict))",
        "the last resort of logging": "import logging\nlogging.getLogger('a').warning('careful')",
        "help": "import math\nhelp(math.gcd)",
        "doctest": "import doctest\nprint(doctest.run_docstring_examples('>>> 1\\n2\\n', {}))",
        "what is left in the buffer": "import sys\nsys.stdout.write('left')\nsys.stdout.flush()\nsys.stdout.write(' over')",
    },
)
INPUT = [
    Case("input: all of it", "import sys\nprint(repr(sys.stdin.buffer.read()))", stdin=bytes(range(256))),
    Case("input: lines", "for line in iter(input, 'end'):\n    print(line[::-1])", stdin=b"one\ntwo\nend\nleft\n"),
    Case("input: none", "print(repr(open(0, 'rb').read()))"),
    Case("input: past the end", "input()\ninput()", stdin=b"only one\n"),
    Case("input: by a child", "import subprocess\nsubprocess.run(['cat'])", stdin=b"for the child\n"),
    Case("input: a part by each", "import os, subprocess\nprint(os.read(0, 4), flush=True)\nsubprocess.run(['cat'])", stdin=b"mineyours"),
    Case("input: of another encoding", "print(ascii(input()))", stdin="žluť\n".encode("iso-8859-2")),
]  # fmt: skip
REDIRECTED = [
    Case(f"streams: {shell}", source, shell=shell)
    for shell in (
        "2>&-",
        ">&-",
        "<&-",
        "<&- >&- 2>&-",
        ">/dev/full",
        "2>/dev/full",
        ">out.txt",
    )
    for source in ("import sys\nprint('out')\nprint('err', file=sys.stderr)\n",)
]
ENVIRONMENT = [
    Case(f"environment: {' '.join(environment) or 'none'}", source, environment=environment)
    for source in ("import sys\nprint(sys.flags, sys.stdout.encoding, sys.stdout.errors)\nprint('ž' if sys.stdout.encoding == 'utf-8' else 'z')\n",)
    for environment in (
        {"PYTHONUNBUFFERED": "1"}, {"PYTHONIOENCODING": "latin-1:replace"}, {"PYTHONUTF8": "1"}, {"PYTHONOPTIMIZE": "2"},
        {"PYTHONWARNINGS": "error::UserWarning"}, {"PYTHONHASHSEED": "3"}, {"LC_ALL": "C"}, {"PYTHONDEVMODE": "1"},
        {"PYTHONFAULTHANDLER": "1"}, {"PYTHONNOUSERSITE": "1"}, {"PYTHONSAFEPATH": "1"}, {"PYTHONINSPECT": ""},
        {"COLUMNS": "33", "NO_COLOR": "1"}, {"PYTHONPATH": "lib"}, {"PYTHONDONTWRITEBYTECODE": ""}, {"TMPDIR": "."},
    )
]  # fmt: skip
OPTIONS = [
    Case(f"options: python {' '.join(options)}", "import sys\nprint(sys.flags, sys.argv, sys._xoptions, sys.warnoptions)\nassert __debug__, 'on'\n", options=options)
    for options in (
        ("-u",), ("-O",), ("-OO",), ("-B",), ("-W", "error"), ("-X", "dev"), ("-X", "utf8"), ("-b",), ("-q",), ("-s",),
        ("-X", "mine=1"), ("-P",), ("-I",), ("-E",), ("-S",), ("-d",), ("-x",), ("-bb", "-W", "ignore"),
    )
]  # fmt: skip
ARGUMENTS = [
    Case(f"arguments: {words!r}", "import sys\nprint(ascii(sys.argv))\n", words=words)
    for words in (
        ("",), ("--help",), ("--", "-x"), ("--steps", "3"), ("--json", "theirs.json"), ("-h",), ("a b", "ž"), ("--version",),
        ("$HOME", "*", "~"), ("\n", "\t"), ("-",), ("--budget=1",), ("--no-sampling",), ("x" * 5000,),
    )
]  # fmt: skip

CASES = [*OUTPUT, *INPUT, *REDIRECTED, *ENVIRONMENT, *OPTIONS, *ARGUMENTS]
