"""A chapter in one framework runs whole in JupyterLab, weekly."""

import subprocess
import sys
import time

import nbformat
import pytest

from tools import chromium
from tools.settings import BOOK
from tools.sheets.single import single

CHAPTER = "attention"
RUN = """async () => {
    const panel = jupyterapp.shell.currentWidget;
    await panel.context.ready;
    await panel.sessionContext.ready;
    await jupyterapp.commands.execute("notebook:run-all-cells");
    return [...panel.content.model.cells].filter(c => c.type == "code").map(
        cell => [cell.executionCount, ...cell.outputs.toJSON()]); }"""
OPEN = """window.jupyterapp
    && jupyterapp.shell.currentWidget?.content?.model?.cells?.length"""


@pytest.fixture
def lab(tmp_path, pytestconfig):
    """Serve JupyterLab in an empty folder; return its address."""
    if not pytestconfig.getoption("all_sheets"):
        pytest.skip("runs with --all-sheets")
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser"]
    command += ["--allow-root", "--expose-app-in-browser", "--LabApp.token="]
    said = tmp_path / "said.txt"
    with said.open("w") as log:
        server = subprocess.Popen(command, cwd=tmp_path, stderr=log)
        try:
            for _ in range(60):
                time.sleep(1)
                for line in said.read_text("utf-8").split():
                    if line.startswith("http://127.0.0.1:"):
                        yield line.removesuffix("/lab")
                        return
            pytest.fail(said.read_text("utf-8"))
        finally:
            server.terminate()
            server.wait()


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
def test_all_cells_run_without_red(lab, tmp_path, framework):
    from playwright.sync_api import sync_playwright

    notebook = single(BOOK / f"{CHAPTER}.ipynb", framework)
    nbformat.write(notebook, tmp_path / "chapter.ipynb")
    with sync_playwright() as playwright:
        browser = chromium.launch(playwright, chromium.find_chromium())
        page = browser.new_page()
        page.set_default_timeout(300_000)
        page.goto(f"{lab}/lab/tree/chapter.ipynb")
        page.wait_for_function(OPEN)
        cells = page.evaluate(RUN)
        collapsed = page.locator(".jp-mod-collapsed").count()
        browser.close()
    assert [count for count, *_ in cells] == [*range(1, len(cells) + 1)]
    shown = [out for _, *outputs in cells for out in outputs]
    red = [
        out
        for out in shown
        if out["output_type"] == "error" or out.get("name") == "stderr"
    ]
    assert shown and not red
    assert collapsed > 5
