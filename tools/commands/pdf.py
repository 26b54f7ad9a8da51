"""Print the whole book, as built by `make site`, to one PDF: `make pdf`.

Chromium prints the pages in the order of the contents, joined to one document
and without their scripts: both frameworks, every fold open, figures at rest.
It prints twice, for only a print tells which page each heading is on.
"""

import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

from playwright.sync_api import sync_playwright
from pypdf import PdfReader

from tools import chromium
from tools.settings import HTML

PDF = HTML.parent / "book.pdf"
STYLE = """
@page { size: A4; margin: 18mm; @bottom-center { content: counter(page) } }
@page cover { @bottom-center { content: none } }
article, .book-contents { break-before: page; }
.sd-tab-set > .sd-tab-label { display: block !important; }
.sd-tab-set > .sd-tab-content { display: block !important; }
details::details-content { content-visibility: visible; }
.book-cover { page: cover; padding-top: 30%; text-align: center; }
.book-cover img { width: 8rem; height: auto; }
.book-cover p { font: 600 3rem var(--pst-font-family-heading); }
.book-contents a { display: flex; color: inherit; text-decoration: none; }
.book-contents a::after { margin-left: auto; content: attr(data-page); }
.book-contents .of-h1 { margin-top: 0.4rem; font-weight: 600; }
.book-contents .of-h2 { padding-left: 1.5rem; }
"""
LIST_PAGES = """() => [...new Set(Array.from(
    document.querySelectorAll(".bd-links a.internal"),
    link => link.href.split("#")[0]))]"""
# Ids and links between pages become ids and links within the one document.
JOIN_PAGES = """([pages, rules]) => {
    const box = document.createElement("main");
    box.className = "bd-article-container";
    const names = new Map(pages.map(
        ([address], place) => [address, `page-${place}`]));
    for (const [address, source] of pages) {
        const page = new DOMParser().parseFromString(source, "text/html");
        const article = page.querySelector("article.bd-article");
        for (const part of article.querySelectorAll("[id]"))
            part.id = `${names.get(address)}-${part.id}`;
        for (const image of article.querySelectorAll("img")) {
            image.loading = "eager";
            image.src = new URL(image.getAttribute("src"), address);
        }
        for (const link of article.querySelectorAll("[href]")) {
            const [target, id] = new URL(
                link.getAttribute("href"), address).href.split("#");
            const name = names.get(target);
            if (name)
                link.setAttribute("href", `#${name}` + (id ? `-${id}` : ""));
        }
        article.id = names.get(address);
        box.append(article);
    }
    const contents = document.createElement("nav");
    contents.className = "book-contents";
    for (const heading of box.querySelectorAll("h1, h2")) {
        const entry = document.createElement("a");
        entry.className = `of-${heading.localName}`;
        entry.textContent = heading.textContent.replace(/#$/, "");
        entry.href = `#${heading.closest("section").id}`;
        contents.append(entry);
    }
    const title = document.createElement("h1");
    title.textContent = "Contents";
    contents.prepend(title);
    const cover = document.createElement("div");
    cover.className = "book-cover";
    cover.append(
        ...document.querySelector(".navbar-brand").childNodes);
    box.prepend(cover, contents);
    const style = document.createElement("style");
    style.textContent = rules;
    document.head.append(style);
    document.title = cover.textContent.trim();
    cover.append(document.querySelector(".edition"));
    document.body.replaceChildren(box);
}"""
IS_WHOLE = """() => document.fonts.status === "loaded" &&
    Array.from(document.images).every(image => image.complete)"""
LIST_HEADINGS = """() => Array.from(
    document.querySelectorAll(".book-contents a"),
    link => link.hash.slice(1))"""
SET_NUMBERS = """numbers =>
    document.querySelectorAll(".book-contents a").forEach(
        (entry, place) => entry.dataset.page = numbers[place])"""


def read(address):
    return Path(unquote(urlsplit(address).path)).read_text("utf-8")


def heading_pages(path, names):
    """Return the page numbers of a PDF's headings, by their ids."""
    reader = PdfReader(path)
    places = reader.named_destinations
    return [
        reader.get_destination_page_number(places[f"/{name}"]) + 1
        for name in names
    ]


def open_book(browser, names=None):
    """Return a page of the browser that holds the whole book.

    names: of the pages that are wanted, as book/masks; all unless told.
    """
    # The pages' own policy would forbid the style sheet that is added here.
    context = browser.new_context(java_script_enabled=False, bypass_csp=True)
    page = context.new_page()
    page.goto((HTML / "book" / "index.html").as_uri())
    addresses = page.evaluate(LIST_PAGES)
    if names:
        wanted = {(HTML / f"{name}.html").as_uri() for name in names}
        addresses = [a for a in addresses if a in wanted]
    sources = [[address, read(address)] for address in addresses]
    page.evaluate(JOIN_PAGES, [sources, STYLE])
    # What waits in the page itself would wait for ever, without scripts.
    while not page.evaluate(IS_WHOLE):
        page.wait_for_timeout(50)
    return page


def print_book(page, path):
    paper = {"path": path, "prefer_css_page_size": True}
    page.pdf(**paper)
    numbers = heading_pages(path, page.evaluate(LIST_HEADINGS))
    page.evaluate(SET_NUMBERS, numbers)
    page.pdf(tagged=True, outline=True, **paper)


def main():
    path = chromium.find_chromium()
    if path is None:
        sys.exit(f"The book was not printed. {chromium.MISSING}")
    with sync_playwright() as playwright:
        browser = chromium.launch(playwright, path)
        print_book(open_book(browser), PDF)
        browser.close()
    print(f"The book is printed: open {PDF}")


if __name__ == "__main__":
    main()
