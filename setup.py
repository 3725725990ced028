from setuptools import Extension, setup

setup(
    ext_modules=[
        # Optional: where there is no compiler, the pure-Python recorder takes its place.
        Extension("unstall.benchmark._recorder", ["src/unstall/benchmark/_recorder.c"], optional=True)
    ]
)
