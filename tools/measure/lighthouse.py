"""Judge the pages by Lighthouse, beside those of a default Jupyter Book.

A part of `make bench`. Both sites are built anew from the same notebooks. The
landing page and the longest chapter are loaded from localhost, compressed,
with the throttling applied rather than simulated: its scores vary less. With
several rounds the medians count. A page of ours that is worse than allowed
exits with 1.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from tools import chromium
from tools.server import CompressingHandler, serving
from tools.settings import BOOK, ROOT, chapters, contents

LIGHTHOUSE = "lighthouse@12.8.2"  # the last that runs on Node 18 and 20
NO_NODE = (
    "Lighthouse was not run: it needs Node.js 18 or newer with npx; "
    "install it, on Debian or Ubuntu with: apt install npm"
)
DEVICES = {"desktop": 99, "mobile": 95}  # and the performance at least
CATEGORIES = ["performance", "accessibility", "best-practices", "seo"]
BYTES, HOSTS = 600_000, 1
DEFAULT = "title: The same\nexecute: {execute_notebooks: 'off'}\n"


def build(source, out):
    """Build a book; return the folder of its pages."""
    program = Path(sys.executable).with_name("jupyter-book")
    result = subprocess.run(
        [program, "build", "--path-output", out, source],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if result.returncode:
        sys.exit(f"{result.stdout}\nNothing to measure: the above failed.")
    return out / "_build" / "html"


def default_book(folder):
    """Lay out the same pages with the settings of a new Jupyter Book."""
    for path in [*BOOK.glob("*.ipynb"), *BOOK.glob("*.md")]:
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.copy(ROOT / "_toc.yml", folder)
    shutil.copytree(BOOK / "_static", folder / "book" / "_static")
    (folder / "_config.yml").write_text(DEFAULT, "utf-8")
    return folder


def judge(address, device, browser):
    """Return Lighthouse's scores of a page, its bytes, requests and hosts."""
    flags = "--headless=new --disable-gpu"
    if os.getuid() == 0:
        flags += " --no-sandbox"  # which Chromium demands of root
    command = [
        *("npx", "--yes", LIGHTHOUSE, address, "--quiet", "--output=json"),
        *("--throttling-method=devtools", f"--chrome-flags={flags}"),
        *(["--preset=desktop"] if device == "desktop" else []),
    ]
    environment = os.environ | {"CHROME_PATH": browser}
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True
    )
    if result.returncode:
        sys.exit(f"{result.stderr}\nLighthouse failed: see above.")
    report = json.loads(result.stdout)
    requests = [
        request
        for request in report["audits"]["network-requests"]["details"]["items"]
        if request["url"].startswith("http")
    ]
    scores = [report["categories"][name]["score"] for name in CATEGORIES]
    return [
        *(round(100 * score) for score in scores),
        sum(request["transferSize"] for request in requests),
        len(requests),
        len({urlsplit(request["url"]).netloc for request in requests}),
    ]


def faults(device, row):
    """Return what is worse than it may be."""
    performance, *others, size, _, hosts = row
    if performance < DEVICES[device]:
        yield f"performance {performance} < {DEVICES[device]}"
    if min(others) < 100:
        yield "a category below 100"
    if size > BYTES:
        yield f"{size} > {BYTES} bytes"
    if hosts > HOSTS:
        yield f"{hosts} hosts"


def main(rounds):
    """Print a table; return what is worse than it may be."""
    browser = chromium.find_chromium()
    if not shutil.which("npx") or not browser:
        print(chromium.MISSING if shutil.which("npx") else NO_NODE)
        return []
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        ours = build(ROOT, folder / "ours")
        default = build(default_book(folder / "book"), folder / "default")
        pages = [ours / f"{name}.html" for name in chapters()]
        longest = max(pages, key=lambda path: path.stat().st_size)
        pages = [f"{contents()[0]}.html", f"book/{longest.name}"]
        print(
            f"\n{'site':8}{'page':22}{'device':8} perf  acc best  SEO     kB"
        )
        worse = list(judge_all("ours", ours, pages, rounds, browser))
        # The default book is there to be compared with, not to be good.
        list(judge_all("default", default, pages, rounds, browser))
    return worse


def judge_all(name, site, pages, rounds, browser):
    """Print a line for each page and device; yield what is too bad."""
    with serving(site, CompressingHandler) as base:
        for page, device in product(pages, DEVICES):
            rows = [judge(base + page, device, browser) for _ in range(rounds)]
            row = [round(median(values)) for values in zip(*rows, strict=True)]
            show(name, page, device, row)
            for fault in faults(device, row):
                yield f"{page}, {device}: {fault}"


def show(name, page, device, row):
    page = page.removeprefix("book/").removesuffix(".html")
    *scores, size, requests, hosts = row
    numbers = "".join(f"{score:5}" for score in scores)
    print(
        f"{name:8}{page:22}{device:8}{numbers}{size / 1000:7.0f}"
        f"  {requests} requests to {hosts} host{'s' if hosts > 1 else ''}",
        flush=True,
    )


if __name__ == "__main__":
    if found := main(int(sys.argv[1]) if sys.argv[1:] else 1):
        sys.exit("\n".join(["Worse than allowed:", *found]))
