"""Every page of the site, as different readers see it.

CHECKS is a table: a script that returns what is wrong on a page, and how the
page is looked at. The last test shows that each finds what it looks for.
"""

import gzip
import io
import json
import re
from functools import cache
from itertools import groupby

import pytest
from PIL import Image

from book._ext.lean_pages import shown_size
from tools.chromium import load_pictures
from tools.notebooks import tags
from tools.settings import HTML, ROOT, chapters, contents

EVERY = [*contents(), "search", "genindex"]
LIGHT = 250_000  # bytes of a page, compressed, without its pictures
LIGHTER = 150_000  # of the landing page
OPEN = {"unfolded": True}
PHONE = OPEN | {"width": 320}
PAPER = {"width": 660, "media": "print", "color_scheme": "dark"}  # 18 mm left

TOO_WIDE = """document.documentElement.scrollWidth > innerWidth
    ? [document.documentElement.scrollWidth] : []"""
# What scrolls is a stop of the Tab key, and nothing else is.
STOPS = """[...document.querySelectorAll(
        "pre, .output, .pst-scrollable-table-container")]
    .filter(box => box.checkVisibility())
    .filter(box => (box.tabIndex === 0) !==
        (box.scrollWidth > box.clientWidth ||
         box.scrollHeight > box.clientHeight))
    .map(box => box.outerHTML.slice(0, 200))"""
# A display (div) scrolls to the right, a formula in a line (span) does not.
CUT_OFF = """[...document.querySelectorAll(".math")]
    .filter(math => math.checkVisibility())
    .filter(math => {
        const box = math.getBoundingClientRect();
        return [...math.querySelectorAll("math *")]
            .map(sign => sign.getBoundingClientRect())
            .some(sign => sign.left < box.left - 1 ||
                math.matches("span") && sign.right > box.right + 1);
    }).map(math => math.textContent)"""
# By reader, for whom a page is laid out anew; paper comes last, as the theme
# needs a third of a second to see that the page is on a screen again.
CHECKS = {
    "a formula is set": (
        {},
        """[...document.querySelectorAll(".math:not(:has(> math))")]
        .map(math => math.textContent)""",
    ),
    "a picture is described": (
        {},
        """[...document.querySelectorAll("article img")]
        .map(image => image.alt)
        .filter(alt => alt.length < 20 || alt.includes("<!--"))""",
    ),
    "a picture waits, and its room is kept": (
        {},
        """[...document.querySelectorAll("img[src*=_images]")]
        .filter(image => image.loading === "auto" ||
            !(Math.abs(image.naturalWidth / image.getAttribute("width")
            - image.naturalHeight / image.getAttribute("height")) < 0.02))
        .map(image => image.outerHTML)""",
    ),
    "an icon is drawn": (
        {},
        """[...document.querySelectorAll("[class*='fa-']")]
        .filter(icon => !getComputedStyle(icon).maskImage.includes("data:"))
        .map(icon => icon.outerHTML)""",
    ),
    "a fold is one line": (
        {},
        """[...document.querySelectorAll("details.side-road > summary")]
        .filter(line => line.getBoundingClientRect().height > 50)
        .map(line => line.textContent)""",
    ),
    "a table fits": (
        OPEN,
        """[...document.querySelectorAll("article table.table")]
        .map(table => table.parentElement)
        .filter(box => box.scrollWidth > box.clientWidth + 1)
        .map(box => box.closest("section")?.id ?? box.outerHTML)""",
    ),
    "what scrolls is a stop": (OPEN, STOPS),
    "nothing is wider than a tablet": (OPEN | {"width": 640}, TOO_WIDE),
    # A figure's letters have ten points, of a hundred pixels an inch.
    "the letters of a figure can be read on a phone": (
        OPEN | {"width": 390},
        """[...document.querySelectorAll(".cell_output > img[width]")]
        .map(image => image.getBoundingClientRect().width
            / image.getAttribute("width") * 1000 / 72)
        .filter(size => size < 10.9)""",
    ),
    "what scrolls on a phone is a stop": (PHONE, STOPS),
    "nothing is wider than a phone": (PHONE, TOO_WIDE),
    "no formula is cut on a phone": (PHONE, CUT_OFF),
    "code goes on in the next line on a phone": (
        PHONE,
        """[...document.querySelectorAll("pre:not(:has(> .columns))")]
        .filter(box => box.scrollWidth > box.clientWidth + 1)
        .map(box => box.outerHTML.slice(0, 200))""",
    ),
    "paper shows the text alone": (
        PAPER,
        """[...document.querySelectorAll(".bd-sidebar, .bd-header-article,"
            + ".bd-footer, .prev-next-footer, article button")]
        .filter(part => part.checkVisibility())
        .map(part => part.outerHTML.slice(0, 200))""",
    ),
    "paper cuts nothing": (
        PAPER,
        """[...document.querySelectorAll("article :is(pre, img)")]
        .filter(part => part.scrollWidth > part.clientWidth + 1)
        .map(part => part.outerHTML.slice(0, 200))""",
    ),
    "paper is light": (
        PAPER,
        """[getComputedStyle(document.body).backgroundColor]
        .filter(colour => colour !== "rgb(255, 255, 255)")""",
    ),
    "paper shows one framework": (
        PAPER,
        """[...document.querySelectorAll(".sd-tab-set")]
        .filter(set => [".sd-tab-label", ".sd-tab-content"].some(part =>
            [...set.querySelectorAll(part)].filter(one =>
                getComputedStyle(one).display !== "none").length !== 1))
        .map(set => set.textContent.slice(0, 200))""",
    ),
}
BAD = """<body style="background: black; width: 3000px"><article>
<span class="math">x</span> <i class="fas fa-new"></i>
<div class="bd-footer">here</div>
<div class="cell_output"><img width="1000" style="width: 9px" alt="x"
    src="data:image/svg+xml,<svg id='_images'
    xmlns='http://www.w3.org/2000/svg'/>"></div>
<div style="width: 50px; overflow: hidden">
<table class="table"><td><div style="width: 99px">x</div></table></div>
<pre style="width: 9px; overflow: hidden">a line that is too long</pre>
<span class="math" style="display: block; width: 1px">
    <math><mi>long</mi></math></span>
<details class="side-road"><summary><h1>two<br>lines</h1></summary></details>
<div class="sd-tab-set"><p class="sd-tab-label">A</p></div></article></body>"""


@pytest.mark.parametrize("name", EVERY)
def test_a_page_is_right_for_every_reader(look, name):
    found = {}
    load_pictures(look(name))  # which fails if one is broken
    for says, (reader, script) in CHECKS.items():
        if faults := look(name, **reader).evaluate(script):
            found[says] = faults
    page = look(name, **OPEN)
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    if faults := page.evaluate(TOO_WIDE):
        found["letters twice as large fit"] = faults
    page.evaluate("document.documentElement.style.fontSize = ''")
    assert not found, json.dumps(found, indent=1)


@pytest.mark.parametrize("says", CHECKS)
def test_a_check_finds_what_is_wrong(empty_page, says):
    empty_page.set_content(BAD)
    empty_page.set_viewport_size({"width": 320, "height": 800})
    assert empty_page.evaluate(CHECKS[says][1])


@cache
def anchors(path):
    """Return the ids in a file of the site."""
    return set(re.findall(r'\sid="([^"]*)"', path.read_text("utf-8")))


@pytest.mark.parametrize("name", EVERY)
def test_links_lead_somewhere(look, site, name):
    links = look(name).evaluate("""[...new Set(
        [...document.querySelectorAll("[href], [src]")]
        .map(e => e.getAttribute("href") ?? e.getAttribute("src"))
        .map(link => new URL(link, document.baseURI).href))]""")
    inside = [link for link in links if link.startswith(site)]
    assert inside and not any("OWNER" in link for link in links)
    for link in inside:
        file, _, anchor = link.partition("#")
        path = HTML / file.partition("?")[0].removeprefix(site)
        assert path.is_file(), f"{name} links to {link}"
        if anchor and path.suffix == ".html":
            assert anchor in anchors(path), f"{name} links to {link}"


@pytest.mark.parametrize("name", EVERY)
def test_policy_allows_no_script_that_is_not_named(name):
    text = (HTML / f"{name}.html").read_text("utf-8")
    found = r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"'
    (policy,) = re.findall(found, text)
    assert text.index("Content-Security-Policy") < text.index("<script")
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["base-uri"] == "'none'"
    allowed = re.sub(r"'sha256-[^']*'", "", rules["script-src"]).split()
    assert {*allowed} <= {"'self'", "'unsafe-hashes'"}


@pytest.mark.parametrize("name", contents())
def test_a_page_is_light_and_shows_a_card(visit, site, repository, name):
    page = visit(name)
    loaded = page.evaluate(
        "performance.getEntriesByType('resource').map(entry => entry.name)"
    )
    paths = {HTML / one.partition("?")[0].removeprefix(site) for one in loaded}
    paths = {path for path in paths if path.suffix in (".css", ".js")}
    assert len(paths) > 10 and "searchindex.js" not in str(paths)
    files = [*paths, HTML / f"{name}.html"]
    size = sum(len(gzip.compress(path.read_bytes())) for path in files)
    assert size < (LIGHTER if name == contents()[0] else LIGHT), size
    said = dict(
        page.locator("meta[property^='og:']").evaluate_all(
            "all => all.map(e => [e.getAttribute('property'), e.content])"
        )
    )
    assert page.title().startswith(said["og:title"])
    assert len(said["og:description"]) > 40
    if repository:  # else nobody knows where the picture will be
        assert len(said["og:image:alt"]) >= 20
        path = said["og:image"].partition("github.io/")[2].partition("/")[2]
        card = Image.open(io.BytesIO(page.request.get(site + path).body()))
        assert card.size == (1200, 630)


@pytest.mark.parametrize(("dpi", "width"), [(100, 400), (200, 200)])
def test_a_dense_picture_is_not_shown_larger(tmp_path, dpi, width):
    Image.new("1", (400, 200)).save(tmp_path / "x.png", dpi=(dpi, dpi))
    assert shown_size(tmp_path / "x.png") == [width, width // 2]


def test_text_and_roles_have_letters_and_colours_of_their_own(look):
    page = look("book/attention")
    fonts = page.evaluate("""[...document.fonts]
        .filter(font => font.family.includes("Book"))
        .map(font => font.status)""")
    assert fonts.count("loaded") >= 3
    for role, sign in zip(("query", "key", "value"), "QKV", strict=True):
        names = page.locator(f".highlight .role-{role}").all_text_contents()
        assert names and {x[: len(role)] for x in names} == {role}
        signs = page.locator(f"math .role-{role}").all_text_contents()
        assert {*signs} == {sign}
    assert page.locator(":is(.c1, .s1, .s2) [class^=role]").count() == 0


def plain(title):
    """Return a title without its kind, which its place on the page says."""
    kind = r"^(✓ checked|Check|Interactive|Figure|Table|Table and check): "
    return re.sub(kind, "", title.strip()).lower()


@pytest.mark.parametrize("chapter", chapters())
def test_a_chapter_is_its_notebook(look, notebook, chapter):
    page, cells = look(chapter), notebook(chapter).cells
    runs = groupby(cells, lambda cell: "pytorch" in tags(cell))
    pairs = sum(is_pytorch for is_pytorch, _ in runs)
    labels = page.locator(".sd-tab-label").all_text_contents()
    assert [x.strip() for x in labels] == ["PyTorch", "TensorFlow"] * pairs
    assert page.locator(".sd-tab-set").count() == pairs > 0
    folded = [cell.source for cell in cells if "hide-input" in tags(cell)]
    titles = [
        re.sub(r"# @title | \((PyTorch|TensorFlow)\)$", "", line)
        for line in (source.partition("\n")[0] for source in folded)
    ]
    shown = page.locator("details.hide summary .collapsed").all_text_contents()
    assert [plain(title) for title in titles] == [*map(plain, shown)]
    below = page.locator(".captioned > .cell_output + details.hide")
    captions = ("Interactive: ", "Figure: ", "Table: ", "Table and check: ")
    assert below.count() == sum(x.startswith(captions) for x in titles)
    assert page.get_by_text("not attempted yet").count() == 0
    code = notebook(chapter).code
    assert page.locator(".cell_input .copybtn").count() == len(code)
    assert page.locator(".cell_output .copybtn").count() == 0
    sources = "".join(cell.source for cell in notebook(chapter).markdown)
    numbers = page.evaluate("""[...document.querySelectorAll("div.math")]
        .map(box => [box, box.querySelector("math > mtable > mtr > "
            + "mtd:last-child > mtext:last-child")])
        .filter(([_, number]) => /^[(]\\d+[)]$/.test(number?.textContent))
        .map(([box, number]) => [number.textContent.slice(1, -1),
            box.getBoundingClientRect().left + box.scrollWidth
            - number.getBoundingClientRect().right])""")
    tagged = re.findall(r"\\tag\{(\d+)\}", sources)
    assert [number for number, _ in numbers] == tagged
    assert all(abs(distance) < 8 for _, distance in numbers)
    button = page.locator(".article-header-buttons a[href*='_sources']")
    given = page.request.get(button.evaluate("a => a.href")).json()
    assert given == json.loads((ROOT / f"{chapter}.ipynb").read_text("utf-8"))
