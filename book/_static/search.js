// Loaded by the search page alone, after Sphinx's own script.

// What sphinx_highlight.js would say, which no page loads.
const SPHINX_HIGHLIGHT_ENABLED = false;

// After the definition of a term comes the page of that name, then a section.
// Whoever types several words has a symptom.
const query = (new URLSearchParams(location.search).get("q") ?? "").trim();
Scorer.score = ([name, title, anchor, , score]) => {
  const [page, section] = title.toLowerCase().split(" > ");
  if (section === query.toLowerCase()) return 98;
  if (page === query.toLowerCase() && !anchor) return 99;
  const isSymptom = name.endsWith("/symptoms") && / \S+ /.test(query);
  // Words on a page about the book, not in a chapter, come last.
  const isAbout = /\/(bibliography|teach|operate|topics|wild|versions|index)$/;
  return score + (isSymptom ? 50 : 0) - (isAbout.test(name) ? 50 : 0);
};

// The terms of the page Topics; words that tell nothing do not count.
const EMPTY = new Set(["a", "an", "the", "is", "in", "of", "on", "with", "to",
  "for", "my", "by", "vs", "what", "why", "how", "does", "do"]);
const split = (text) => (text.toLowerCase().match(/[\p{L}\d]+/gu) ?? [])
  .filter((word) => !EMPTY.has(word));
const fits = (word, other) => other.startsWith(word)
  || (word.endsWith("s") && other.startsWith(word.slice(0, -1)));

// Then headings and terms that hold the words: "position" finds "Sines and
// positions", "overfit" finds "overfit one batch".
const perform = Search._performSearch;
Search._performSearch = (...asked) => {
  const found = perform(...asked);
  const { alltitles, indexentries, docnames, filenames, titles } = Search._index;
  const wanted = split(asked[0]);
  const add = (name, places, least) => {
    const held = split(name);
    if (!wanted.length || !wanted.every(
      (word) => held.some((other) => fits(word, other)))) return;
    const close = least + 30 * Math.min(1, asked[0].length / name.length);
    for (const [file, id] of places) {
      const anchor = id ? "#" + id : "";
      // A whole page first, what others have written last.
      const isSource = /\/(bibliography|teach)$/.test(docnames[file]);
      const score = close + (id ? 0 : 15) - (isSource ? 30 : 0);
      const known = found.find(
        (result) => result[0] === docnames[file] && result[2] === anchor);
      if (known) known[4] = Math.max(known[4], score);
      else found.push([docnames[file], `${titles[file]} > ${name}`, anchor,
        null, score, filenames[file]]);
    }
  };
  for (const [name, places] of Object.entries(alltitles)) add(name, places, 60);
  for (const [name, places] of Object.entries(indexentries))
    add(name, places, 50);
  for (const [terms, page, id, isFirst] of TERMS) for (const term of terms) {
    const held = split(term);
    const isWhole = held.join() === wanted.join() || held.join("") === wanted.join("");
    if (!wanted.length || !(isWhole || wanted.every(
      (word) => held.some((other) => fits(word, other))))) continue;
    const file = docnames.indexOf(page);
    const title = Object.entries(alltitles).find(([, places]) => places.some(
      (place) => place[0] === file && place[1] === id))?.[0];
    const score = isWhole ? (isFirst ? 101 : 97.5) : 70 + 20 * wanted.length / held.length;
    const anchor = id ? "#" + id : "";
    const known = found.find(
      (result) => result[0] === page && result[2] === anchor);
    if (known) known[4] = Math.max(known[4], score);
    else if (file >= 0) found.push([page,
      title ? `${titles[file]} > ${title}` : titles[file], anchor, null, score,
      filenames[file]]);
  }
  return found.sort((one, other) => one[4] - other[4]); // the best is the last
};

// A page that was found by its words leads to a section, and the extract is
// taken from there: most of the words, most in the heading, then in
// bold, then the shortest.
const bestSection = (page, words) => {
  const found = (text) => [...words].filter(
    (word) => text.toLowerCase().includes(word)).length;
  const text = (parts) => [...parts].map((part) => part.textContent).join(" ");
  const places = [...page.querySelectorAll("article section[id]")].map((place) => [
    -found(place.textContent),
    -found(place.querySelector("h1, h2, h3").textContent),
    -found(text(place.querySelectorAll("strong"))),
    place.textContent.length,
    place,
  ]);
  const order = (a, b, at = 0) => a[at] - b[at] || (at < 3 && order(a, b, at + 1));
  places.sort((a, b) => order(a, b));
  return places[0]?.[4];
};
const makeSummary = Search.makeSearchSummary;
const summarize = (...given) =>
  makeSummary(...given) ?? document.createElement("p");
Search.makeSearchSummary = (text, words, anchor) => {
  if (anchor) return summarize(text, words, anchor);
  const page = new DOMParser().parseFromString(text, "text/html");
  const heading = bestSection(page, words)?.querySelector("h1, h2, h3");
  if (!heading || heading.localName === "h1") return summarize(text, words, "");
  const id = `#${heading.closest("section").id}`;
  const summary = summarize(text, words, id);
  queueMicrotask(() => {  // when it is in its place
    const link = summary.parentElement.querySelector("a");
    link.href += id;
    link.append(` > ${heading.textContent.replace(/#$/, "")}`);
  });
  return summary;
};

// Nothing found: perhaps the book has another name for it.
const results = document.getElementById("search-results");
new MutationObserver(() => {
  if (/did not match/.test(Search.status.textContent))
    Search.status.innerHTML = "Nothing found. <a href='book/topics.html'>Topics"
      + "</a> lists the book's terms, with the names that other books use.";
}).observe(results, { childList: true, subtree: true });

// A page that was opened as a file cannot read the others for extracts.
if (location.protocol === "file:")
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
