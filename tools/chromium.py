"""Find, start and drive the browser that shows and prints the site."""

import os
import shutil
from importlib.metadata import version

NAMES = ["chromium", "chromium-browser", "google-chrome", "chrome"]
# The browser itself shall be silent on the network, too.
ARGUMENTS = [
    *("--disable-background-networking", "--disable-component-update"),
    *("--disable-gpu", "--disable-quic", "--disable-sync", "--no-first-run"),
]
MISSING = (
    "No Chromium or Chrome was found; "
    "install one, on Debian or Ubuntu with: apt install chromium"
)
# Debian brings Chromium and requirements.txt Playwright, each at its own time.
UNFIT = (
    "{path} does not work with Playwright {version}. Playwright 1.65.2 works "
    "with Chromium 156; `{path} --version` says which one this is. Install "
    "that Chromium, or raise Playwright in requirements.txt. ({error})"
)


class UnfitError(Exception):
    """The browser cannot be driven; the message says what to do about it."""


EVERYTHING = """
* { content-visibility: visible !important }
.sd-tab-content { display: block !important }
"""
UNFOLD = """([isOpen, style]) => {
    for (const fold of document.querySelectorAll("details"))
        fold.open = isOpen;
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(style);
    document.adoptedStyleSheets = [sheet];
}"""


def find_chromium():
    """Return the path of a browser, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def arguments():
    """Return what a browser is started with."""
    # Chromium refuses to run in its sandbox as root.
    return ARGUMENTS + (["--no-sandbox"] if os.getuid() == 0 else [])


def launch(playwright, path):
    """Start a browser; return Playwright's handle of it.

    Raises UnfitError if it does not start or cannot open a page.
    """
    from playwright.sync_api import Error  # here, as most need no browser

    try:
        browser = playwright.chromium.launch(
            executable_path=path, args=arguments()
        )
        browser.new_page().close()
    except Error as error:
        first = str(error).strip().partition("\n")[0]
        raise UnfitError(
            UNFIT.format(path=path, version=version("playwright"), error=first)
        ) from None
    return browser


def load(page, address=None):
    """Go to an address, or load the page anew, and wait till it is whole.

    Its scripts have run by then; what they fetch later is not waited for.
    """
    if address is None:
        page.reload()
    else:
        page.goto(address)
    page.evaluate("document.fonts.ready.then(() => true)")


def wait_for_layout(page):
    """Wait till scripts that watch the layout have seen the present one."""
    page.evaluate("""() => new Promise(done =>
        requestAnimationFrame(() => requestAnimationFrame(done)))""")


def unfold(page, is_open=True):
    """Open all that is folded, behind a tab or too far away to be laid out.

    With False, put it back.
    """
    page.evaluate(UNFOLD, [is_open, EVERYTHING if is_open else ""])


def load_pictures(page):
    """Load the pictures that wait for the reader; fail if one is broken."""
    page.locator("img").evaluate_all("""all => {
        for (const image of all) image.loading = "eager";
        return Promise.all(all.map(image => image.decode()));
    }""")
