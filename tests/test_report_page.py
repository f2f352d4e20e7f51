"""The page in a real browser, without a network."""

import pytest
from playwright.sync_api import sync_playwright

from tests.browsing import ARGUMENTS, BROWSER
from tests.scan_folders import finish, photos, texts
from undermargin.report import report

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine (apt-get install chromium)")
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def show(browser):
    """Open a page offline; whatever it says on the console, asks from a network or pops up fails the test."""
    contexts, complaints = [], []

    def open_page(path, width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, offline=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: complaints.append(request.url) if request.url.startswith("http") else None)
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    path = tmp_path_factory.mktemp("images")
    return report(finish(path / "scan", photos(path / "photos"), wrong=range(0, 60, 2)))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts")
    return report(finish(path / "scan", texts(path / "d.csv"), wrong=range(25)), by=["city", "age"])


def test_the_pictures_are_there(show, images):
    page = show(images)
    assert page.locator("h1").inner_text() == "50.0% of 60 labels look wrong"
    widths = page.eval_on_selector_all(".pictures img", "images => images.map(image => image.naturalWidth)")
    assert len(widths) == 30
    assert min(widths) > 0
    assert page.get_by_alt_text("dog/02.png, labeled dog").count() == 1


def test_pages_turn_with_buttons_and_with_the_keyboard(show, images):
    page = show(images)
    shown = page.locator(".pictures li:visible")
    said = page.locator(".pager span")
    assert (shown.count(), said.inner_text()) == (24, "1 to 24 of 30")
    page.get_by_label("Next page").click()
    assert (shown.count(), said.inner_text()) == (6, "25 to 30 of 30")
    assert page.get_by_label("Next page").is_disabled()
    page.get_by_label("Previous page").focus()
    page.keyboard.press("Enter")
    assert said.inner_text() == "1 to 24 of 30"
    page.get_by_label("Next page").focus()
    page.keyboard.press("ArrowRight")
    assert said.inner_text() == "25 to 30 of 30"


@pytest.mark.parametrize(("system", "other"), [("light", "dark"), ("dark", "light")])
def test_the_button_switches_from_the_systems_colours_to_the_others(show, images, system, other):
    page = show(images, color_scheme=system)
    brightness = "() => Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]) > 128"
    assert page.evaluate(brightness) == (system == "light")
    page.get_by_label(f"Switch to {other} colors").focus()
    page.keyboard.press("Space")
    assert page.evaluate(brightness) == (other == "light")
    assert page.get_by_label(f"Switch to {system} colors").is_visible()


def test_the_first_key_leads_past_the_navigation(show, images):
    page = show(images)
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.id") == "content"


def test_a_class_that_is_called_script_is_only_text(show, hostile):
    page = show(hostile)  # a dialog would fail it
    assert page.locator("script").count() == 1
    assert page.locator(".texts b", has_text=HOSTILE).count() > 0
    assert page.locator(".texts blockquote").first.inner_text().startswith("<b>text</b> number")
    assert page.locator("blockquote b").count() == 0


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out_of_the_screen(show, images, hostile, width):
    for path in (images, hostile):
        page = show(path, width=width)
        assert page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0


CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = rgb(getComputedStyle(one).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255];
  };
  const own = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  return [...document.querySelectorAll("main *, .bar *, footer *")]
    .filter((element) => own(element) && !element.disabled && element.checkVisibility() && !element.closest("svg"))
    .map((element) => {
      const [front, back] = [light(rgb(getComputedStyle(element).color)), light(behind(element))];
      return [(Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05), element.textContent.trim().slice(0, 40)];
    }).filter(([ratio]) => ratio < 4.5);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_stands_out_from_what_is_behind_it(show, images, hostile, scheme):
    for path in (images, hostile):
        assert show(path, color_scheme=scheme).evaluate(CONTRAST) == []


def test_it_prints_without_buttons(show, images):
    page = show(images, color_scheme="dark")
    page.emulate_media(media="print")
    assert not page.get_by_label("Next page").is_visible()
    assert not page.locator(".bar").is_visible()
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf()[:5] == b"%PDF-"


def test_tables_and_charts_have_names_for_those_who_do_not_see_them(show, hostile):
    page = show(hostile)
    assert page.get_by_role("img", name="Histogram of the scores").count() == 1
    assert [text.strip() for text in page.locator("table.groups caption").all_inner_texts()] == [
        "By label",
        "By city",
        "By age",
    ]
    assert page.locator("table th:not([scope])").count() == 0
    assert page.locator("img:not([alt])").count() == 0
