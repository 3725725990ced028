"""For all tests."""

import signal

import hypothesis
import pytest

# No example is told by its time, however a person starts the tests.
hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")
# For `make fuzz`: examples of its own every time.
hypothesis.settings.register_profile(
    "fuzz", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True
)


def pytest_configure(config):
    """A suite that is started in the background or with nohup ignores Ctrl-C, Ctrl-\\ and hang-ups.

    Every program that the tests start and signal would do so too, by heritage. A handler is not inherited.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGQUIT) == signal.SIG_IGN:
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda number, frame: None)


def pytest_collection_modifyitems(items):
    """What runs alone is looked for in tests/e2e only: collecting all of the tests once more takes its time."""
    lost = [item.nodeid for item in items if item.get_closest_marker("serial") and "e2e" not in item.path.parts]
    if lost:
        raise pytest.UsageError(f"`make test` runs serial tests of tests/e2e alone: {', '.join(lost)}")


@pytest.fixture(autouse=True, scope="session")
def _state(tmp_path_factory):
    """The runs that tests record are not kept among the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.delenv("UNSTALL_STATE", raising=False)
        yield
