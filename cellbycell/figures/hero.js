// A name appears letter by letter, with the bars of each next letter and where
// the heads look. The stored example needs no model; whoever types loads it.
(root, example) => {
  const LETTERS = ".abcdefghijklmnopqrstuvwxyz -'", LONGEST = 20;
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const {beginning, letter, another, heads} = root.querySelector("form");
  const [letters, bars] = ["letters", "bars"].map((name) => [...part(name).children]);
  const cells = [...part("heads").querySelectorAll("i")];
  const inWords = (n) => ["the end", ...LETTERS.slice(1, 27), "a space"][n]
    ?? LETTERS[n];
  let now = example, timer, draw = 0, reached = 0;

  // What the model knows after so many letters, of those that are written.
  const show = (at) => {
    const {typed, name, steps} = now, {probs, looks} = steps[at];
    const next = at < name.length ? LETTERS.indexOf(name[at]) : 0;
    reached = Math.max(reached, at);
    letters.forEach((box, i) => {
      const sign = i ? name[i - 1]?.replace(" ", "␣") : ".";
      box.textContent = i > reached ? "" : sign;
      box.className = i > at ? "later" : i > typed.length ? "written" : "";
      box.toggleAttribute("data-last", i === at);
    });
    bars.forEach((bar, n) => {
      bar.style.setProperty("--share", probs[n]);
      bar.toggleAttribute("data-next", n === next && at >= typed.length);
    });
    cells.forEach((cell, i) => cell.style.setProperty("--share",
      looks[Math.floor(i / (LONGEST + 1))][i % (LONGEST + 1)] ?? 0));
    letter.max = name.length;
    letter.value = at;
    const best = [...probs.keys()].sort((a, b) => probs[b] - probs[a]);
    const likely = best.slice(0, 3).map((n) =>
      `${inWords(n)} (${probs[n].toFixed(2)})`).join(", ");
    part("said").textContent =
      `After “${name.slice(0, at)}”, the likeliest next: ${likely}.`;
  };
  // Letter by letter, and back to the beginning, where most was open.
  const play = (at) => {
    clearTimeout(timer);
    const {typed, name} = now;
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    show(isCalm ? name.length : at);
    if (!isCalm && at < name.length)
      return timer = setTimeout(() => play(at + 1), 300);
    timer = setTimeout(() => show(typed.length), isCalm ? 0 : 1000);
    if (now !== example)
      part("heard").textContent = `It has written “${name}”.`;
  };

  const begin = (script) => new Promise((done) => {
    if (window.namesModel) return done();
    const root = document.documentElement.dataset.content_root;
    script.src = `${root}_static/names_model.js`;
    script.onload = done;
    document.head.append(script);
  });
  let loaded;
  const load = () => loaded ??= begin(document.createElement("script"));

  let state = 1;
  const uniform = () => { // the generator mulberry32
    let x = state = state + 0x6d2b79f5 | 0;
    x = Math.imul(x ^ x >>> 15, x | 1);
    x ^= x + Math.imul(x ^ x >>> 7, x | 61);
    return ((x ^ x >>> 14) >>> 0) / 2 ** 32;
  };
  const write = (typed) => {
    const {softmax, step} = window.namesModel, cache = [], steps = [];
    const read = (sign) => {
      const {logits, looks} = step(LETTERS.indexOf(sign), cache);
      const probs = softmax(logits.map((one) => one / example.temperature));
      steps.push({probs, looks: looks.flat()});
      return probs;
    };
    let name = typed, probs;
    for (const sign of `.${typed}`) probs = read(sign);
    while (name.length < LONGEST) {
      let rest = uniform();
      const n = probs.findIndex((share) => (rest -= share) < 0);
      if (n < 1) break; // the dot, which ends a name
      name += LETTERS[n];
      probs = read(LETTERS[n]);
    }
    return {typed, name, steps};
  };
  const start = async (wait) => {
    clearTimeout(timer);
    await load();
    const typed = window.namesModel.plain(beginning.value);
    const odd = [...typed].find((sign) => LETTERS.indexOf(sign) < 1);
    beginning.setAttribute("aria-invalid", odd !== undefined);
    if (odd !== undefined) {
      part("said").textContent = part("heard").textContent = `“${odd}” is no `
        + "letter of this model: type a to z, a space, - or '.";
      return;
    }
    state = ++draw;
    now = write(typed);
    reached = 0;
    show(typed.length);
    timer = setTimeout(() => play(typed.length), wait);
  };

  root.querySelector("form").hidden = false;
  root.addEventListener("focusin", load, {once: true});
  beginning.oninput = () => {
    draw = 0;
    start(500);
  };
  letter.oninput = () => {
    clearTimeout(timer);
    show(Number(letter.value));
  };
  another.onclick = () => start(0);
  heads.onclick = () => {
    part("heads").hidden = !part("heads").hidden;
    heads.setAttribute("aria-expanded", !part("heads").hidden);
  };
  play(example.typed.length);
}
