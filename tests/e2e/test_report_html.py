"""The HTML report in a real browser: it renders, it answers to mouse and keyboard, and nothing in it executes."""

import os
import re
import shutil
import sys

import numpy as np
import pages
import pytest

from unstall.report import html

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

_NAMED = """() => [...document.querySelectorAll("button, input, [tabindex], a")]
    .filter((one) => !(one.ariaLabel || one.textContent.trim() || one.labels?.length || one.getAttribute("aria-labelledby")))
    .map((one) => one.outerHTML)"""


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        sandbox = [] if os.getuid() else ["--no-sandbox"]
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=sandbox)
        yield running
        running.close()


@pytest.fixture
def show(browser, tmp_path):
    """Opens a page, and at the end of the test sees that it reported no error, asked for nothing, ran nothing."""
    opened = []

    def show(document, *, scheme="light", width=1280, height=900, quiet=True):
        path = tmp_path / "report.html"
        path.write_text(document, encoding="utf-8")
        page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": height})
        said, asked = [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.goto(path.as_uri())
        opened.append((page, said if quiet else [], asked))
        return page

    yield show
    for page, said, asked in opened:
        assert said == []
        assert all(url.startswith("file:") for url in asked) and len(set(asked)) == 1
        assert page.evaluate("window.hacked") is None
        page.close()


def everything(**more):
    return html.page(pages.archive(**more), pages.sliders(more.get("name", "decode")))


def pixels(page, chart):
    """How many colours a chart's canvas shows."""
    return page.evaluate(
        """(chart) => {
            const canvas = document.querySelector(`${chart} canvas`);
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            return new Set(new Uint32Array(data.buffer)).size;
        }""",
        chart,
    )


@pytest.mark.parametrize("scheme", ("light", "dark"))
def test_everything_is_drawn(show, scheme):
    page = show(everything(), scheme=scheme)
    expected = ["verdict", "culprit", "why", "step", "time", "distribution", "ceilings", "whatif", "experiments"]
    expected += ["remedies", "stacks", "machine", "findings", "details", "run"]
    assert page.evaluate("[...document.querySelectorAll('main > section')].map((one) => one.id)") == expected
    for chart in ("#steps-chart", "#distribution-chart", "#whatif-chart", "#machine-0"):
        assert pixels(page, chart) > 3
    assert page.locator("#flame-chart g.frame").count() >= 4
    assert page.get_by_text("GPU at work").is_visible()
    background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background)[:3])) > 380) == (scheme == "light")
    assert page.evaluate(_NAMED) == []


@pytest.mark.parametrize("width", (390, 1280))
def test_experiments_fit_and_are_told_in_full(show, width):
    page = show(everything(), width=width)
    section = page.locator("#experiments")
    assert section.locator("tbody tr").count() == 3 and section.locator(".dot").count() == 2
    told = section.inner_text()
    assert "elasticities sum to 0.97" in told and "Without a result" in told and "started 2 times" in told
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    spilled = """() => [...document.querySelectorAll(".bar > *, .whisker > .range")].filter((one) =>
        one.getBoundingClientRect().right > one.parentElement.getBoundingClientRect().right + 1).length"""
    assert page.evaluate(spilled) == 0


@pytest.mark.parametrize("text", pages.BREAKOUTS)
def test_hostile_strings_stay_text(show, text):
    page = show(everything(text=text, name=text))
    ours = page.evaluate("[...document.scripts].map((one) => one.id || one.type)")
    assert ours == ["data", "licences", ""]
    assert page.locator("img, iframe, object, embed, svg script").count() == 0
    assert "\x1b" not in page.content()
    page.locator("#steps-chart .u-over").hover()
    page.locator("#flame-chart g.frame").nth(1).hover()
    page.locator("#knob-0").press("ArrowRight")
    page.locator("#flame-search").fill(text.replace("\x1b", ""))
    for summary in page.locator("summary").all():
        summary.click()


def test_the_policy_forbids_scripts_and_requests(show):
    page = show(everything(), quiet=False)  # the refusal is in its console
    policy = page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    ran = page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.ran = 1";
            const violated = new Promise((done) => document.addEventListener("securitypolicyviolation", () => done(true)));
            document.body.append(script);
            return violated.then(() => window.ran === undefined);
        }"""
    )
    assert ran


@pytest.mark.parametrize("scheme", ("light", "dark"))
def test_hover_tells_the_step_and_a_drag_zooms(show, scheme):
    page = show(everything(), scheme=scheme)
    plot = page.locator("#steps-chart .u-over")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    tip = page.locator("#steps-chart .tip")

    def at(part):
        page.mouse.move(box["x"] + part * box["width"], box["y"] + 150)
        return int(re.search(r"step (\d+)", tip.inner_text())[1])

    assert 190 <= at(0.5) <= 210
    assert "data_wait" in tip.inner_text() and "60 %" in tip.inner_text()
    at(0.25)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 150, steps=5)
    page.mouse.up()
    assert 145 <= at(0.5) <= 155
    page.locator("[data-zoom=all]").click()
    assert 190 <= at(0.5) <= 210


def test_the_keyboard_moves_and_zooms(show):
    page = show(everything())
    chart = page.locator("#steps-chart")
    chart.focus()
    page.keyboard.press("ArrowRight")
    tip = chart.locator(".tip")
    first = tip.inner_text()
    page.keyboard.press("ArrowRight")
    assert tip.inner_text() != first
    page.keyboard.press("+")
    page.keyboard.press("+")
    page.keyboard.press("0")
    page.keyboard.press("Escape")
    assert tip.is_hidden()


def test_a_phase_can_be_hidden(show):
    page = show(everything())
    button = page.locator("[data-phase=data_wait]")
    before = pixels(page, "#steps-chart")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert pixels(page, "#steps-chart") != before


def test_a_million_steps_keep_the_slowest(show):
    durations = np.random.default_rng(0).gamma(20, 0.0005, 1_000_000)
    durations[654_321] = 7.89
    document = everything(durations=durations)
    assert len(document.encode()) < 1_500_000
    page = show(document)
    note = page.locator("#steps-note")
    assert "7.89 s" in note.inner_text()
    assert "A column is up to" in note.inner_text()
    page.locator("#outliers").check()
    assert "taller" not in note.inner_text()
    chart = page.locator("#steps-chart")
    chart.focus()
    for _ in range(12):
        page.keyboard.press("+")
    page.get_by_text("A column is up to 167 steps").wait_for()


def test_stacks_are_searched_and_opened_by_keyboard(show):
    page = show(everything())
    frames = page.locator("#flame-chart g.frame")
    assert "train.py" in frames.nth(1).get_attribute("aria-label")
    decode = page.locator("#flame-chart g.frame[name=decode]")
    narrow = decode.bounding_box()["width"]
    frames.first.focus()
    for key in ("Down", "Down", "Right", "Left", "Up", "Down", "Down"):
        page.keyboard.press(f"Arrow{key}")
    assert page.locator("#flame-details").inner_text().startswith("decode")
    page.keyboard.press("Enter")
    page.wait_for_function(
        "(old) => document.querySelector('g.frame[name=decode]').getBoundingClientRect().width > old", arg=narrow
    )
    page.locator("#flame-reset").click()
    page.locator("#flame-search").fill("DECO")
    page.get_by_text("67 % of the samples").wait_for()
    page.get_by_role("tab", name="loader workers").click()
    assert page.locator("#flame-chart g.frame[name=forward]").count() == 0


def test_sliders_look_up_predictions(show):
    page = show(everything())
    result = page.locator("#whatif-result")
    assert "as recorded" in result.inner_text()
    page.locator("#knob-0").press("ArrowRight")
    assert "40 steps/s" in result.inner_text() and "2.00×" in result.inner_text()
    page.locator("#knob-1").press("ArrowRight")
    assert "80 steps/s" in result.inner_text()
    assert page.locator("#knob-1").get_attribute("aria-valuetext") == "free"


def test_the_theme_is_chosen_and_remembered(show):
    page = show(everything(), scheme="dark")
    button = page.locator("#theme")
    button.click()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    button.click()
    button.click()
    assert page.evaluate("document.documentElement.dataset.theme") is None


@pytest.mark.parametrize("width", (320, 390, 768))
def test_nothing_sticks_out_on_a_phone(show, width):
    page = show(everything(), width=width, height=800)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_report_without_a_recording(show):
    page = show(html.page(pages.Archive(report=pages.report())))
    assert page.locator("canvas").count() == 0
    page.locator("#theme").click()
    assert page.get_by_role("heading", level=1).is_visible()


@pytest.mark.parametrize("name", ("aten::mm", pages.BREAKOUTS[1]))
def test_a_gpu_trace(show, name):
    page = show(html.page(pages.Archive(report=pages.report(kind="trace", trace=pages.trace(name), name=name))))
    assert pixels(page, "#device-0") > 3
    page.locator("#device-0 .u-over").hover()
    assert page.locator("#device-0 .tip").inner_text().splitlines()[:2] == ["step 1", "computing 21 ms"]
    assert page.get_by_text("1.4×").is_visible()


def test_the_inline_form_is_readable(show):
    shown = html.inline(pages.report(text=pages.BREAKOUTS[0]))
    page = show(f"<!doctype html><title>notebook</title><body>{shown}</body>")
    assert "window.hacked" in page.locator(".unstall code").first.inner_text() or page.locator(".unstall").is_visible()
    assert page.locator("script").count() == 0


def test_the_command_writes_a_page_of_a_kept_run(workspace, show):
    workspace.write("program.py", "from tiny import training\nfor step, loss in training(120):\n    pass\n")
    workspace.watched("program.py")
    result = workspace.start(
        [sys.executable, "-m", "unstall", "report", "last", "--html", "r.html", "--md", "r.md"]
    ).result()
    assert result.status == 0 and result.err.count("wrote") == 2
    page = show((workspace.folder / "r.html").read_text(encoding="utf-8"))
    assert page.locator("#steps-chart canvas").is_visible()
    assert (workspace.folder / "r.md").read_text().startswith("### unstall run")
