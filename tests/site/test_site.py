"""The built site in a real browser: what a reader sees, clicks and prints.

Nothing here may leave the machine: `visit` fails a test whose page asks
another host for something, misses a file or raises an error.
"""

import functools
import io
import json
import re
from itertools import groupby, product

import pytest

from tools.chromium import load, load_pictures, unfold
from tools.notebooks import Notebook, tags
from tools.settings import BOOK, HTML, ROOT, chapters, config, contents

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

PAGES = [f"{name}.html" for name in contents()]
CHAPTERS = chapters()
HOME, SEARCH = PAGES[0], "search.html"


def texts(locator):
    return [text.strip() for text in locator.all_text_contents()]


@functools.cache
def pairs(chapter):
    """Return how many pairs of tagged runs a notebook holds."""
    cells = Notebook.read(ROOT / f"{chapter}.ipynb").cells
    runs = groupby(cells, lambda cell: "pytorch" in tags(cell))
    return sum(is_pytorch for is_pytorch, _ in runs)


# Every page


@pytest.mark.parametrize("address", [*PAGES, SEARCH])
def test_page_is_whole(visit, address):
    page = visit(address)
    formulas = page.locator(".math").count()
    assert page.locator(".math > math").count() == formulas
    load_pictures(page)
    for image in page.locator("article img").all():
        alt = image.get_attribute("alt")
        assert len(alt) >= 20 and "<!--" not in alt


@pytest.mark.parametrize("address", [*PAGES, SEARCH])
def test_nothing_is_wider_than_a_phone(visit, address):
    page = visit(address)
    unfold(page)
    for width, framework in product(
        [320, 360, 640], ["TensorFlow", "PyTorch"]
    ):
        page.set_viewport_size({"width": width, "height": 800})
        tabs = page.locator(f".sd-tab-label:text-is('{framework}')")
        if tabs.count():
            tabs.first.click()
        where = f"{framework} at {width} pixels"
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{where}: the page is {wide} wide"
        assert not cut_off(page, "div"), f"{where}: the beginning is cut off"
        assert not cut_off(page, "span"), f"{where}: too wide for a line"


def cut_off(page, kind):
    """Return the formulas that nobody can read to the end.

    A display (div) scrolls to the right, a formula in a line (span) does not.
    """
    return page.locator(f"{kind}.math").evaluate_all("""maths => maths
        .filter(math => math.offsetParent)
        .filter(math => {
            const box = math.getBoundingClientRect();
            const ink = Array.from(math.querySelectorAll('math *'))
                .map(sign => sign.getBoundingClientRect());
            return ink.some(sign => sign.left < box.left - 1) ||
                math.matches('span') &&
                ink.some(sign => sign.right > box.right + 1);
        })
        .map(math => math.textContent)""")


def test_links_lead_somewhere(visit, site):
    links, anchors = {}, {}
    for address in [*PAGES, SEARCH]:
        page = visit(address)
        links[address] = page.locator("[href], [src]").evaluate_all("""all =>
            all.map(e => e.getAttribute('href') ?? e.getAttribute('src'))
               .map(link => new URL(link, document.baseURI).href)""")
        anchors[site + address] = page.locator("[id]").evaluate_all(
            "all => all.map(e => e.id)"
        )
    for address, targets in links.items():
        for target in filter(lambda link: link.startswith(site), targets):
            file, _, anchor = target.partition("#")
            path = HTML / re.sub(r"\?.*", "", file).removeprefix(site)
            assert path.exists(), f"{address} links to {target}"
            if anchor:
                assert anchor in anchors[file], f"{address} links to {target}"


# Framework tabs


def assert_all_show(page, framework):
    for name in ("PyTorch", "TensorFlow"):
        panels = page.locator(f".sd-tab-label:text-is('{name}') + *")
        shown = panels.evaluate_all("all => all.map(e => !!e.offsetParent)")
        assert shown == [name == framework] * len(shown)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_pair_of_cells_is_a_set_of_tabs(visit, chapter):
    page = visit(f"{chapter}.html")
    assert page.locator(".sd-tab-set").count() == pairs(chapter) > 0
    labels = ["PyTorch", "TensorFlow"] * pairs(chapter)
    assert texts(page.locator(".sd-tab-label")) == labels
    assert_all_show(page, "PyTorch")


def test_choice_holds_on_every_page_and_is_kept(visit, site):
    page = visit(f"{CHAPTERS[0]}.html")
    page.locator(".sd-tab-label:text-is('TensorFlow')").last.click()
    assert_all_show(page, "TensorFlow")
    load(page)
    assert_all_show(page, "TensorFlow")
    for chapter in CHAPTERS:
        load(page, f"{site}{chapter}.html")
        assert_all_show(page, "TensorFlow")


@pytest.mark.parametrize("name", ["PyTorch", "TensorFlow"])
def test_address_chooses_the_framework(visit, name):
    page = visit(f"{CHAPTERS[0]}.html?framework={name.lower()}")
    assert_all_show(page, name)


def test_keyboard_chooses_the_framework(visit):
    page = visit(f"{CHAPTERS[0]}.html")
    first = page.locator(".sd-tab-set > input").first
    while not first.evaluate("e => e === document.activeElement"):
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert_all_show(page, "TensorFlow")
    page.keyboard.press("ArrowLeft")
    assert_all_show(page, "PyTorch")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_paper_shows_both_frameworks(visit, chapter):
    page = visit(f"{chapter}.html")
    page.emulate_media(media="print")
    parts = page.locator(".sd-tab-label, .sd-tab-content")
    tops = parts.evaluate_all(
        "all => all.map(e => e.offsetParent && e.getBoundingClientRect().top)"
    )
    # Label, content, label, content, ...: each visible and below the last.
    assert len(tops) == 4 * pairs(chapter) and None not in tops
    assert tops == sorted(tops)


UNPAIRED = {
    "no-tensorflow": ["pytorch", "plain", "tensorflow"],
    "no-pytorch": ["plain", "tensorflow"],
    "wrong-order": ["tensorflow", "pytorch"],
    "one-too-many": ["pytorch", "pytorch", "tensorflow"],
}
PAIRED = {
    "pair": ["pytorch", "tensorflow"],
    "two-pairs": ["pytorch", "tensorflow", "pytorch", "tensorflow"],
    "runs": ["pytorch", "pytorch", "tensorflow", "tensorflow", "plain"],
}


def test_a_cell_without_its_partner_stops_the_build(tmp_path, monkeypatch):
    from nbformat import v4
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace

    python = {"language_info": {"name": "python", "pygments_lexer": "python"}}
    for name, sequence in (UNPAIRED | PAIRED).items():
        cells = [
            v4.new_code_cell(f"x = {place}", metadata={"tags": [tag]})
            for place, tag in enumerate(sequence, 1)
        ]
        notebook = v4.new_notebook(cells=cells, metadata=python)
        (tmp_path / f"{name}.ipynb").write_text(json.dumps(notebook))
    settings = {
        "extensions": ["myst_nb", "sphinx_design", "framework_tabs"],
        "nb_execution_mode": "off",
        "root_doc": "pair",
    }
    monkeypatch.syspath_prepend(BOOK / "_ext")
    said, out = io.StringIO(), tmp_path / "out"
    with docutils_namespace():
        places = tmp_path, None, out, out
        Sphinx(*places, "dummy", settings, None, said).build()
    warning = r"/([\w-]+)\.ipynb: WARNING: cell \d \((x = \d)\): a cell tagged"
    assert re.findall(warning, said.getvalue()) == [
        ("no-pytorch", "x = 2"),
        ("no-tensorflow", "x = 1"),
        ("no-tensorflow", "x = 3"),
        ("one-too-many", "x = 1"),
        ("one-too-many", "x = 3"),
        ("wrong-order", "x = 1"),
        ("wrong-order", "x = 2"),
    ]


# Reading


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_copy_buttons_stand_on_input_only(visit, chapter):
    page = visit(
        f"{chapter}.html", permissions=["clipboard-read", "clipboard-write"]
    )
    code = Notebook.read(ROOT / f"{chapter}.ipynb").code
    assert page.locator(".cell_input .copybtn").count() == len(code)
    assert page.locator(".cell_output .copybtn").count() == 0
    page.locator(".cell_input .copybtn").first.click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.strip() == code[0].source


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_folded_cells_are_named_by_their_titles(visit, chapter):
    code = Notebook.read(ROOT / f"{chapter}.ipynb").code
    titles = [
        cell.source.partition("\n")[0].removeprefix("# @title ")
        for cell in code
        if "hide-input" in tags(cell)
    ]
    page = visit(f"{chapter}.html")
    shown = page.locator("details.hide summary .collapsed")
    assert texts(shown) == titles


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_search_finds_a_word_of_a_chapter(visit, chapter):
    prose = Notebook.read(ROOT / f"{chapter}.ipynb").markdown[1].source
    word = max(re.findall(r"[a-z]+", prose), key=len)
    page = visit(f"{SEARCH}?q={word}")
    page.locator(f"#search-results a[href^='{chapter}.html']").first.wait_for()


@pytest.mark.parametrize("width", [360, 1280])
def test_there_is_one_search_field(visit, width):
    page = visit(HOME, width)
    page.locator(".search-button__button:visible").first.click()
    fields = page.locator("input[type=search]")
    assert fields.count() == 1 and fields.is_visible()


def test_dark_mode_is_kept(visit):
    page = visit(HOME, color_scheme="light")

    def background():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    theme, light = page.locator("html"), background()
    # The button goes round: as the system has it, light, dark.
    for _ in range(3):
        if theme.get_attribute("data-theme") == "dark":
            break
        page.locator(".theme-switch-button:visible").click()
    dark = background()
    assert dark != light
    load(page)
    assert theme.get_attribute("data-theme") == "dark"
    assert background() == dark


# Links out of the book


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_buttons_open_this_repository(visit, repository, chapter):
    page = visit(f"{chapter}.html")
    links = page.locator(".bd-main a[href*='github']").evaluate_all(
        "all => all.map(a => a.href)"
    )
    slug = repository.removeprefix("https://github.com/")
    branch = config()["repository"]["branch"]
    file = f"{slug}/blob/{branch}/{chapter}.ipynb"
    needed = {
        f"{config()['launch_buttons']['colab_url']}/github/{file}",
        f"https://github.com/{file}?plain=1",
        repository,
    }
    if repository:
        assert needed <= set(links)
    assert all("OWNER" not in link for link in links)
    buttons = page.locator(".article-header-buttons")
    assert bool(buttons.locator("a[href*='github']").count()) == bool(slug)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_download_button_gives_the_notebook(visit, chapter):
    page = visit(f"{chapter}.html")
    button = page.locator(".article-header-buttons a[href*='_sources']")
    target = button.evaluate("a => a.href")
    stored = json.loads((ROOT / f"{chapter}.ipynb").read_text("utf-8"))
    assert page.request.get(target).json() == stored


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_map_leads_to_each_chapter(visit, chapter):
    page = visit(HOME)
    name = chapter.rpartition("/")[2]
    link = page.locator(f"svg.transformer-map a[href='{name}.html']")
    drawing = "book/_static/transformer-map.svg"
    assert link.count(), f"{drawing} has no link to {name}.html: add it there"
    link.first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{chapter}.html")
