"""A chapter in one framework, opened in JupyterLab, in a real browser.

It runs with `--all-sheets`, each week.
"""

import subprocess
import sys
import urllib.request

import nbformat
import pytest

from tools import chromium
from tools.notebooks import is_aside
from tools.settings import ROOT
from tools.sheets.single import single

LAB = [
    *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
    *(
        "--port=8917",
        "--ServerApp.port_retries=0",
        "--IdentityProvider.token=",
    ),
    "--ServerApp.log_level=ERROR",
]
ADDRESS = "http://127.0.0.1:8917/lab/tree/masks.ipynb?reset"
# The notebook draws the cells that are near alone.
SEEN = """async () => {
    const box = document.querySelector(".jp-WindowedPanel-outer");
    const seen = new Set();
    for (let top = 0; top < box.scrollHeight; top += 400) {
        box.scrollTop = top;
        await new Promise(done => setTimeout(done, 60));
        for (const heading of box.querySelectorAll(":is(h2, h3)"))
            if (heading.checkVisibility())
                seen.add(heading.textContent.replace("¶", ""));
    }
    return [...seen];
}"""


@pytest.fixture
def lab(tmp_path):
    """Start JupyterLab in a folder with *Masks* in PyTorch."""
    notebook = single(ROOT / "book" / "masks.ipynb", "pytorch")
    nbformat.write(notebook, tmp_path / "masks.ipynb")
    with subprocess.Popen(LAB, cwd=tmp_path) as process:
        for _ in range(60):
            try:
                urllib.request.urlopen(ADDRESS, timeout=5)
                break
            except OSError:
                assert process.poll() is None
        yield notebook
        process.terminate()


def test_side_roads_are_collapsed_and_all_runs_without_red(lab, pytestconfig):
    if not pytestconfig.getoption("all_sheets"):
        pytest.skip("runs with --all-sheets")
    from playwright.sync_api import sync_playwright

    titles = [c.source.split("\n")[0].strip("# ") for c in lab.cells]
    asides = [is_aside(c) for c in lab.cells]
    with sync_playwright() as playwright:
        browser = chromium.launch(playwright, chromium.find_chromium())
        page = browser.new_page(viewport={"width": 1366, "height": 768})
        page.goto(ADDRESS)
        page.locator(".jp-Cell").first.wait_for(timeout=90_000)
        seen = page.evaluate(SEEN)
        assert {t for t, a in zip(titles, asides, strict=True) if a} <= {*seen}
        after = titles.index("The other mistakes") + 1
        assert titles[after] not in seen and "Summary" in seen
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_text("Run All Cells", exact=True).click()
        page.wait_for_function(
            "() => document.title && document.querySelector("
            "'.jp-Notebook-ExecutionIndicator[data-status=idle]')",
            timeout=300_000,
        )
        red = page.locator("[data-mime-type$=stderr], [data-mime-type$=error]")
        assert red.count() == 0
        browser.close()
