"""The Makefile's help, the repository's address, and the pins."""

import re
import subprocess

import pytest

from tools.commands import repository
from tools.settings import ROOT


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_help_names_every_target():
    phony = re.search(r"\.PHONY:((?: \w+| \\\n\t\w+)+)", text("Makefile"))[1]
    targets = set(re.findall(r"\w+", phony))
    said = subprocess.check_output(
        ["make", "--no-print-directory", "help"], cwd=ROOT, text=True
    )
    lines = said.splitlines()
    assert {line.split()[0] for line in lines} == targets and len(targets) > 9


@pytest.mark.parametrize(
    "given", ["", "owner", "a/b/c", "a/..", "a b/c", "https://x.y"]
)
def test_what_is_no_address_of_a_repository_is_said(monkeypatch, given):
    monkeypatch.setattr(repository, "rename", pytest.fail)
    with pytest.raises(SystemExit, match="run: make repository SLUG=owner/"):
        repository.main([given])


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
