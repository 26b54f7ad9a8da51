// The book's small Llama, one letter a call, with its keys and values kept.
// sizes: those of LlamaConfig; weights: the text that cellbycell.live packs.
({sizes, weights}) => {
  const {vocab_size, num_layers, d_model, num_heads, key_heads, d_head, d_ff} =
    sizes;
  const letters = ".abcdefghijklmnopqrstuvwxyz -'";
  // As cellbycell.names.plain: in lower case, without accents.
  const plain = (text) => text.toLowerCase().normalize("NFD")
    .replace(/\p{M}/gu, "");
  const wide = num_heads * d_head, narrow = key_heads * d_head;
  const matrix = (rows, columns) => ({rows, columns});
  const scale = matrix(1, d_model);
  // In the order in which a checkpoint names them.
  const parts = {
    embedding: matrix(vocab_size, d_model),
    layers: Array.from({length: num_layers}, () => ({
      attentionNorm: {...scale},
      query: matrix(wide, d_model),
      key: matrix(narrow, d_model),
      value: matrix(narrow, d_model),
      output: matrix(d_model, wide),
      forwardNorm: {...scale},
      gate: matrix(d_ff, d_model),
      up: matrix(d_ff, d_model),
      down: matrix(d_model, d_ff),
    })),
    norm: {...scale},
    linear: matrix(vocab_size, d_model),
  };

  // All rows in int8, then the factor of each row in float16.
  const every = [parts.embedding, ...parts.layers.flatMap(Object.values),
    parts.norm, parts.linear];
  const bytes = Uint8Array.from(atob(weights), (sign) => sign.charCodeAt(0));
  const numbers = new Int8Array(bytes.buffer);
  const count = every.reduce((sum, {rows, columns}) => sum + rows * columns, 0);
  const factor = (row) => {
    const half = bytes[count + 2 * row] + 256 * bytes[count + 2 * row + 1];
    const power = half >> 10, rest = half & 1023;
    return power ? 2 ** (power - 25) * (1024 + rest) : 2 ** -24 * rest;
  };
  let at = 0, row = 0;
  for (const part of every) {
    const {rows, columns} = part;
    part.numbers = Float32Array.from({length: rows * columns}, (_, i) =>
      numbers[at + i] * factor(row + Math.floor(i / columns)));
    at += rows * columns;
    row += rows;
  }

  const times = ({numbers, rows, columns}, x) => {
    const result = new Float32Array(rows);
    for (let row = 0, i = 0; row < rows; row++) {
      let sum = 0;
      for (let column = 0; column < columns; column++)
        sum += numbers[i++] * x[column];
      result[row] = sum;
    }
    return result;
  };
  const softmax = (scores) => {
    const top = Math.max(...scores);
    const powers = Array.from(scores, (score) => Math.exp(score - top));
    const sum = powers.reduce((a, b) => a + b, 0);
    return powers.map((power) => power / sum);
  };
  const normed = (x, {numbers}) => { // RMSNorm
    const square = x.reduce((sum, one) => sum + one * one, 0) / x.length;
    return x.map((one, i) => one / Math.sqrt(square + 1e-6) * numbers[i]);
  };
  const turned = (x, position) => { // rotary positions, in halves
    const half = d_head / 2, result = new Float32Array(x.length);
    for (let i = 0; i < x.length; i += d_head)
      for (let c = 0; c < half; c++) {
        const angle = position * 10000 ** (-c / half);
        const cos = Math.cos(angle), sin = Math.sin(angle);
        result[i + c] = x[i + c] * cos - x[i + half + c] * sin;
        result[i + half + c] = x[i + c] * sin + x[i + half + c] * cos;
      }
    return result;
  };
  const dot = (x, i, y, j) => {
    let sum = 0;
    for (let c = 0; c < d_head; c++) sum += x[i + c] * y[j + c];
    return sum;
  };

  // The logits of the letter after id, and the weights (layer, head, key).
  // cache: [] at the start. rotary: are there positions? sees: how many of the
  // last letters; off: (layer, head) -> is this head silent?
  const step = (id, cache,
    {rotary = true, sees = Infinity, off = () => false} = {}) => {
    const {embedding, layers, norm, linear} = parts;
    const position = rotary ? cache[0]?.length ?? 0 : 0;
    let x = embedding.numbers.slice(id * d_model, (id + 1) * d_model);
    const add = (y) => x = x.map((one, i) => one + y[i]);
    const looks = layers.map((part, layer) => {
      const kept = cache[layer] ??= [];
      const before = normed(x, part.attentionNorm);
      const query = turned(times(part.query, before), position);
      kept.push({
        key: turned(times(part.key, before), position),
        value: times(part.value, before),
      });
      const found = new Float32Array(wide);
      const looks = Array.from({length: num_heads}, (_, head) => {
        const group = Math.floor(head / (num_heads / key_heads)) * d_head;
        const look = softmax(kept.map(({key}, s) => s < kept.length - sees
          ? -Infinity
          : dot(query, head * d_head, key, group) / Math.sqrt(d_head)));
        if (!off(layer, head))
          look.forEach((weight, s) => {
            for (let c = 0; c < d_head; c++)
              found[head * d_head + c] += weight * kept[s].value[group + c];
          });
        return look;
      });
      add(times(part.output, found));
      const inner = normed(x, part.forwardNorm); // SwiGLU
      const gate = times(part.gate, inner), up = times(part.up, inner);
      add(times(part.down, gate.map((one, i) =>
        one / (1 + Math.exp(-one)) * up[i])));
      return looks;
    });
    return {logits: times(linear, normed(x, norm)), looks};
  };
  return {sizes, letters, plain, softmax, step};
}
