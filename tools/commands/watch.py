"""Serve the site, and build it and reload its pages whenever a file changes.

`make watch PORT=8000`. A page is served as it was built, with one script more,
which waits for the next build.
"""

import signal
import subprocess
import sys
import threading
from pathlib import Path

from watchfiles import watch

from tools import server
from tools.settings import BOOK, CONFIG, CONTENTS, HTML, ROOT

SETTINGS = [CONFIG, CONTENTS]
# A file of its own, as the pages let no script run that is not from a file.
SCRIPT = b"fetch('/next-build').then(() => location.reload(), () => {});"

# Also shown after a build that failed, which leaves no page.
MISSING = b"<body>This page is not built: see the terminal.</body>"


class Handler(server.Handler):
    """Serve the site; /next-build answers once the next build is done."""

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        if path.is_dir() or self.path.endswith("/"):
            path /= "index.html"
        if self.path == "/next-build":
            with self.server.built:
                self.server.built.wait()
            self.answer(b"", "text/plain")
        elif self.path == "/reload.js":
            self.answer(SCRIPT, "text/javascript")
        elif path.suffix == ".html":
            try:
                page = path.read_bytes()
            except OSError:
                page = MISSING
            tag = b'<script src="/reload.js"></script></body>'
            self.answer(page.replace(b"</body>", tag), "text/html")
        else:
            super().do_GET()

    def answer(self, body, kind):
        kind = f"{kind}; charset=utf-8"
        super().answer(body, kind, Cache_Control="no-store")


def build():
    """Build the site as `make site` does; say so if that fails."""
    command = ["make", "--no-print-directory", "--silent", "site"]
    if subprocess.run(command, cwd=ROOT).returncode:
        print("Mend what is named above; the next change builds anew.")


def belongs(_, path):
    """Tell whether a file that changed is one that the site is made of."""
    path = Path(path)
    return path in SETTINGS or (
        BOOK in path.parents and "__pycache__" not in path.parts
    )


def main(arguments):
    port = int(arguments[0]) if arguments else 8000
    try:
        site = server.start(Handler, HTML, port)
    except OSError as error:
        sys.exit(f"port {port}: {error.strerror}; run: make watch PORT=8001")
    site.built = threading.Condition()
    try:
        # Folders, as an editor that replaces a file ends the watch on it.
        folders = [ROOT, BOOK, *(p for p in BOOK.rglob("*") if p.is_dir())]
        options = {"rust_timeout": 500, "yield_on_timeout": True}
        changes = watch(
            *folders, watch_filter=belongs, recursive=False, **options
        )
        next(changes)  # none yet; from here on none is missed
        build()
        address = f"http://localhost:{site.server_port}"
        print(f"Read it at {address}; Ctrl-C ends.", flush=True)
        for _ in filter(None, changes):
            build()
            with site.built:
                site.built.notify_all()
    except KeyboardInterrupt:
        print("Ended.")


if __name__ == "__main__":
    # A shell that starts this in the background has it ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main(sys.argv[1:])
