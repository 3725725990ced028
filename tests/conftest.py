"""For all tests."""

import signal


def pytest_configure(config):
    """A suite that is started in the background or with nohup ignores Ctrl-C and hang-ups.

    Every program that the tests start and signal would do so too, by heritage. A handler is not inherited.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda number, frame: None)
