"""The HTML report of a long run: how large, how long to make, how quickly it zooms in Chromium.

    python bench/page.py [--steps 1000000]

Prints one line a figure. A redraw is from the key press to the end of the frame in which the chart is drawn anew.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "e2e"))
import pages

from unstall.report import html

_ZOOMS = 40
_REDRAW = """async (key) => {
    const chart = document.querySelector("#steps-chart");
    const began = performance.now();
    chart.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return performance.now() - began;
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000_000)
    steps = parser.parse_args().steps
    archive = pages.archive(durations=np.random.default_rng(0).gamma(20, 0.0005, steps))
    began = time.perf_counter()
    document = html.page(archive, pages.sliders())
    print(f"{steps:,} steps: {len(document.encode()) / 1e6:.2f} MB, made in {time.perf_counter() - began:.2f} s")
    print(f"a report alone: {len(html.page(pages.Archive(report=pages.report())).encode()) / 1e6:.2f} MB")
    print(f"in a notebook: {len(html.inline(pages.report()).encode()) / 1e3:.0f} kB")
    times = redraws(document)
    print(f"zoom, {len(times)} redraws: median {statistics.median(times):.0f} ms, slowest {max(times):.0f} ms")


def redraws(document: str) -> list[float]:
    """Milliseconds of each redraw while zooming in and out."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "report.html"
        path.write_text(document, encoding="utf-8")
        sandbox = [] if os.getuid() else ["--no-sandbox"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=sandbox)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(path.as_uri())
        keys = ("+" * 8 + "-" * 8) * (_ZOOMS // 16 + 1)
        return [page.evaluate(_REDRAW, key) for key in keys[:_ZOOMS]]


if __name__ == "__main__":
    main()
