"""The review's page in a real browser, as a person uses it."""

import numpy as np
import pytest
from PIL import Image

from tests.browsing import ARGUMENTS, BROWSER, serving
from tests.scan_folders import make_scan

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine; apt-get install chromium")

PATIENCE = 30_000  # milliseconds, for a busy machine; what goes well takes none of it
NUM_PHOTOS, CLASSES = 24, ("cat", "cow", "dog", "<b>horse<b>")

NAMELESS = """() => [...document.querySelectorAll('button, select, img, progress')]
    .filter((one) => !(one.textContent.trim() || one.ariaLabel || one.closest('label') || one.alt === ''))
    .map((one) => one.outerHTML)"""
COLOURS = """(names) => {
    const probe = document.querySelector('h1');
    const colour = (name) => {
        probe.style.color = `var(--${name})`;
        return getComputedStyle(probe).color.match(/\\d+/g).map(Number);
    };
    return Object.fromEntries(names.map((name) => [name, colour(name)]));
}"""
PAIRS = (
    ("ink", "paper"), ("muted", "paper"), ("muted", "surface"), ("accent", "surface"), ("on-accent", "accent"),
    ("keep", "keep-wash"), ("accent", "relabel-wash"), ("drop", "drop-wash"),
)  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    playwright.expect.set_options(timeout=PATIENCE)
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture
def photos(tmp_path):
    """Six samples of each class, in alphabetical order; the flagged ones look like the next class."""
    for number in range(NUM_PHOTOS):
        folder = tmp_path / "photos" / CLASSES[number % 4]
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (20, 20), (number * 10, 90, 90)).save(folder / f"{number:02}.png")
    return make_scan(tmp_path / "photos", tmp_path / "scan", flagged=[6, 7, 12, 13, 18, 19])


@pytest.fixture
def texts(tmp_path):
    rows = [f'"<img src=x onerror=alert(1)> sample number {n}, {"ab"[n % 2] * 3}",{"ab"[n % 2]}' for n in range(12)]
    (tmp_path / "t.csv").write_text("\n".join(["text,label", *rows]))
    return make_scan(tmp_path / "t.csv", tmp_path / "scan", flagged=[2, 3, 5])


@pytest.fixture
def open_page(browser):
    """A tab of its own, on which nothing may go wrong unnoticed."""
    contexts, wrong = [], []

    def opened(server, address=None):
        context = browser.new_context()
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: wrong.append(f"a dialog: {dialog.message}"))
        page.goto(address or server.address)
        page.wait_for_selector("main[aria-busy=false]")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


def at(page, index):
    playwright.expect(page.locator(".one")).to_have_attribute("data-index", str(index))


def progress(page, text):
    playwright.expect(page.locator("#progress-text")).to_contain_text(text)


def latest(folder):
    log = folder.decisions()
    found = {index: (one.action, one.label) for index, one in log.latest().items()}
    log.close()
    return found


def test_deciding_with_the_keyboard(photos, open_page):
    with serving(photos.path) as server:
        page = open_page(server)
        assert "token" not in page.url
        at(page, 6)
        progress(page, "0 of 6 decided")
        page.keyboard.press("k")
        at(page, 7)
        page.keyboard.press("s")  # as suggested: the next class
        at(page, 12)
        page.keyboard.press("d")
        at(page, 13)
        page.keyboard.press("n")
        progress(page, "4 of 6 decided")
        progress(page, "75 % were wrong")
        assert latest(photos) == {
            6: ("keep", None), 7: ("relabel", "cow"), 12: ("drop", None), 13: ("drop", None),
        }  # fmt: skip
        page.keyboard.press("u")
        at(page, 13)
        page.keyboard.press("Control+z")
        at(page, 12)
        progress(page, "2 of 6 decided")
        assert set(latest(photos)) == {6, 7}
        page.keyboard.press("ArrowLeft")
        at(page, 7)
        playwright.expect(page.locator(".standing")).to_contain_text("Relabeled as cow")
        page.reload()
        progress(page, "2 of 6 decided")
        at(page, 12)  # what is decided is not shown again
        page.keyboard.press("u")  # what was done before the reload can be taken back after it
        progress(page, "1 of 6 decided")
        page.keyboard.press("Space")
        playwright.expect(page.locator("dialog.larger img")).to_be_visible()
        page.keyboard.press("Space")
        playwright.expect(page.locator("dialog")).to_have_count(0)
        page.keyboard.press("?")
        playwright.expect(page.locator("dialog.help")).to_contain_text("keep the label")


def test_relabeling_by_typing(photos, open_page):
    with serving(photos.path) as server:
        page = open_page(server)
        at(page, 6)
        page.keyboard.press("r")
        options = page.locator("#labels [role=option]")
        playwright.expect(options.first).to_contain_text("suggested, 75 %")
        playwright.expect(options.last).to_contain_text("Neither fits")
        page.keyboard.type("do")
        playwright.expect(options).to_have_text(["dog"])
        page.keyboard.press("Enter")
        at(page, 7)
        playwright.expect(page.locator("dialog")).to_have_count(0)  # a key pressed while it closes would go to it
        page.keyboard.press("r")
        playwright.expect(options.last).to_contain_text("Neither fits")  # it is open
        page.keyboard.type("HORSE")
        playwright.expect(options).to_have_text(["<b>horse<b>"])  # a name is a text
        page.keyboard.press("Escape")
        playwright.expect(page.locator("dialog")).to_have_count(0)
        page.keyboard.press("r")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")  # the last: neither fits
        progress(page, "2 of 6 decided")
        assert latest(photos) == {6: ("relabel", "dog"), 7: ("drop", None)}


def test_filters_and_many_at_once(photos, open_page):
    with serving(photos.path) as server:
        page = open_page(server)
        page.select_option("select[name=label]", "cow")
        at(page, 12)
        page.select_option("select[name=label]", "")
        page.keyboard.press("g")
        cards = page.locator(".card")
        playwright.expect(cards).to_have_count(6)
        page.keyboard.press("x")
        page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("Shift+ArrowRight")
        playwright.expect(page.locator(".bulk")).to_contain_text("3 samples selected")
        page.keyboard.press("d")
        progress(page, "3 of 6 decided")
        playwright.expect(page.locator(".card[data-action=drop]")).to_have_count(3)
        page.keyboard.press("u")
        progress(page, "0 of 6 decided")
        page.keyboard.press("a")
        page.keyboard.press("s")
        progress(page, "6 of 6 decided")
        names, suggested = photos.verdicts().class_names, photos.verdicts().suggested_labels
        assert latest(photos) == {index: ("relabel", names[suggested[index]]) for index in (6, 7, 12, 13, 18, 19)}
        page.select_option("select[name=standing]", "decided")
        playwright.expect(cards).to_have_count(6)
        page.select_option("select[name=standing]", "keep")
        playwright.expect(page.locator(".ending")).to_contain_text("All flagged samples are decided")
        playwright.expect(page.locator(".ending code")).to_contain_text("undermargin clean")


def test_two_tabs_do_not_overwrite_each_other_silently(photos, open_page):
    with serving(photos.path) as server:
        one, two = open_page(server), open_page(server)
        at(two, 6)
        one.keyboard.press("k")
        progress(one, "1 of 6 decided")
        two.keyboard.press("d")
        conflict = two.locator("dialog.conflict")
        playwright.expect(conflict).to_contain_text("Already decided elsewhere")
        assert latest(photos) == {6: ("keep", None)}
        conflict.get_by_text("Keep the other decision").click()
        playwright.expect(conflict).to_have_count(0)
        two.keyboard.press("ArrowLeft")
        at(two, 6)
        playwright.expect(two.locator(".standing")).to_contain_text("Kept")
        one.keyboard.press("s")  # the next one, 7
        progress(one, "2 of 6 decided")
        two.keyboard.press("ArrowRight")
        at(two, 7)
        two.keyboard.press("d")
        conflict.get_by_text("Use mine: dropped").click()
        playwright.expect(conflict).to_have_count(0)
        two.keyboard.press("ArrowLeft")
        playwright.expect(two.locator(".standing")).to_contain_text("Dropped")
        assert latest(photos)[7] == ("drop", None)


def test_what_was_confirmed_survives_a_killed_server(photos, open_page):
    with serving(photos.path) as server:
        page = open_page(server)
        page.keyboard.press("k")
        page.keyboard.press("d")
        progress(page, "2 of 6 decided")
        server.pause()
        with page.expect_request("**/api/decisions"):
            page.keyboard.press("s")
        server.kill()  # while this one is on its way
        playwright.expect(page.locator("#trouble")).to_contain_text("does not respond")
        page.keyboard.press("ArrowLeft")
        playwright.expect(page.locator(".standing")).to_contain_text("flagged")  # and not shown as made
    with serving(photos.path) as again:
        page = open_page(again)
        progress(page, "2 of 6 decided")
        at(page, 12)
    assert latest(photos) == {6: ("keep", None), 7: ("drop", None)}


def test_texts_are_texts(texts, open_page):
    with serving(texts.path) as server:
        page = open_page(server)
        at(page, 2)
        playwright.expect(page.locator(".stage .prose")).to_have_text(
            "<img src=x onerror=alert(1)> sample number 2, aaa"
        )
        playwright.expect(page.locator(".neighbours")).to_have_count(2)
        page.keyboard.press("s")
        at(page, 3)
        page.keyboard.press("r")
        page.keyboard.type("b")
        page.keyboard.press("Enter")  # as it is: kept
        progress(page, "2 of 3 decided")
        page.keyboard.press("g")
        playwright.expect(page.locator(".card .excerpt").first).to_contain_text("<img src=x")
        assert latest(texts) == {2: ("relabel", "b"), 3: ("keep", None)}


def contrast(one, other):
    """WCAG 2: of two colours as (red, green, blue)."""
    lights = []
    for colour in (one, other):
        share = np.array(colour) / 255
        linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
        lights.append(linear @ [0.2126, 0.7152, 0.0722])
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def test_the_page_has_names_for_everything_can_be_walked_with_tab_and_read(texts, open_page):
    with serving(texts.path) as server:
        page = open_page(server)
        nameless = page.evaluate(NAMELESS)
        assert nameless == []
        reached = []
        for _ in range(22):
            page.keyboard.press("Tab")
            reached.append(
                page.evaluate(
                    "document.activeElement.id || document.activeElement.name || document.activeElement.className"
                )
            )
        assert reached[:8] == ["view-one", "view-grid", "help", "verdict", "label", "suggested", "standing", "order"]
        assert any("suggest" in one for one in reached[8:])
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            colours = page.evaluate(COLOURS, sorted({name for pair in PAIRS for name in pair}))
            weak = [pair for pair in PAIRS if contrast(*(colours[name] for name in pair)) < 4.5]
            assert weak == [], scheme
