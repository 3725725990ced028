import sys
from glob import glob

from setuptools import Extension, setup

FLAGS = [
    *("-std=c11", "-Wall", "-Wextra", "-fvisibility=hidden", "-DNDEBUG"),  # NDEBUG: no assert of Python.h
    *("-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"),
]


def extension(name: str, folder: str, *flags: str) -> Extension:
    """All of a folder's C. Optional: without a compiler, Python does the same more slowly."""
    return Extension(
        name,
        sources=sorted(glob(f"{folder}/*.c")),
        depends=sorted(glob(f"{folder}/*.h")),
        extra_compile_args=[*FLAGS, *flags],
        optional=True,
    )


def extensions() -> list[Extension]:
    """What is built for this Python."""
    scan = extension("unstall.trace._scan", "src/unstall/trace/native", "-O3")
    if "t" in sys.abiflags:  # free-threaded: the recorder relies on the GIL
        return [scan]
    return [extension("unstall.child._recorder", "src/unstall/child/native", "-O2"), scan]


setup(ext_modules=extensions())
