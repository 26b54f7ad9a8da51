"""The Makefile's help, the repository's address, and the pins."""

import re
import shutil
import subprocess
import sys

from tools.settings import ROOT


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_help_names_every_target():
    phony = re.search(r"\.PHONY:((?: \w+| \\\n\t\w+)+)", text("Makefile"))[1]
    targets = set(re.findall(r"\w+", phony))
    said = subprocess.check_output(["make", "help"], cwd=ROOT, text=True)
    lines = said.splitlines()
    assert {line.split()[0] for line in lines} == targets and len(targets) > 9


def test_repository_changes_its_address_and_nothing_else(tmp_path):
    copy = tmp_path / "a copy"
    for name in ("book", "tools", "cellbycell"):
        shutil.copytree(ROOT / name, copy / name)
    for name in ("_config.yml", "_toc.yml", "pyproject.toml"):
        shutil.copy(ROOT / name, copy)
    files = [path for path in copy.rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in files}

    def run(slug):
        command = [sys.executable, "-m", "tools.commands.repository", slug]
        return subprocess.run(
            command, cwd=copy, stderr=subprocess.PIPE, text=True
        )

    for slug in ("", "owner", "a/b/c", "a/..", "a b/c", "https://x.y"):
        result = run(slug)
        assert result.returncode == 1 and result.stderr.count("\n") == 1
        assert "run: make repository SLUG=owner/name" in result.stderr
    old, new = b"OWNER/transformers-cell-by-cell", b"some-body/a.book_2"
    assert run(new.decode()).returncode == 0
    after = {path: path.read_bytes() for path in files}
    changed = {path.name for path in files if after[path] != before[path]}
    notebooks = {path.name for path in copy.glob("book/*.ipynb")}
    shown = {"_config.yml", "pyproject.toml", "README.md", "index.md"}
    assert changed == notebooks | shown
    for path, content in before.items():
        if path.name in changed:
            assert after[path] == content.replace(old, new), path
    assert run(old.decode()).returncode == 0
    assert {path: path.read_bytes() for path in files} == before


def test_requirements_are_pinned_exactly_and_have_a_reason():
    pins, own, *lines = re.findall(
        r"^[^#\n].*", text("requirements.txt"), re.M
    )
    assert pins == "-c constraints.txt" and own.startswith("-e . ")
    for line in lines:
        assert re.fullmatch(r"[\w-]+==[\w.]+  # \w.*", line), line


def test_constraints_hold_the_requirements_and_no_kind_of_machine():
    held, pins = (
        set(re.findall(r"^[\w.-]+==[\w.]+", text(name).lower(), re.M))
        for name in ("constraints.txt", "requirements.txt")
    )
    assert pins <= held, "Run: make constraints"
    assert not [pin for pin in held if re.search(r"\+|^(nvidia|cuda)", pin)]


def test_the_site_is_published_from_pins_with_hashes():
    lines = text(".ci/site.txt").replace("\\\n", "").splitlines()
    options = [line for line in lines if line.startswith("-")]
    assert options == ["--require-hashes", "--only-binary :all:"]
    packages = [line for line in lines if line[0] not in "#-"]
    for package in packages:
        assert re.fullmatch(
            r"\S+==\S+(?:\s+--hash=sha256:[0-9a-f]{64})+", package
        )
    pins = {package.split()[0] for package in packages}
    held = set(re.findall(r"^[\w.-]+==.*", text("constraints.txt"), re.M))
    part = text("requirements.txt").split("# The site")[1].split("# The ")[0]
    needed = set(re.findall(r"^[\w-]+==[\w.]+", part, re.M))
    plain = [
        {re.sub(r"[-_.]+", "-", pin.lower()) for pin in some}
        for some in (needed, pins, held)
    ]
    assert plain[0] <= plain[1] <= plain[2], "Run: make constraints"
