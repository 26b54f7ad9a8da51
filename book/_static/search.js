// The search page ranks the sections of the book, which search_index.py wrote
// to sections.js, by how much of the query each covers: whole words, rare ones
// before common ones, headings and terms before text.

const listed = (text) => text.trim().split(/\s+/);
const EMPTY = new Set(listed(`a an the is are in of on with to for my by vs or
  and i it its what why how does do can at from when between use using this that
  get which should much need itself add make some t s m re don doesn isn`));
// So general that another word decides, if there is one.
const DULL = new Set(listed("model pytorch tensorflow transformer work unit"));
// A word finds the others of its line, too, for a little less.
const SYNONYMS = `
generate decode write sample
gpu machine device distributed
huggingface hugging hf transformers
future later
garbage nonsense gibberish wrong
slow fast speed cost
memory byte ram
bit int8 int4 quantize
inverted polarity true
sqrt root
d_model width dim dimension
decreasing stay stuck plateau
repeat repetition same
number many count
parallel parallelism sharded
weight parameter
long longer context
quadratic square cost
update change learn
sinusoidal sine wave
finetune sft adapter
eval evaluation inference
initialize start
duplicate repeated
ignored matter
stable overflow maximum
convert carry load
test check verify
qkv projection
fuse packed
tie tying
rotate rotary turn
data row text`;
// Words of somebody who looks for a mistake.
const TROUBLE = `nan inf wrong slow repeat same different differ change garbage
  nonsense gibberish error fail missing no stuck bad worse explode diverge flat
  never always not too good low high ignored future leak broken mismatch
  warning`;
// What every chapter has, exercises, and what is behind the chapters.
const USUAL = RegExp("^(What you will be|Notation|Setup|Summary|Exercise|"
  + "Further|Against)");
const PLACES = [
  [/(bibliography|index|operate|teach|topics|versions)$/, 0.3],
  [/(reference\w*|wild)$/, 0.5], [/libraries$/, 0.8]];

const stem = (word) => {
  const base = word.toLowerCase().replace(/(?<=..[^su])s$/, "")
    .replace(/i[sz](ations?|e|ed|ing)$/, "iz");
  return base.length < 4 ? base : base.replace(/(?<=...)(ing|ed|e)$/, "")
    .replace(/([^aeiouls])\1$/, "$1");
};
// FlashAttention is also flash attention, batch_first a first batch.
const apart = (word) => {
  const parts = word.match(/\p{Lu}?\p{Ll}+|\p{Lu}+(?!\p{Ll})|\d+/gu) ?? [];
  return (/_|\p{Ll}\p{Lu}/u.test(word) ? [word, ...parts] : [word])
    .filter((part) => !EMPTY.has(part.toLowerCase())).map(stem);
};
const known = new Map();
const wordsOf = (text) => (text.match(/[\p{L}\d_]+/gu) ?? []).map((word) => {
  if (!known.has(word)) known.set(word, apart(word));
  return known.get(word);
});
const split = (text) => wordsOf(text).flat();
const whole = (text) => wordsOf(text).flatMap((parts) => parts.slice(0, 1));
const pairs = (words) => words.slice(1).map((word, i) => words[i] + word);

const others = new Map();
for (const line of SYNONYMS.trim().split("\n").map(split))
  for (const word of line)
    others.set(word, [...(others.get(word) ?? []), ...line]);
const trouble = new Set(split(TROUBLE));

// For each section: the weight of its words, its names, and its own weight.
const counts = new Map();
const index = SECTIONS.map(([page, anchor, title, first, more, text, code]) => {
  const weights = new Map();
  const add = (words, weight) => {
    for (const word of words)
      weights.set(word, (weights.get(word) ?? 0) + weight);
  };
  // A name is hit as it is written: RoPE, not its syllables.
  const names = [title, ...first.split(/[;,()]| and | or /)].map(whole)
    .filter((words) => words.length);
  const said = split(text);
  const often = new Map();
  for (const word of said) often.set(word, (often.get(word) ?? 0) + 1);
  for (const [word, times] of often)
    add([word], 2 * times / (times + 0.5 + said.length / 200));
  add(new Set(split(code)), 0.4);
  add(new Set(split(PAGES[page][1])), 1);
  add(new Set(split(title)), 0.5);
  add(new Set(split(more)), 2);
  add(new Set([...split(`${title} ${first}`), ...names.flatMap(pairs)]), 3);
  for (const word of weights.keys())
    counts.set(word, (counts.get(word) ?? 0) + 1);
  const place = PLACES.find(([pages]) => pages.test(PAGES[page][0]));
  return { weights, names, factor: (place?.[1] ?? 1)
    * (anchor && USUAL.test(title) ? 0.5 : 1),
    isSymptom: PAGES[page][0].endsWith("symptoms") };
});
const rare = (word) => Math.log(1 + SECTIONS.length / Math.max(
  ...[word, ...(counts.has(word) ? [] : others.get(word) ?? [])].map(
    (one) => counts.get(one) ?? 1)));

const rank = (query) => {
  const said = split(query);
  const telling = said.filter((word) => !DULL.has(word));
  const asked = telling.length ? telling : said;
  const joined = pairs(asked);
  // How rare a word is, and what stands for it: itself, with a neighbour, others.
  const literal = new Set([...said, ...joined]);
  const terms = asked.map((word, i) => [rare(word), [
    [word, 1], [joined[i - 1], 1], [joined[i], 1],
    ...(others.get(word) ?? []).map((other) => [other, 0.6])]]);
  const all = terms.reduce((sum, [worth]) => sum + worth, 0);
  const inTrouble = asked.some((word) => trouble.has(word));
  return index.map(({ weights, names, factor, isSymptom }, number) => {
    let score = 0, covered = 0;
    for (const [worth, ways] of terms) {
      const best = Math.max(...ways.map(
        ([word, share]) => share * (weights.get(word) ?? 0)));
      score += worth * best;
      covered += worth * Math.min(1, best);
    }
    // A name that is what was asked for, no more and no less.
    const hit = Math.max(...names.map((name) => {
      const held = new Set([...name, ...pairs(name)]);
      const part = terms.reduce((sum, [worth, ways]) => sum
        + (ways.slice(0, 3).some(([word]) => held.has(word)) ? worth : 0), 0);
      return name.filter((word) => literal.has(word)).length / name.length
        * part / all;
    }), 0);
    const own = isSymptom ? (inTrouble ? 1.1 : 0.6) : factor;
    return [own * (covered / all) ** 1.5 * (score + 5 * all * hit ** 2), number];
  }).filter(([score]) => score > 0).sort((a, b) => b[0] - a[0]);
};

// The page: what was asked, and the best sections with an extract of each.
const MOST = 20;
const asked = new URLSearchParams(location.search).get("q") ?? "";
const results = document.getElementById("search-results");
const field = document.querySelector(".bd-search-container input[type=search]");

const element = (tag, name, ...children) => {
  const made = document.createElement(tag);
  made.className = name;
  made.append(...children);
  return made;
};

// The part of a text with most of the words, which are marked.
const extract = (text, wanted) => {
  const isWanted = (word) => split(word).some((one) => wanted.has(one));
  const words = text.split(" "), length = 32;
  const hits = words.map((word) => isWanted(word) ? 1 : 0);
  let best = 0, most = 0;
  for (let start = 0; start < words.length; start += 4) {
    const here = hits.slice(start, start + length).reduce((a, b) => a + b, 0);
    if (here > most) [best, most] = [start, here];
  }
  const part = words.slice(best, best + length).flatMap((word, i) => [
    hits[best + i] ? element("mark", "", word) : word, " "]);
  return element("p", "context", best ? "… " : "", ...part,
    best + length < words.length ? "…" : "");
};

const show = (query) => {
  const wanted = new Set([...split(query), ...pairs(split(query))]);
  const found = rank(query);
  const good = found.filter(([score]) => score > found[0][0] / 10).slice(0, MOST);
  const list = element("ol", "search", ...good.map(([, number]) => {
    const [page, anchor, title, , , text] = SECTIONS[number];
    const [name, heading] = PAGES[page];
    const link = element("a", "", (anchor ? `${heading} › ` : "")
      + title.replace("Side road: ", ""));
    link.href = `${name}.html${anchor && "#"}${anchor}`;
    return element("li", "", link, text ? extract(text, wanted) : "");
  }));
  const status = element("p", "search-summary");
  status.setAttribute("role", "status");
  results.replaceChildren(status, list);
  // A screen reader tells what changes, not what was there from the start.
  requestAnimationFrame(() => {
    status.textContent = good.length ? "The best comes first; sections found: "
      + `${good.length}.` : "Nothing found. ";
    if (good.length) return;
    const link = element("a", "", "Topics");
    link.href = "book/topics.html";
    status.append(link, " lists the book's terms, with the names that other "
      + "books use.");
  });
};

field.value = asked;
if (asked.trim()) show(asked);
