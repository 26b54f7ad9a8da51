"""The built site in a real browser, for every test that looks at a page."""

import functools
import http.server
import os
import shutil
import threading

import pytest

from tests.notebooks import ROOT

SITE = ROOT / "_build" / "html"
BROWSERS = ["chromium", "chromium-browser", "google-chrome", "chrome"]
# The browser itself shall be silent on the network, too.
ARGUMENTS = [
    *("--disable-background-networking", "--disable-component-update"),
    *("--disable-gpu", "--disable-quic", "--disable-sync", "--no-first-run"),
]


NO_CHROMIUM = (
    "No Chromium or Chrome was found; "
    "install one, on Debian or Ubuntu with: apt install chromium"
)


def find_chromium():
    """Return the path of a browser, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def launch(playwright, path):
    # Chromium refuses to run in its sandbox as root.
    as_root = ["--no-sandbox"] if os.getuid() == 0 else []
    return playwright.chromium.launch(
        executable_path=path, args=ARGUMENTS + as_root
    )


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="session")
def site():
    """Serve the built site; return its address."""
    if not (SITE / "index.html").exists():
        pytest.fail("The site is not built; run: make site")
    handler = functools.partial(QuietHandler, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="session")
def browser():
    """Start Chromium; without one skip, or fail where CI is set."""
    path = find_chromium()
    if path is None:
        stop = pytest.fail if os.environ.get("CI") else pytest.skip
        stop(f"The site was not tested. {NO_CHROMIUM}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = launch(playwright, path)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser, site):
    """Return a function: address in the site -> page, loaded and typeset."""
    yield from visitor(browser, site)


@pytest.fixture
def visit_file(browser):
    """Return a function: address in the site -> page, opened as a file."""
    yield from visitor(browser, f"{SITE.as_uri()}/")


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


def load(page, address=None):
    """Go to an address, or load the page anew, and wait till it is whole."""
    if address is None:
        page.reload()
    else:
        page.goto(address)
    page.evaluate("document.fonts.ready.then(() => true)")
    page.wait_for_load_state("networkidle")


def unfold(page):
    """Open all that is folded, and lay out what is far from the reader."""
    page.evaluate(
        "document.querySelectorAll('details').forEach(d => d.open = true)"
    )
    page.add_style_tag(content="* { content-visibility: visible !important }")


def load_pictures(page):
    """Load the pictures that wait for the reader; fail if one is broken."""
    page.locator("img").evaluate_all("""all => {
        for (const image of all) image.loading = "eager";
        return Promise.all(all.map(image => image.decode()));
    }""")
