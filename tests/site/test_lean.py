"""What a page may load and run, over HTTP and opened as a file."""

import gzip
import io
import json
import re

import pytest

from tools.chromium import load_pictures
from tools.settings import BOOK, HTML, chapters, contents

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

PAGES = [f"{name}.html" for name in contents()]
CHAPTERS = chapters()
HOME, SEARCH = PAGES[0], "search.html"
LIMIT = 600_000  # bytes, compressed
EVERY = [*PAGES, SEARCH, "genindex.html"]


def loaded(page):
    """Return the addresses of all that a page has loaded, to its end."""
    load_pictures(page)
    names = page.evaluate(
        "performance.getEntriesByType('resource').map(entry => entry.name)"
    )
    return {name.partition("?")[0] for name in names} - {""}


def compressed(path):
    data = path.read_bytes()
    return len(data if path.suffix == ".png" else gzip.compress(data))


@pytest.mark.parametrize("address", PAGES)
def test_a_page_with_all_its_pictures_is_light(visit, site, address):
    files = [
        HTML / name.removeprefix(site)
        for name in loaded(visit(address))
        if name.startswith(site)
    ]
    assert files, "nothing was loaded: the measurement is broken"
    assert not any(path.name == "searchindex.js" for path in files)
    size = compressed(HTML / address) + sum(map(compressed, files))
    assert size < LIMIT, f"{size} bytes: {sorted(map(str, files))}"
    assert len(files) < 60


@pytest.mark.parametrize("address", PAGES)
def test_pictures_wait_and_keep_their_room(visit, address):
    page = visit(address)
    load_pictures(page)
    wrong = page.locator("img[src*=_images]").evaluate_all("""all =>
        all.filter(image =>
            image.getAttribute("width") != image.naturalWidth ||
            image.getAttribute("height") != image.naturalHeight
        ).map(image => image.outerHTML)""")
    assert wrong == []
    text = (HTML / address).read_text("utf-8")
    pictures = re.findall(r"<img[^>]*_images[^>]*>", text)
    assert all('loading="lazy"' in picture for picture in pictures)


@pytest.mark.parametrize("address", [HOME, CHAPTERS[0], SEARCH])
def test_each_icon_is_drawn(visit, address):
    page = visit(address if "." in address else f"{address}.html")
    icons = page.locator("[class*='fa-']")
    assert icons.count() > 5
    bare = icons.evaluate_all("""all => all
        .filter(icon => !getComputedStyle(icon).maskImage.includes("data:"))
        .map(icon => icon.outerHTML)""")
    assert bare == [], "draw these in book/_static/icons.css"
    # None hides behind another's name.
    assert page.locator("button:visible [class*='fa-']").evaluate_all(
        "all => all.every(icon => icon.matches(':not(:only-child)') ||"
        " icon.closest('button').ariaLabel || icon.closest('button').title)"
    )


@pytest.mark.parametrize("address", [*PAGES, SEARCH])
def test_the_style_sheet_keeps_every_rule_that_a_page_uses(visit, address):
    page = visit(address)
    full = page.evaluate(
        """async texts => {
            const selectors = sheet => Array.from(sheet.cssRules).flatMap(
                rule => rule.selectorText
                    ? [rule.selectorText]
                    : rule.cssRules && !rule.name ? selectors(rule) : []);
            const parts = text => text.split(/,(?![^(]*[)])/);
            const trim = text => text.trim();
            const kept = new Set(Array.from(document.styleSheets)
                .flatMap(selectors).flatMap(parts).map(trim));
            const missing = new Set();
            for (const text of texts) {
                const sheet = new CSSStyleSheet();
                sheet.replaceSync(text);
                for (const one of selectors(sheet).flatMap(parts).map(trim))
                    if (!kept.has(one)) {
                        let found = null;
                        try { found = document.querySelector(
                            one.replace(/::?(before|after)$/, "")); }
                        catch {}
                        if (found) missing.add(one);
                    }
            }
            return Array.from(missing);
        }""",
        [
            path.read_text("utf-8")
            for path in HTML.glob("_static/**/*.css")
            if path.name != "site.css"
        ],
    )
    assert full == []


# Formulas


def test_tex_that_cannot_be_set_stops_the_build(tmp_path, monkeypatch):
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace

    (tmp_path / "index.md").write_text("# A\n\n$x$ and $\\worng{x}$\n")
    settings = {
        "extensions": ["myst_nb", "native_math"],
        "html_math_renderer": "native",
        "myst_enable_extensions": ["dollarmath"],
    }
    monkeypatch.syspath_prepend(BOOK / "_ext")
    said, out = io.StringIO(), tmp_path / "out"
    with docutils_namespace():
        places = tmp_path, None, out, out
        Sphinx(*places, "html", settings, None, said).build()
    (warning,) = re.findall("WARNING: (math-core.*)", said.getvalue())
    assert r"\worng{x}" in warning and "Correct it" in warning
    assert "<mi>x</mi>" in (out / "index.html").read_text("utf-8")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_numbers_of_equations_stand_on_the_right(visit, chapter):
    notebook = json.loads(
        (BOOK.parent / f"{chapter}.ipynb").read_text("utf-8")
    )
    sources = "".join(
        "".join(cell["source"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "markdown"
    )
    numbers = re.findall(r"\\tag\{(\d+)\}", sources)
    page = visit(f"{chapter}.html")
    distances = page.locator("div.math").evaluate_all("""all => all
        .map(box => [box, box.querySelector("math > mtable > mtr > "
            + "mtd:last-child > mtext:last-child")])
        .filter(([_, number]) => /^[(]\\d+[)]$/.test(number?.textContent))
        .map(([box, number]) => [number.textContent,
            box.getBoundingClientRect().left + box.scrollWidth
            - number.getBoundingClientRect().right])""")
    assert [text for text, _ in distances] == [f"({n})" for n in numbers]
    assert all(abs(distance) < 8 for _, distance in distances)


# Search


DEFINED = {
    "embedding": "book/embedding",
    "mask": "book/embedding",
    "one-hot": "book/embedding",
    "token": "book/embedding",
    "wavelength": "book/positional_encoding",
    "self-attention": "book/attention",
    "entropy": "book/attention",
    "cross-attention": "book/multi_head_attention",
    "teacher forcing": "book/masks",
}


@pytest.mark.parametrize("term", DEFINED)
def test_search_puts_the_definition_first(visit, site, term):
    page = visit(f"{SEARCH}?q={term.replace(' ', '+')}")
    first = page.locator("#search-results li a").first
    first.wait_for()
    page.wait_for_load_state("networkidle")
    href = first.get_attribute("href")
    assert href.startswith(f"{DEFINED[term]}.html#"), href
    first.click()
    page.wait_for_url(f"{site}{DEFINED[term]}.html*")
    target = page.locator(f"[id='{href.partition('#')[2]}']")
    bold = target.locator("strong").all_text_contents()
    assert term in [text.lower() for text in bold]


@pytest.mark.parametrize("title", ["Attention", "Masks", "Notation"])
def test_search_puts_the_chapter_of_that_name_first(visit, title):
    page = visit(f"{SEARCH}?q={title.lower()}")
    first = page.locator("#search-results li a").first
    first.wait_for()
    page.wait_for_load_state("networkidle")
    assert first.text_content() == title


# Policy


@pytest.mark.parametrize("address", EVERY)
def test_policy_allows_no_script_that_is_not_named(address):
    text = (HTML / address).read_text("utf-8")
    policies = re.findall(
        r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"', text
    )
    assert len(policies) == 1
    assert text.index("Content-Security-Policy") < text.index("<script")
    rules = dict(rule.split(" ", 1) for rule in policies[0].split("; "))
    assert rules["default-src"] == rules["base-uri"] == "'none'"
    allowed = rules["script-src"].split()
    plain = [source for source in allowed if "'sha256-" not in source]
    assert set(plain) <= {"'self'", "'unsafe-hashes'"}


INJECTED = """
<script>window.ran = ["inline"]</script>
<script src="https://elsewhere.example/script.js"></script>
<img src="data:," onerror="window.ran = ['handler']" alt="">
</body>"""


@pytest.mark.parametrize("guarded", [True, False])
def test_injected_scripts_do_not_run(browser, site, guarded):
    """Without the policy they do: the test itself is tested."""

    def inject(route):
        text = (HTML / HOME).read_text("utf-8")
        if not guarded:
            text = re.sub("<meta http-equiv=.Content-Sec.*?>", "", text)
        text = text.replace("</body>", INJECTED)
        route.fulfill(body=text, content_type="text/html")

    context = browser.new_context()
    page = context.new_page()
    page.route(site + HOME, inject)
    page.route(
        "https://elsewhere.example/*",
        lambda route: route.fulfill(body="(window.ran ??= []).push('far')"),
    )
    page.goto(site + HOME)
    page.wait_for_load_state("networkidle")
    ran = page.evaluate("window.ran ?? []")
    theme = page.locator("html").get_attribute("data-theme")
    context.close()
    assert bool(ran) != guarded
    assert theme == "light"  # the page's own scripts run


# Opened as a file


@pytest.mark.parametrize("address", EVERY)
def test_a_page_works_as_a_file(visit_file, address):
    page = visit_file(address, color_scheme="dark")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.locator(".theme-switch-button:visible").click()
    assert page.locator("html").get_attribute("data-theme") == "light"
    assert page.evaluate("document.styleSheets.length") > 0
    for image in page.locator("article img[src]").all():
        image.scroll_into_view_if_needed()
        image.evaluate("image => image.decode()")
    tabs = page.locator(".sd-tab-label:text-is('TensorFlow')")
    if tabs.count():
        tabs.first.click()
        assert page.locator(
            ".sd-tab-label:text-is('TensorFlow') + *"
        ).first.is_visible()


def test_search_works_as_a_file(visit_file):
    page = visit_file(HOME)
    page.keyboard.press("Control+k")
    page.keyboard.type("embedding")
    page.keyboard.press("Enter")
    first = page.locator("#search-results li a").first
    first.wait_for()
    assert "embedding.html#" in first.get_attribute("href")
