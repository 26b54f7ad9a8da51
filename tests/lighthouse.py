"""Judge the pages by Lighthouse, beside those of a default Jupyter Book.

`python -m tests.lighthouse [ROUNDS]`, or as a part of `make bench`. Both sites
are built anew from the same notebooks. The landing page and the longest
chapter are loaded from localhost, compressed, with the throttling applied
rather than simulated: its scores vary less. With several rounds the medians
count. A page of ours that is worse than allowed exits with 1.
"""

import gzip
import json
import mimetypes
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from tests.browser import NO_CHROMIUM, find_chromium
from tests.notebooks import BOOK, ROOT

LIGHTHOUSE = "lighthouse@12.8.2"  # the last that runs on Node 18 and 20
NO_NODE = (
    "Lighthouse was not run: it needs Node.js 18 or newer with npx; "
    "install it, on Debian or Ubuntu with: apt install npm"
)
NOTEBOOKS = sorted(BOOK.glob("*.ipynb"))
DEVICES = {"desktop": 99, "mobile": 90}  # and the performance at least
CATEGORIES = ["performance", "accessibility", "best-practices", "seo"]
BYTES, HOSTS = 600_000, 1
COMPRESSED = ("text/", "application/javascript", "application/json")
DEFAULT = "title: The same\nexecute: {execute_notebooks: 'off'}\n"


class Handler(SimpleHTTPRequestHandler):
    """Serve files compressed, as most hosts do."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            return self.send_error(404)
        body = path.read_bytes()
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        self.send_response(200)
        if kind.startswith(COMPRESSED) or path.suffix == ".svg":
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", len(body))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


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
    for path in [*NOTEBOOKS, *BOOK.glob("*.md")]:
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.copy(ROOT / "_toc.yml", folder)
    shutil.copytree(BOOK / "_static", folder / "book" / "_static")
    (folder / "_config.yml").write_text(DEFAULT, "utf-8")
    return folder


def judge(address, device, chromium):
    """Return Lighthouse's scores of a page, its bytes, requests and hosts."""
    flags = "--headless=new --disable-gpu"
    if os.getuid() == 0:
        flags += " --no-sandbox"  # which Chromium demands of root
    command = [
        *("npx", "--yes", LIGHTHOUSE, address, "--quiet", "--output=json"),
        *("--throttling-method=devtools", f"--chrome-flags={flags}"),
        *(["--preset=desktop"] if device == "desktop" else []),
    ]
    environment = os.environ | {"CHROME_PATH": chromium}
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
    chromium = find_chromium()
    if not shutil.which("npx") or not chromium:
        print(NO_CHROMIUM if shutil.which("npx") else NO_NODE)
        return []
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        ours = build(ROOT, folder / "ours")
        default = build(default_book(folder / "book"), folder / "default")
        chapters = [ours / "book" / f"{path.stem}.html" for path in NOTEBOOKS]
        longest = max(chapters, key=lambda path: path.stat().st_size)
        pages = ["book/index.html", f"book/{longest.name}"]
        print(
            f"\n{'site':8}{'page':22}{'device':8} perf  acc best  SEO     kB"
        )
        worse = list(compare("ours", ours, pages, rounds, chromium))
        # The default book is there to be compared with, not to be good.
        list(compare("default", default, pages, rounds, chromium))
    return worse


def compare(name, site, pages, rounds, chromium):
    """Print a line for each page and device; yield what is too bad."""
    handler = partial(Handler, directory=site)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}/"
        for page, device in product(pages, DEVICES):
            rows = [
                judge(base + page, device, chromium) for _ in range(rounds)
            ]
            row = [round(median(values)) for values in zip(*rows, strict=True)]
            show(name, page, device, row)
            for fault in faults(device, row):
                yield f"{page}, {device}: {fault}"
        server.shutdown()


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
