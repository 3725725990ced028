"""Ways to end: exit codes, exceptions, signals, and what Python does on the way out."""

from __future__ import annotations

import signal

from .case import Case, programs

CODES = ("0", "1", "2", "3", "42", "120", "127", "128", "130", "137", "143", "255", "256", "-1", "None", "True", "2.5")
WORDS = ("'a message'", "('a', 'tuple')", "object", "b'bytes'", "'two\\nlines'", "''")

EXITS = [Case(f"exit: sys.exit({code})", f"import sys\nsys.exit({code})\n") for code in (*CODES, *WORDS)]
HARD_EXITS = [
    Case(f"exit: os._exit({code})", f"import os, sys\nprint('said', flush=True)\nos._exit({code})\n")
    for code in ("0", "1", "77", "255")
]

EXCEPTIONS = programs(
    "exception",
    {
        "plain": "raise ValueError('wrong')",
        "without a message": "raise RuntimeError",
        "with a cause": "try:\n    1 / 0\nexcept ArithmeticError as error:\n    raise OSError('later') from error",
        "in the handling of another": "try:\n    {}['key']\nexcept KeyError:\n    undefined",
        "without its context": "try:\n    1 / 0\nexcept ArithmeticError:\n    raise OSError('later') from None",
        "interrupt": "raise KeyboardInterrupt",
        "interrupt with words": "raise KeyboardInterrupt('by hand')",
        "of the base class": "class Mine(BaseException):\n    pass\nraise Mine('mine')",
        "exit by another name": "class Leave(SystemExit):\n    pass\nraise Leave(9)",
        "exit with a code that is an object": "error = SystemExit()\nerror.code = {'a': 1}\nraise error",
        "generator exit": "raise GeneratorExit",
        "too deep": "import sys\nsys.setrecursionlimit(120)\ndef down(n):\n    return down(n + 1)\ndown(0)",
        "memory": "raise MemoryError",
        "of many lines": "raise ValueError('one\\ntwo\\n\\nthree')",
        "that cannot be printed": "class Odd(Exception):\n    def __str__(self):\n        raise TypeError('no words')\nraise Odd",
        "with a message of another alphabet": "raise ValueError('žluťoučký kůň 日本')",
        "in a nested function": "def outer():\n    def inner():\n        raise LookupError('deep')\n    inner()\nouter()",
        "in a lambda": "(lambda: 1 / 0)()",
        "in a comprehension": "[1 / (3 - n) for n in range(9)]",
        "in a generator": "def steps():\n    yield 1\n    raise OSError('in the middle')\nfor _ in steps():\n    pass",
        "in an import": "import broken",
        "in a class": "class Body:\n    raise TypeError('while it is made')",
        "in a descriptor": "class D:\n    def __set_name__(self, owner, name):\n        raise ValueError(name)\nclass C:\n    x = D()",
        "in a context manager": "import contextlib\n@contextlib.contextmanager\ndef held():\n    yield\n    raise OSError('at the end')\nwith held():\n    pass",
        "in exec": "exec('x = 1\\nraise ValueError(x)')",
        "in compile": "compile('def', 'given.py', 'exec')",
        "in eval": "eval('1 +')",
        "of a missing module": "import a_module_that_is_nowhere",
        "of a missing name": "from os import nothing_of_that_name",
        "assertion": "assert 1 == 2, 'not equal'",
        "in a thread": "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='worker')\nt.start()\nt.join()\nprint('on')",
        "exit in a thread": "import sys, threading\nt = threading.Thread(target=sys.exit, args=(5,))\nt.start()\nt.join()\nprint('on')",
        "in atexit": "import atexit\natexit.register(lambda: 1 / 0)\natexit.register(print, 'first')",
        "exit in atexit": "import atexit, sys\natexit.register(sys.exit, 6)",
        "in the hook": "import sys\ndef hook(*words):\n    raise OSError('in the hook')\nsys.excepthook = hook\n1 / 0",
        "a hook of its own": "import sys\nsys.excepthook = lambda kind, value, trace: print('caught', kind.__name__)\n1 / 0",
        "a hook that is gone": "import sys\ndel sys.excepthook\n1 / 0",
        "in __del__": "class Gone:\n    def __del__(self):\n        raise OSError('too late')\nGone()\nprint('on')",
        "in a weak reference's call": "import weakref\nclass C:\n    pass\nc = C()\nr = weakref.ref(c, lambda _: 1 / 0)\ndel c\nprint('on')",
        "unraisable hook": "import sys\nsys.unraisablehook = lambda u: print('unraisable', u.exc_type.__name__)\nclass Gone:\n    def __del__(self):\n        1 / 0\nGone()",
        "in a trace function": "import sys\ndef trace(*words):\n    raise OSError('traced')\nsys.settrace(trace)\ndef f():\n    pass\nf()",
        "in an async function": "import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    raise OSError('awaited')\nasyncio.run(main())",
        "a task that nobody awaits": "import asyncio\nasync def fail():\n    raise OSError('alone')\nasync def main():\n    asyncio.create_task(fail(), name='t')\n    await asyncio.sleep(0.01)\nasyncio.run(main())",
        "a coroutine that nobody awaits": "async def never():\n    pass\nnever()\nprint('on')",
        "in a signal handler": "import os, signal\ndef handle(number, frame):\n    raise OSError('handled')\nsignal.signal(signal.SIGUSR1, handle)\nos.kill(os.getpid(), signal.SIGUSR1)\nwhile True:\n    pass",
        "shown by traceback": "import traceback\ntry:\n    1 / 0\nexcept ArithmeticError:\n    traceback.print_exc()\n    traceback.print_stack()",
        "shown by logging": "import logging\ntry:\n    1 / 0\nexcept ArithmeticError:\n    logging.exception('failed')",
        "shown by faulthandler": "import faulthandler\nfaulthandler.dump_traceback()",
        "a warning as an error": "import warnings\nwarnings.simplefilter('error')\nwarnings.warn('old', DeprecationWarning)",
        "warnings": "import warnings\nfor _ in range(3):\n    warnings.warn('old')\nwarnings.warn('other', UserWarning, stacklevel=2)",
    },
    files={"broken.py": "value = 1\nraise ImportError('not today')\n"},
)
LATER = [
    Case("exception: a group", "raise ExceptionGroup('both', [ValueError(1), OSError(2)])"),
    Case("exception: with a note", "error = ValueError('wrong')\nerror.add_note('look here')\nraise error"),
    Case("exception: bad syntax", "def broken(:\n    pass\n"),
    Case("exception: bad indentation", "def broken():\npass\n"),
    Case("exception: a tab among spaces", "if True:\n        x = 1\n\ty = 2\n"),
    Case("exception: an empty script", ""),
    Case("exception: a script without an end of line", "print('done')"),
    Case("exception: a null in the script", "print('a')\n\0\n"),
    Case("exception: an encoding that there is not", "# -*- coding: nonsense -*-\nprint(1)\n"),
]

_DEADLY = [
    "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1", "SIGSEGV",
    "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGIO",
    "SIGPWR", "SIGSYS", "SIGRTMIN", "SIGRTMAX",
]  # fmt: skip
_TO_ITSELF = """
import os, resource, signal
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print('before', flush=True)
{reset}os.kill(os.getpid(), signal.{name})
print('after', flush=True)
"""
SIGNALS = [
    Case(f"signal: {name} {how}", _TO_ITSELF.format(name=name, reset=reset.format(name=name)))
    for name in _DEADLY
    if hasattr(signal, name)
    for how, reset in (("as it is", ""), ("by default", "signal.signal(signal.{name}, signal.SIG_DFL)\n"))
    if how == "as it is" or name not in ("SIGKILL", "SIGSTKFLT")
]
DEATHS = programs(
    "death",
    {
        "abort": "import os\nos.abort()",
        "a null pointer": "import ctypes\nctypes.string_at(0)",
        "a null pointer with faulthandler": "import ctypes, faulthandler\nfaulthandler.enable()\nctypes.string_at(0)",
        "no time left": "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True:\n    pass",
        "an alarm": "import signal, time\nsignal.alarm(1)\ntime.sleep(20)",
        "a file that is too large": "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\nopen('big', 'wb').write(bytes(5000))",
        "replaced by another program": "import os\nos.execvp('sh', ['sh', '-c', 'echo replaced; exit 3'])",
        "replaced by python": "import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'raise SystemExit(4)'])",
        "a child that is killed": "import os, signal\npid = os.fork()\nif not pid:\n    os.kill(os.getpid(), signal.SIGKILL)\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
        "a thread that never ends": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nprint('on')",
        "a thread that ends later": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.3), print('late'))).start()\nprint('on')",
        "in the order of atexit": "import atexit\nfor n in range(4):\n    atexit.register(print, n)\nclass Last:\n    def __del__(self):\n        print('deleted')\nkeep = Last()",
    },
)  # fmt: skip

CASES = [*EXITS, *HARD_EXITS, *EXCEPTIONS, *LATER, *SIGNALS, *DEATHS]
