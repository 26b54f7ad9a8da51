// Loaded by the search page alone, after Sphinx's own script.

// After the definition of a term comes the page of that name, then a section.
const query = (new URLSearchParams(location.search).get("q") ?? "").trim();
Scorer.score = ([, title, anchor, , score]) => {
  const [page, section] = title.toLowerCase().split(" > ");
  if (section === query.toLowerCase()) return 98;
  return page === query.toLowerCase() && !anchor ? 99 : score;
};

// A page that was opened as a file cannot read the others for extracts.
if (location.protocol === "file:")
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
