from glob import glob

from setuptools import Extension, setup

setup(
    ext_modules=[
        # Optional: where there is no compiler, the pure-Python recorder takes its place.
        Extension(
            "unstall.child._recorder",
            sources=sorted(glob("src/unstall/child/native/*.c")),
            depends=["src/unstall/child/native/recorder.h"],
            extra_compile_args=["-O2", "-std=c11", "-Wall", "-Wextra"],
            optional=True,
        ),
        # Optional too: unstall.child.sandbox.audit does the same in Python, at a cost to the program.
        Extension(
            "unstall.child.sandbox._audit",
            sources=["src/unstall/child/sandbox/native/audit.c"],
            extra_compile_args=["-O2", "-std=c11", "-Wall", "-Wextra"],
            optional=True,
        ),
        # Optional too: unstall.trace.readers.events does the same in Python, slowly.
        Extension(
            "unstall.trace._scan",
            sources=sorted(glob("src/unstall/trace/native/*.c")),
            depends=sorted(glob("src/unstall/trace/native/*.h")),
            extra_compile_args=["-O3", "-std=c11", "-Wall", "-Wextra", "-fvisibility=hidden"],
            optional=True,
        ),
    ]
)
