// Eight names that begin as typed, drawn by the sliders.
(given, part, inputs) => {
  const {letters, plain, softmax, step} = model;
  const typed = plain(given.get("name"));
  const odd = [...typed].find((sign) => letters.indexOf(sign) < 1);
  inputs.name.setAttribute("aria-invalid", odd !== undefined);
  if (odd !== undefined)
    return `“${odd}” is no letter of this model: type a to z, a space, - or '. `
      + "The picture still shows the last beginning.";
  const [heat, k, p, least, draw] = ["temperature", "k", "p", "least", "draw"]
    .map((name) => Number(given.get(name)));

  const filter = (logits) => { // as filter_logits does, in its order
    const order = [...logits.keys()].sort((a, b) => logits[b] - logits[a]);
    const kept = Array.from(logits, () => -Infinity);
    const inK = order.slice(0, k), shares = softmax(
      inK.map((n) => logits[n] / heat));
    let before = 0;
    inK.forEach((n, i) => {
      const inP = p === 1 || before < p || before === 0;
      if (inP && shares[i] >= least * shares[0]) kept[n] = logits[n] / heat;
      before += shares[i];
    });
    return kept;
  };
  let state = draw;
  const gumbel = () => { // from the generator mulberry32
    let x = state = state + 0x6d2b79f5 | 0;
    x = Math.imul(x ^ x >>> 15, x | 1);
    x ^= x + Math.imul(x ^ x >>> 7, x | 61);
    return -Math.log(-Math.log(((x ^ x >>> 14) >>> 0) / 2 ** 32 + 2 ** -33));
  };

  const cache = [];
  let start;
  for (const sign of `.${typed}`)
    start = step(letters.indexOf(sign), cache).logits;
  for (let i = 0; i < 8; i++) {
    let name = typed, logits = start;
    const own = cache.map((layer) => [...layer]);
    while (name.length < data.longest) {
      const scores = filter(logits).map((score) => score + gumbel());
      const id = scores.indexOf(Math.max(...scores));
      if (id === 0) break; // the dot, which ends a name
      name += letters[id];
      logits = step(id, own).logits;
    }
    part(`name-${i}`).textContent = name;
  }

  const bars = (shares, wide, off) => shares.map((share, n) =>
    `M${(3 + off + 11.8 * n).toFixed(1)} 100V${(100 - 90 * share).toFixed(1)}`
    + `h${wide}V100z`).join("");
  const all = softmax(start.map((score) => score / heat));
  const kept = softmax(filter(start)), isKept = (_, n) => kept[n] > 0;
  part("all").setAttribute("d", bars(all, 10, 0));
  part("kept").setAttribute("d", bars(kept, 6, 2));
  const share = all.filter(isKept).reduce((a, b) => a + b, 0);
  return `After “${typed}”, ${all.filter(isKept).length} of ${all.length} `
    + `letters are kept, with ${share.toFixed(2)} of the probability.`;
}
