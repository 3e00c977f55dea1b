"""Every built page, in a real browser: nothing fails, nothing is fetched from
elsewhere, nothing sticks out, every picture is described."""

import pytest

from tools import notebooks, toc

WIDTHS = (390, 768, 1280)
PAGES = [f"{entry}.html" for entry in toc.entries()]

# What sticks out: the page itself, not boxes that scroll inside it.
OVERHANG = "document.scrollingElement.scrollWidth - window.innerWidth"
# Sphinx writes a picture's file name where nobody wrote a description.
UNDESCRIBED = """
[...document.images]
  .filter(i => !i.alt.trim() || /\\.(png|svg|jpe?g)$/i.test(i.alt.trim()))
  .map(i => i.src.slice(0, 80))
"""
BROKEN = """
[...document.images].filter(i => !i.naturalWidth).map(i => i.src.slice(0, 80))
"""


class Visit:
    """A page in the browser, and all that went wrong while it was opened."""

    def __init__(self, browser, address: str, name: str, **settings: object) -> None:
        self.page = browser.new_page(**settings)
        self.console: list[str] = []
        self.failed: list[str] = []
        self.elsewhere: list[str] = []
        self._address = address
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.console.append(str(error)))
        self.page.on("request", self._on_request)
        self.page.on("requestfailed", lambda request: self.failed.append(request.url))
        self.page.on("response", self._on_response)
        self.page.goto(f"{address}/{name}", wait_until="networkidle")

    def _on_console(self, message) -> None:
        if message.type in ("error", "warning"):
            self.console.append(message.text)

    def _on_request(self, request) -> None:
        if not request.url.startswith((self._address, "data:", "blob:")):
            self.elsewhere.append(request.url)

    def _on_response(self, response) -> None:
        if response.status >= 400:
            self.failed.append(f"{response.status} {response.url}")


@pytest.fixture
def visit(browser, address):
    """A function that opens a page of the book; it is closed after the test."""
    visits: list[Visit] = []

    def open_page(name: str, **settings: object) -> Visit:
        visits.append(Visit(browser, address, name, **settings))
        return visits[-1]

    yield open_page
    for item in visits:
        item.page.close()


@pytest.mark.parametrize("name", PAGES)
def test_page(visit, name):
    found = visit(name)
    assert found.console == []
    assert found.failed == []
    assert found.elsewhere == []
    assert found.page.evaluate(UNDESCRIBED) == []
    assert found.page.evaluate(BROKEN) == []
    for width in WIDTHS:
        found.page.set_viewport_size({"width": width, "height": 900})
        assert found.page.evaluate(OVERHANG) <= 0, f"sticks out at {width} pixels"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_figure_keeps_its_white_ground(visit, scheme):
    chapters = [n for n in toc.entries() if (notebooks.ROOT / f"{n}.ipynb").is_file()]
    found = visit(f"{chapters[0]}.html", color_scheme=scheme)
    assert found.page.evaluate("document.documentElement.dataset.theme") == scheme
    figures = found.page.locator("figure.book-figure img")
    assert figures.count() > 0
    colour = figures.first.evaluate("i => getComputedStyle(i).backgroundColor")
    assert colour == "rgb(255, 255, 255)"


def test_a_solution_is_folded_and_opens(visit):
    found = visit("chapters/dataset.html")
    solution = found.page.get_by_text("@title Solution")
    assert not solution.first.is_visible()
    found.page.get_by_text("Show the solution").first.click()
    assert solution.first.is_visible()


def test_the_search_finds_a_chapter(visit):
    found = visit("search.html?q=worker")
    found.page.wait_for_selector("#search-results li a")
    assert found.console == []
    assert found.elsewhere == []
