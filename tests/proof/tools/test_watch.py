"""`make watch`: a change is built, served and announced, and Ctrl-C ends it.

The site is built by a false make, which copies one page.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from urllib.parse import urlsplit

import pytest

from tools.settings import ROOT

MAKE = """#!/bin/sh
mkdir -p _build/html
grep -q broken book/index.md && rm -rf _build/html && exit 2
{ cat book/index.md; echo '</body>'; } > _build/html/index.html
"""
WATCH = [sys.executable, "-u", "-m", "tools.commands.watch"]


@pytest.fixture
def copy(tmp_path):
    """Return a folder with a book of one page and a make that copies it."""
    for name in ("book", "bin"):
        (tmp_path / name).mkdir()
    leave = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tools", tmp_path / "tools", ignore=leave)
    for name in ("_config.yml", "_toc.yml"):
        (tmp_path / name).touch()
    (tmp_path / "book" / "index.md").write_text("first")
    make = tmp_path / "bin" / "make"
    make.write_text(MAKE)
    make.chmod(0o755)
    return tmp_path


@pytest.fixture
def watcher(copy):
    """Start the watcher as from a script's background, deaf to Ctrl-C.

    Returns its process and its address.
    """
    process = subprocess.Popen(
        ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *WATCH, "0"],
        cwd=copy,
        env={**os.environ, "PATH": f"{copy}/bin:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    address = re.search(r"http://\S+(?=;)", process.stdout.readline())[0]
    yield process, address
    process.kill()
    process.wait()


def get(address):
    with urllib.request.urlopen(address, timeout=30) as answer:
        return answer.read().decode()


def change(copy, address, text):
    """Replace the page, as editors do; return once a build is announced."""
    waits = threading.Thread(target=get, args=[f"{address}/next-build"])
    waits.start()
    while waits.is_alive():  # the request may come after the build
        (copy / "new").write_text(text)
        (copy / "new").replace(copy / "book" / "index.md")
        waits.join(1)


def test_a_change_is_built_served_and_announced(copy, watcher):
    _, address = watcher
    assert "first" in get(address)
    for text in ("second", "third"):
        change(copy, address, text)
        page = get(f"{address}/index.html")
        assert text in page and "first" not in page
    (script,) = re.findall(r'<script src="(.+?)"', page)
    assert "next-build" in get(address + script)


def test_a_build_that_fails_does_not_end_it(copy, watcher):
    process, address = watcher
    change(copy, address, "broken")
    assert "Mend what is named above" in process.stdout.readline()
    page = get(address)  # which waits for the next build, too
    assert "not built" in page and "/reload.js" in page
    change(copy, address, "mended")
    assert "mended" in get(address)


def test_ctrl_c_ends_it_also_while_a_page_waits(watcher):
    process, address = watcher
    place = urlsplit(address)
    with socket.create_connection((place.hostname, place.port)) as waits:
        waits.sendall(b"GET /next-build HTTP/1.0\r\n\r\n")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 0
    assert process.stdout.read() == "Ended.\n"


def test_a_port_that_is_taken_is_named(copy, watcher):
    port = watcher[1].rpartition(":")[2]
    result = subprocess.run(
        [*WATCH, port], cwd=copy, capture_output=True, text=True
    )
    assert result.returncode == 1
    assert f"port {port}" in result.stderr
    assert "make watch PORT=8001" in result.stderr
