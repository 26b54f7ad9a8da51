"""Run the commands where things go wrong, in a copy with false Pythons."""

import os
import re
import shutil
import subprocess

import pytest

from tools.commands import repository
from tools.settings import ROOT

PYTHONS = ["python3.11", "python3.12", "python3.13", "python3", "python"]
PINS = ["requirements.txt", "constraints.txt"]
# A Python that makes a .venv in which anything works, and one of a version.
SOUND = """case "$1 $2" in
-c*) echo 3.11;;
*venv)
    [ "$3" = --clear ] && rm -rf .venv
    mkdir -p .venv/bin && cp "$0" .venv/bin/python;;
esac"""
OLD = "echo 3.10"
NO_VENV = "[ $1 = -c ] && echo 3.11"
NO_NETWORK = """echo 'Retrying: Failed to establish a new connection: [Errno'
echo 'Traceback (most recent call last):'
exit 1"""


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture
def copy(tmp_path):
    """Return a copy of what the commands read, in a folder with a space."""
    folder = tmp_path / "a copy"
    for name in ("book", "tools", "cellbycell"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("Makefile", "_config.yml", "_toc.yml", *PINS):
        shutil.copy(ROOT / name, folder)
    return folder


def program(path, script):
    """Write an executable shell script."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def make(folder, *arguments, pythons=None):
    """Run make with these false Pythons on the path and no true one."""
    for name in PYTHONS:
        program(folder / "bin" / name, (pythons or {}).get(name, "exit 127"))
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=folder,
        # Without what an outer make or the caller's shell has set.
        env={"PATH": f"{folder}/bin:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )


def sentence(result):
    """Return the one line of a failed command, make's own line apart."""
    assert result.returncode != 0
    lines = result.stderr.splitlines()
    assert len(lines) == 2 and lines[1].startswith("make: ***"), lines
    return lines[0]


INSTALL = ".venv/installed"


def test_help_names_every_target(copy):
    phony = re.search(r"\.PHONY:((?: \w+| \\\n\t\w+)+)", text("Makefile"))[1]
    targets = set(re.findall(r"\w+", phony))
    lines = make(copy).stdout.splitlines()
    assert {line.split()[0] for line in lines} == targets and len(targets) > 9


@pytest.mark.parametrize(
    ("pythons", "installer", "says"),
    [
        ({}, None, ["none was found: install one"]),
        (
            {"python3": OLD},
            None,
            ["3.11, 3.12 or 3.13", "python3 is 3.10", "make site PYTHON="],
        ),
        ({"python3.11": NO_VENV}, None, ["apt install python3-venv"]),
        (
            {"python3": SOUND},
            NO_NETWORK,
            ["connect to the network", "_build/install.log"],
        ),
        ({"python3": SOUND}, "echo no space left; exit 1", ["no space left"]),
    ],
)
def test_what_stops_an_install_is_said(copy, pythons, installer, says):
    arguments = [INSTALL]
    if installer:
        program(copy / "bin" / "install", installer)
        arguments.append("INSTALL=bin/install")
    said = sentence(make(copy, *arguments, pythons=pythons))
    assert all(part in said for part in says) and "Traceback" not in said
    if installer == NO_NETWORK:
        assert "Errno" in (copy / "_build/install.log").read_text()


def test_half_made_environment_mends_itself_and_a_whole_one_is_kept(copy):
    # python3.12 is a shim without a Python behind it, as pyenv leaves them.
    pythons = {"python3.12": "exit 127", "python3": SOUND}
    remains = program(copy / ".venv/python", "exit 1")
    assert make(copy, INSTALL, pythons=pythons).returncode == 0
    assert (copy / INSTALL).exists() and not remains.exists()
    again = make(copy, INSTALL)  # without any Python, without any network
    assert "up to date" in again.stdout and again.returncode == 0
    (copy / ".venv/bin/python").unlink()
    result = make(copy, INSTALL, pythons=pythons)
    assert "Installing" in result.stdout and result.returncode == 0


def test_changed_requirements_are_installed(copy):
    program(copy / "bin" / "install", "echo $* >called")
    install = (copy, INSTALL, "INSTALL=bin/install")
    for given, wanted in [
        (["REQUIREMENTS=.ci/site.txt"], "-r .ci/site.txt\n"),
        ([], "-r requirements.txt\n"),
    ]:
        result = make(*install, *given, pythons={"python3": SOUND})
        assert "Installing" in result.stdout
        assert (copy / "called").read_text() == wanted
        os.utime(copy / INSTALL, (0, 0))
    failed = make(copy, INSTALL, "INSTALL=false")
    assert failed.returncode != 0 and not (copy / INSTALL).exists()


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
