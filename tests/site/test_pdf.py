"""The book as `make pdf` joins it, and three of its pages printed.

Chromium takes more than a minute to print all.
"""

import re

import pytest
from pypdf import PdfReader

from tools.commands.pdf import open_book, print_book
from tools.notebooks import Notebook, tags
from tools.settings import HTML, ROOT, chapters, contents, edition

pytestmark = pytest.mark.xdist_group("pdf")
LEFT_OUT = (HTML / "book").as_uri()
PRINTED = [contents()[0], chapters()[0], "book/symptoms"]


@pytest.fixture(scope="session")
def whole_book(site, browser):
    """Return the one page that `make pdf` prints."""
    page = open_book(browser)
    yield page
    page.context.close()


@pytest.fixture(scope="session")
def printed(site, browser, tmp_path_factory):
    """Return three pages as `make pdf` prints them, and where each begins."""
    path = tmp_path_factory.mktemp("pdf") / "book.pdf"
    page = open_book(browser, PRINTED)
    print_book(page, path)
    page.context.close()
    book = PdfReader(path)
    parts = [entry for entry in book.outline if not isinstance(entry, list)]
    return book, {
        part.title: book.get_destination_page_number(part) for part in parts
    }


def squeezed(pages):
    return "".join("".join(page.extract_text().split()) for page in pages)


def title(name):
    """Return the heading of a page, with the apostrophes that Sphinx sets."""
    path = ROOT / f"{name}.md"
    if path.exists():
        source = path.read_text("utf-8")
    else:
        source = Notebook.read(path.with_suffix(".ipynb")).cells[0].source
    heading = source.partition("\n")[0].removeprefix("# ")
    return heading.replace("'", "’")


def test_every_page_is_joined_and_every_link_in_it_leads_somewhere(whole_book):
    titles = whole_book.locator("article h1").all_inner_texts()
    assert [t.removesuffix("#") for t in titles] == list(
        map(title, contents())
    )
    links, dead = whole_book.locator("main [href]").evaluate_all(
        """all => {
            const to = all.map(link => link.getAttribute("href"));
            return [to, to.filter(place => !place.startsWith("https://") && !(
                place[0] === "#" &&
                document.getElementById(place.slice(1))))];
        }"""
    )
    assert dead == []
    to_sections = [link for link in links if re.match(r"#page-\d+-.", link)]
    assert len(to_sections) > 500


def test_pdf_lists_every_page_and_its_number(printed):
    book, starts = printed
    assert list(starts) == ["Contents", *map(title, PRINTED)]
    first, second, *_ = starts.values()
    listed = squeezed(book.pages[first:second])
    for name, start in list(starts.items())[1:]:
        assert f"{''.join(name.split())}{start + 1}" in listed


def test_the_cover_of_the_pdf_says_the_edition(printed):
    book, _ = printed
    version, date = edition()
    assert f"dition {version}, {date}" in book.pages[0].extract_text()
    assert version not in book.metadata.title


def test_pdf_shows_the_code_of_both_frameworks(printed, notebook):
    book, starts = printed
    chapter, after = PRINTED[1:]
    text = squeezed(book.pages[starts[title(chapter)] : starts[title(after)]])
    for tag, name in (("pytorch", "PyTorch"), ("tensorflow", "TensorFlow")):
        code = [c.source for c in notebook(chapter).code if tag in tags(c)]
        last = [source.split("\n")[-1] for source in code]
        assert len(code) > 2 and name in text
        assert [x for x in last if "".join(x.split()) not in text] == []
    ends = [page.extract_text().split("\n")[-1] for page in book.pages]
    assert not {"PyTorch", "TensorFlow"}.intersection(ends)


def test_no_picture_in_the_pdf_is_stretched(whole_book):
    whole_book.set_viewport_size({"width": 660, "height": 1000})
    whole_book.emulate_media(media="print")
    shapes = """all => all.map(e => e.width / e.height
        * e.naturalHeight / e.naturalWidth)"""
    found = whole_book.locator(".cell_output img").evaluate_all(shapes)
    assert len(found) > 10
    assert found == pytest.approx([1] * len(found), abs=0.02)


def test_links_in_the_pdf_stay_in_it_or_leave_for_the_web(printed):
    book, _ = printed
    inside = 0
    for page in book.pages:
        for link in page.get("/Annots", []):
            action = link.get_object()
            if "/Dest" in action:
                assert action["/Dest"] in book.named_destinations
                inside += 1
            else:  # to the web, or to a page that is not printed here
                assert action["/A"]["/URI"].startswith(("https://", LEFT_OUT))
    assert inside > 50
