"""Judge the pages by Lighthouse.

A part of `make bench`. The site is built anew. The landing page and the
longest chapter are loaded from localhost, compressed, with the throttling
applied rather than simulated: its scores vary less. With several rounds the
medians count. A page below a limit is named.
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
from tools.settings import ROOT, chapters, contents

LIGHTHOUSE = "lighthouse@12.8.2"  # the last that runs on Node 18 and 20
NO_NODE = (
    "Lighthouse was not run: it needs Node.js 18 or newer with npx; "
    "install it, on Debian or Ubuntu with: apt install npm"
)
# A device -> the performance that we aim at, and the limit.
DEVICES = {"desktop": (99, 95), "mobile": (95, 75)}
CATEGORIES = ["performance", "accessibility", "best-practices", "seo"]
BYTES, HOSTS = 600_000, 1


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
    if performance < DEVICES[device][1]:
        yield f"performance {performance} < {DEVICES[device][1]}"
    if min(others) < 100:
        yield "a category below 100"
    if size > BYTES:
        yield f"{size} > {BYTES} bytes"
    if hosts > HOSTS:
        yield f"{hosts} hosts"


def main(rounds):
    """Print a table; return what is below a limit."""
    browser = chromium.find_chromium()
    if not shutil.which("npx") or not browser:
        print(chromium.MISSING if shutil.which("npx") else NO_NODE)
        return []
    with tempfile.TemporaryDirectory() as folder:
        site = build(ROOT, Path(folder))
        pages = [site / f"{name}.html" for name in chapters()]
        longest = max(pages, key=lambda path: path.stat().st_size)
        pages = [f"{contents()[0]}.html", f"book/{longest.name}"]
        print(
            "\npage                  device   perf  aim  acc best  SEO     kB"
        )
        with serving(site, CompressingHandler) as base:
            return [
                fault
                for page, device in product(pages, DEVICES)
                for fault in judge_page(base, page, device, rounds, browser)
            ]


def judge_page(base, page, device, rounds, browser):
    """Print a line for a page; yield what is below a limit."""
    rows = [judge(base + page, device, browser) for _ in range(rounds)]
    row = [round(median(values)) for values in zip(*rows, strict=True)]
    performance, *others, size, requests, hosts = row
    others = "".join(f"{score:5}" for score in others)
    name = page.removeprefix("book/").removesuffix(".html")
    print(
        f"{name:22}{device:8}{performance:5}{DEVICES[device][0]:5}{others}"
        f"{size / 1000:7.0f}  {requests} requests to {hosts} hosts",
        flush=True,
    )
    for fault in faults(device, row):
        yield f"{page}, {device}: {fault}"


if __name__ == "__main__":
    if found := main(int(sys.argv[1]) if sys.argv[1:] else 1):
        sys.exit("\n".join(["Below the limit:", *found]))
