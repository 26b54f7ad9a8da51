// A name, the loss of each letter, where each head looks, the next letter.
(given, part, inputs) => {
  const {sizes, letters, plain, softmax, step} = model;
  const typed = plain(given.get("name"));
  const odd = [...typed].find((sign) => letters.indexOf(sign) < 1);
  inputs.name.setAttribute("aria-invalid", odd !== undefined);
  if (odd !== undefined)
    return `“${odd}” is no letter of this model: type a to z, a space, - or '. `
      + "The picture still shows the last name.";
  const ids = [...`.${typed}`].map((sign) => letters.indexOf(sign));
  const last = ids.length - 1;
  if (inputs.name.dataset.read !== typed) { // look after the letter typed last
    inputs.query.max = last;
    if (inputs.name.dataset.read !== undefined) inputs.query.value = last;
    inputs.query.nextSibling.textContent = inputs.query.value;
    inputs.name.dataset.read = typed;
  }
  const query = Number(inputs.query.value);

  const silent = Array.from({length: sizes.num_layers}, (_, layer) => {
    const heads = given.getAll(`layer${layer}`).map(Number);
    return Array.from({length: sizes.num_heads}, (_, head) =>
      !heads.includes(head));
  });
  const parts = {
    rotary: given.has("rotary"),
    sees: Number(given.get("sees")),
    off: (layer, head) => silent[layer][head],
  };
  const isWhole = parts.rotary && parts.sees > last
    && !silent.flat().some(Boolean);
  const read = (parts) => {
    const cache = [];
    return ids.map((id) => step(id, cache, parts));
  };
  const whole = read({}), now = isWhole ? whole : read(parts);
  const losses = (steps) => ids.slice(1).map((id, t) =>
    -Math.log(softmax(steps[t].logits)[id]));
  const mean = (row) => (row.reduce((a, b) => a + b, 0) / last).toFixed(2);

  const put = (name, s, share, text) => {
    const cell = part(`${name}-${s}`);
    cell.removeAttribute("style");
    if (share === undefined) cell.textContent = text;
    else shade(cell, share, text);
  };
  const putLosses = (name, row) => {
    for (let s = 0; s < data.columns; s++) {
      const loss = row[s - 1];
      if (loss === undefined) put(name, s, loss, "");
      else put(name, s, Math.min(loss / 6, 1), loss.toFixed(loss < 9.95 ? 1 : 0));
    }
  };
  putLosses("loss", losses(whole));
  putLosses("less", isWhole ? [] : losses(now));
  part("less").parentElement.hidden = isWhole;
  for (let s = 0; s < data.columns; s++) {
    put("letter", s, undefined, data.signs[ids[s]] ?? "");
    part(`letter-${s}`).style.fontWeight = s === query ? 700 : "";
  }
  const short = (weight) => weight < 0.095 ? ""
    : weight < 0.995 ? weight.toFixed(2).slice(1) : "1";
  now[query].looks.forEach((heads, layer) => heads.forEach((look, head) => {
    part(`${layer}-${head}`).style.textDecoration =
      silent[layer][head] ? "line-through" : "";
    for (let s = 0; s < data.columns; s++)
      put(`${layer}-${head}`, s, look[s], short(look[s] ?? 0));
  }));

  const begun = query ? `“${typed.slice(0, query)}”` : "the beginning";
  part("begun").textContent = `After ${begun}, the heads of layer 0 look at`;
  const shares = softmax(now[query].logits);
  part("next").setAttribute("d", shares.map((share, n) =>
    `M${(3 + 11.8 * n).toFixed(1)} 100V${(100 - 90 * share).toFixed(1)}h9V100z`
    ).join(""));
  const best = [...shares.keys()].sort((a, b) => shares[b] - shares[a]);
  const [first, second, third] = best.slice(0, 3).map((n) =>
    `${data.words[n]} (${shares[n].toFixed(2)})`);
  const less = isWhole ? "" : `, and ${mean(losses(now))} with parts off`;
  return `After ${begun}, the model expects ${first}, ${second} or ${third}.`
    + (last
      ? ` The mean loss of the letters is ${mean(losses(whole))}${less}.` : "");
}
