"""The built site in a real browser, for every test that looks at a page.

A new window costs five times as much as another page in the same one. So each
process has one tab: `look` shows a page to all tests that only look at it,
`visit` loads it anew for a test that does more.
A test fails if a page asks another host, misses a file or raises an error.
"""

import os
from functools import cache

import pytest

from tools import chromium
from tools.notebooks import Notebook
from tools.server import serving
from tools.settings import HTML, ROOT, config, contents

SCREEN = {
    "media": "screen",
    "color_scheme": "light",
    "reduced_motion": "no-preference",
    "forced_colors": "none",
}
PAGES = {*contents(), "search", "genindex"}


def pytest_itemcollected(item):
    """Keep the tests of one page in one process, which loads it once."""
    parameters = getattr(item, "callspec", None)
    values = parameters.params.values() if parameters else ()
    if item.get_closest_marker("xdist_group") is None:
        for page in PAGES.intersection(map(str, values)):
            item.add_marker(pytest.mark.xdist_group(page))


def pytest_collection_modifyitems(items):
    """Let what shares a process, or a page, follow one another in any case."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group").args)


@pytest.fixture(scope="session")
def site():
    """Serve the built site; return its address."""
    if not (HTML / "index.html").exists():
        pytest.fail("The site is not built; run: make site")
    with serving(HTML) as address:
        yield address


@pytest.fixture(scope="session")
def notebook():
    """Return a function: a chapter's name, 'book/masks' -> its Notebook."""
    return cache(lambda name: Notebook.read(ROOT / f"{name}.ipynb"))


@pytest.fixture(scope="session")
def repository():
    """Return the repository's address, or "" if the site was built without."""
    address = config()["repository"]["url"]
    return "" if "/OWNER/" in address else address


@pytest.fixture(scope="session")
def browser():
    """Start Chromium; without one skip, or fail where CI is set."""
    path = chromium.find_chromium()
    if path is None:
        stop = pytest.fail if os.environ.get("CI") else pytest.skip
        stop(f"The site was not tested. {chromium.MISSING}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = chromium.launch(playwright, path)
        yield started
        started.close()


class Tab:
    """A tab of the browser, in which a process shows page after page."""

    def __init__(self, browser, site, **options):
        self.site, self.faults = site, []
        self.shown = self.setting = self.is_unfolded = None
        self.page = browser.new_context(**options).new_page()
        self.page.on("request", self.check_request)
        self.page.on("response", self.check_response)
        self.page.on("console", self.check_message)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))

    def check_request(self, request):
        if not request.url.startswith((self.site, "data:", "blob:")):
            self.faults.append(f"asks another host: {request.url}")

    def check_response(self, response):
        if response.status >= 400:
            self.faults.append(f"{response.status}: {response.url}")

    def check_message(self, message):
        if message.type == "error":
            where = message.location["url"]
            self.faults.append(f"console: {message.text} {where}")

    def set(self, width, media):
        """Make the window as wide, and the system such, as is asked for."""
        if self.setting != (width, media):
            self.page.set_viewport_size({"width": width, "height": 800})
            self.page.emulate_media(**SCREEN | media)
            self.setting = width, media

    def empty(self, width=1280, **media):
        """Return an empty page, which belongs to no site."""
        self.shown, self.is_unfolded = None, False
        self.setting = None  # a test may have made the window narrower
        self.set(width, media)
        if self.page.url.startswith(self.site):
            self.page.evaluate("localStorage.clear(), sessionStorage.clear()")
        self.page.goto("about:blank")
        return self.page

    def visit(self, name, rest="", width=1280, **media):
        """Load a page, and return it, as if for the first time."""
        # Else an address that differs only by its end would be no new page.
        self.empty(width, **media)
        chromium.load(self.page, f"{self.site}{name}.html{rest}")
        return self.page

    def look(self, name, unfolded=False, width=1280, **media):
        """Return a page, which is loaded once for all that look at it."""
        if self.shown != name:
            self.visit(name, "", width, **media)
            self.shown = name
        self.set(width, media)
        if self.is_unfolded != unfolded:
            chromium.unfold(self.page, unfolded)
            self.is_unfolded = unfolded
        chromium.wait_for_layout(self.page)
        return self.page

    def report(self):
        """Fail if a page had a fault since the last report."""
        self.page.evaluate("true")  # what it says arrives before its answer
        found, self.faults[:] = "\n".join(self.faults), []
        assert not found, found


@pytest.fixture(scope="session")
def tab(browser, site):
    """Return the tab that shows the site."""
    return Tab(
        browser, site, permissions=["clipboard-read", "clipboard-write"]
    )


@pytest.fixture(scope="session")
def file_tab(browser):
    """Return the tab that shows the site's files."""
    return Tab(browser, f"{HTML.as_uri()}/")


@pytest.fixture(scope="session")
def scriptless_tab(browser, site):
    """Return the tab that shows the site to those who let no script run."""
    return Tab(browser, site, java_script_enabled=False)


@pytest.fixture
def look(tab):
    """Return a function: page's name -> the page, to be looked at only.

    It takes the window's width, the system's settings, and unfolded=True to
    open all folds.
    """
    yield tab.look
    tab.report()


@pytest.fixture
def visit(tab):
    """Return a function: page's name, rest of its address -> a new page."""
    yield tab.visit
    tab.report()


@pytest.fixture
def visit_file(file_tab):
    """Return a function: page's name -> a new page, opened as a file."""
    yield file_tab.visit
    file_tab.report()


@pytest.fixture
def visit_without_scripts(scriptless_tab):
    """Return a function: page's name -> a new page, without its scripts."""
    yield scriptless_tab.visit
    scriptless_tab.report()


@pytest.fixture
def empty_page(tab):
    """Return an empty page of no site; fail if it asks for anything."""
    yield tab.empty()
    tab.report()
