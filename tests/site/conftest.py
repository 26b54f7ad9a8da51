"""The built site in a real browser, for every test that looks at a page."""

import os

import pytest

from tools import chromium
from tools.chromium import load
from tools.server import serving
from tools.settings import BOOK, HTML, ROOT, config


@pytest.fixture(scope="session")
def site():
    """Serve the built site; return its address."""
    if not (HTML / "index.html").exists():
        pytest.fail("The site is not built; run: make site")
    with serving(HTML) as address:
        yield address


@pytest.fixture(scope="session")
def repository():
    """Return the repository's address, or "" if the site was built without."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BOOK / "_ext")
        import site_address
    return site_address.repository(config()["repository"]["url"], ROOT)


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


@pytest.fixture
def visit(browser, site):
    """Return a function: address in the site -> page, loaded and typeset."""
    yield from visitor(browser, site)


@pytest.fixture
def visit_file(browser):
    """Return a function: address in the site -> page, opened as a file."""
    yield from visitor(browser, f"{HTML.as_uri()}/")


def visitor(browser, site):
    """Yield a function that opens pages; fail if one of them had a fault."""
    contexts, faults = [], []

    def check_request(request):
        if not request.url.startswith((site, "data:", "blob:")):
            faults.append(f"asks another host: {request.url}")

    def check_response(response):
        if response.status >= 400:
            faults.append(f"{response.status}: {response.url}")

    def check_message(message):
        if message.type == "error":
            faults.append(f"console: {message.text}")

    def visit(address, width=1280, **options):
        size = {"width": width, "height": 800}
        contexts.append(browser.new_context(viewport=size, **options))
        page = contexts[-1].new_page()
        page.on("request", check_request)
        page.on("response", check_response)
        page.on("console", check_message)
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        load(page, site + address)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert not faults, "\n".join(faults)
