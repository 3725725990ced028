"""Both recorders, each in a fresh state."""

from __future__ import annotations

import pytest
from recorders import Recorder, load, silence

from unstall.child import recording


@pytest.fixture(params=["native", "fallback"])
def recorder_name(request):
    return request.param


@pytest.fixture
def closed_recorder(recorder_name, tmp_path):
    api = load(recorder_name)
    silence(api)
    yield Recorder(api, tmp_path)
    silence(api)


@pytest.fixture
def recorder(closed_recorder):
    return closed_recorder.open()


@pytest.fixture
def recorded(tmp_path):
    """The recorder that the seams use, open."""
    silence(recording.native)
    yield Recorder(recording.native, tmp_path).open()
    silence(recording.native)
