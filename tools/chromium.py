"""Find, start and drive the browser that shows and prints the site."""

import os
import shutil

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
    """Start a browser; return Playwright's handle of it."""
    return playwright.chromium.launch(executable_path=path, args=arguments())


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
