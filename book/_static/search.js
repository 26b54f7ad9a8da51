// Loaded by the search page alone, after Sphinx's own script, which finds the
// words of a page.

// What sphinx_highlight.js would say, which no page loads.
const SPHINX_HIGHLIGHT_ENABLED = false;

// Before these pages come places whose name holds all that is asked for: terms
// of the page Topics (TERMS), then headings. The shorter the name, the better.
const EMPTY = new Set(["a", "an", "the", "is", "in", "of", "on", "with", "to",
  "for", "my", "by", "vs", "what", "why", "how", "does", "do"]);
const split = (text) => (text.toLowerCase().match(/[\p{L}\d]+/gu) ?? [])
  .filter((word) => !EMPTY.has(word)).map((word) => word.replace(/s$/, ""));
const perform = Search._performSearch;
Search._performSearch = (query, ...rest) => {
  const { alltitles, docnames, filenames, titles } = Search._index;
  const wanted = split(query);
  const found = new Map(perform(query, ...rest).map(
    (result) => [result[0] + result[2], result]));
  const add = (name, file, id, more) => {
    const held = split(name);
    const isHeld = wanted.every(
      (word) => held.some((other) => other.startsWith(word)))
      || held.join("").startsWith(wanted.join("")); // FlashAttention
    if (!wanted.length || !isHeld) return;
    const anchor = id ? `#${id}` : "";
    const place = docnames[file] + anchor;
    const score = 100 * wanted.join("").length / held.join("").length + more;
    if (found.get(place)?.[4] > score) return;
    const [title] = Object.entries(alltitles).find(([, places]) => places.some(
      (one) => one[0] === file && one[1] === (id || null))) ?? [name];
    found.set(place, [docnames[file], id ? `${titles[file]} > ${title}` : title,
      anchor, null, score, filenames[file]]);
  };
  for (const [name, places] of Object.entries(alltitles))
    for (const [file, id] of places) add(name, file, id, id ? 0 : 5);
  for (const [name, page, id] of TERMS.toReversed())
    add(name, docnames.indexOf(page), id, 3);
  // The best is the last. Pages about the book answer no question.
  const about = /\/(bibliography|teach|operate|topics|wild|versions|index)$/;
  return [...found.values()].map((result) => about.test(result[0])
    ? result.with(4, result[4] - 50) : result).sort((a, b) => a[4] - b[4]);
};

const results = document.getElementById("search-results");
// A page that was found by its words is opened where it has them.
results.addEventListener("click", ({ target }) => {
  const link = target.closest("ul a"); // not that to Topics
  if (link && !link.hash) link.href += `#:~:text=${encodeURIComponent(
    new URLSearchParams(location.search).get("q"))}`;
});
// Nothing found: perhaps the book has another name for it.
new MutationObserver(() => {
  if (/did not match/.test(Search.status.textContent))
    Search.status.innerHTML = "Nothing found. <a href='book/topics.html'>Topics"
      + "</a> lists the book's terms, with the names that other books use.";
}).observe(results, { childList: true, subtree: true });

// A page that was opened as a file cannot read the others for extracts.
if (location.protocol === "file:")
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
