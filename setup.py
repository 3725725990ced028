from glob import glob

from setuptools import Extension, setup

setup(
    ext_modules=[
        # Optional: where there is no compiler, the pure-Python recorder takes its place.
        Extension(
            "unstall.benchmark._recorder",
            sources=sorted(glob("src/unstall/benchmark/native/*.c")),
            depends=["src/unstall/benchmark/native/recorder.h"],
            extra_compile_args=["-O2", "-std=c11", "-Wall", "-Wextra"],
            optional=True,
        )
    ]
)
