"""A small program of the user's for findings to blame."""

from __future__ import annotations

import pytest
from factory import LAYOUTS, Source


@pytest.fixture(params=LAYOUTS)
def code(tmp_path, request):
    return Source(
        tmp_path / "train.py",
        """
        def fetch(path):
            return open(path).read()  # read

        def download(url):
            return session.get(url)  # get

        def pad(rows):
            return max(rows)  # pad

        def suppress(boxes):
            return boxes  # suppress

        def main():
            for batch in loader:  # ask
                out = model(batch)  # model
                loss.backward()  # backward
                optimizer.step()  # optimizer
                suppress(out)  # call suppress
        """,
        request.param,
    )
