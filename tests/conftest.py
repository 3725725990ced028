"""For all tests."""

import signal


def pytest_configure(config):
    """A suite that a script starts in the background (``make test &``) is to ignore Ctrl-C, and so would, by heritage,
    every program that the tests start and interrupt: it is taken as it is at a terminal."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
