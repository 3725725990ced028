"""Pipelines with known times, for the tests of the model."""

import numpy as np

from unstall.model.function_shares import FunctionShares
from unstall.model.pipeline_model import Pipeline
from unstall.model.work import Layout

DECODE = ("photos", "Photos", "decode")
GETITEM = ("photos", "Photos", "__getitem__")
READ = ("photos", "read")
LOG = ("train", "log")


def parts():
    """Of the loader's samples, all under __getitem__, 60 in decode and 30 in read; of the callback's, 9 of 10 in log."""
    return FunctionShares(
        {
            "data": ((frozenset({GETITEM, DECODE}), 60), (frozenset({GETITEM, READ}), 30), (frozenset({GETITEM}), 10)),
            "callback": ((frozenset({LOG}), 90), (frozenset(), 10)),
        },
        own=frozenset({DECODE, GETITEM, READ, LOG}),
    )


def pipeline(service=0.02, wait=0.0, body=None, *, workers=1, cores=64.0, steps=50, **settings):
    """Every batch takes ``service`` on a core and ``wait`` on none; ``body``: seconds of each phase."""
    body = {"forward": 0.004, "backward": 0.006, "callback": 0.002} if body is None else body
    layout = {name: settings.pop(name) for name in list(settings) if name in Layout.__dataclass_fields__}
    settings = {"has_loader": True, "ship_s": 0.0, "take_s": 0.0, "function_shares": parts(), **settings}
    made = Pipeline(
        layout=Layout(cores, workers=workers, **layout),
        phases=tuple(body),
        compute=np.tile(list(body.values()), (steps, 1)),
        wait=np.zeros((steps, len(body))),
        service=np.tile([service, wait], (steps, 1)),
        **settings,
    )
    return made
