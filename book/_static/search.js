// Loaded by the search page alone, after Sphinx's own script.

// After the definition of a term comes the page of that name, then a section.
// Whoever types several words has a symptom.
const query = (new URLSearchParams(location.search).get("q") ?? "").trim();
Scorer.score = ([name, title, anchor, , score]) => {
  const [page, section] = title.toLowerCase().split(" > ");
  if (section === query.toLowerCase()) return 98;
  if (page === query.toLowerCase() && !anchor) return 99;
  const isSymptom = name.endsWith("/symptoms") && / \S+ /.test(query);
  return isSymptom ? score + 50 : score;
};

// A page that was found by its words leads to a section, and the extract is
// taken from there: most of the words, most in the heading, then the shortest.
const bestSection = (page, words) => {
  const found = (text) => [...words].filter(
    (word) => text.toLowerCase().includes(word)).length;
  const places = [...page.querySelectorAll("article section[id]")].map((place) => [
    -found(place.textContent),
    -found(place.querySelector("h1, h2, h3").textContent),
    place.textContent.length,
    place,
  ]);
  places.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
  return places[0]?.[3];
};
const summarize = Search.makeSearchSummary;
Search.makeSearchSummary = (text, words, anchor) => {
  if (anchor) return summarize(text, words, anchor);
  const page = new DOMParser().parseFromString(text, "text/html");
  const heading = bestSection(page, words)?.querySelector("h1, h2, h3");
  if (!heading || heading.localName === "h1") return summarize(text, words, "");
  const id = `#${heading.closest("section").id}`;
  const summary = summarize(text, words, id) ?? document.createElement("p");
  queueMicrotask(() => {  // when it is in its place
    const link = summary.parentElement.querySelector("a");
    link.href += id;
    link.append(` > ${heading.textContent.replace(/#$/, "")}`);
  });
  return summary;
};

// A page that was opened as a file cannot read the others for extracts.
if (location.protocol === "file:")
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
