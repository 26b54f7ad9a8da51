const make = (tag, options, ...inside) => {
  const node = Object.assign(document.createElement(tag), options);
  node.append(...inside);
  return node;
};
const paint = (cell, colour) => {
  const [r, g, b] = [1, 3, 5].map((at) =>
    parseInt(colour.slice(at, at + 2), 16));
  cell.style.background = colour;
  cell.style.color = 30 * r + 59 * g + 11 * b < 10700 ? "#fff" : "#000";
};
const shade = (cell, share, text = share.toFixed(2), shades = SHADES) => {
  cell.textContent = text;
  paint(cell, shades[Math.floor(20 * share + 0.5)]);
};
const labelled = (label, {play, ...options}) => {
  const input = make("input", options);
  const inside = [input, make("span", {}, label)];
  if (["range", "text"].includes(options.type)) {
    inside.reverse();
    inside[0].className = "name";
  }
  if (options.type == "range") {
    const steps = (input.max - input.min) / (input.step || 1);
    input.style.width = `${Math.min(320, Math.max(130, 3 * steps))}px`;
    inside.push(make("span"));
  }
  return make("label", {}, ...inside);
};
// Radio buttons or boxes side by side; what would fill lines is a menu.
const group = (label, {choices, chosen, ...rest}) => {
  const name = make("span", {className: "name"}, label);
  if (rest.type == "radio" && choices.length > 8)
    return make("label", {}, name, make("select", {name: rest.name},
      ...choices.map((choice, value) =>
        new Option(choice, value, false, chosen.includes(value)))));
  return make("fieldset", {}, make("legend", {}, label),
    make("span", {className: "choices"}, ...choices.map((choice, value) =>
      labelled(choice, {...rest, value, checked: chosen.includes(value)}))));
};
// A button that moves a range forward to its end, once.
const player = (input, update) => {
  let timer;
  const button = make("button", {type: "button"});
  const show = (isPlaying) => {
    button.textContent = isPlaying ? "❚❚" : "▶";
    button.ariaLabel = isPlaying ? "pause" : "play";
  };
  const stop = () => {
    clearInterval(timer);
    timer = show(false);
  };
  button.onclick = () => {
    if (timer) return stop();
    if (input.value == input.max) input.value = input.min;
    else input.stepUp();
    update();
    show(true);
    const steps = (input.max - input.min) / (input.step || 1);
    timer = setInterval(() => {
      input.stepUp();
      update();
      if (input.value == input.max) stop();
    }, Math.min(900, Math.max(200, 6000 / steps)));
  };
  input.addEventListener("input", stop);
  stop();
  return button;
};
const figure = (id, controls, draw) => {
  const root = document.getElementById(id);
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const form = make("form", {autocomplete: "off"});
  for (const {label, choices, ...rest} of controls)
    form.append(choices ? group(label, {choices, ...rest})
      : labelled(label, rest));
  let timer;
  const heard = make("p", {className: "heard", ariaLive: "polite"});
  root.append(heard);
  part("said").ariaHidden = true;
  const update = () => {
    for (const input of form.querySelectorAll("[type=range]")) {
      const share = (input.value - input.min) / (input.max - input.min || 1);
      input.style.setProperty("--at", `${100 * share}%`);
      input.nextSibling.textContent = input.value;
    }
    const said = draw(new FormData(form), part, form.elements);
    part("said").textContent = said;
    clearTimeout(timer); // a screen reader waits till the hand rests
    timer = setTimeout(() => {
      if (heard.textContent != said) heard.textContent = said;
    }, 300);
  };
  const image = root.querySelector("img");
  if (image) image.outerHTML = decodeURIComponent(
    image.getAttribute("src").split("svg+xml,")[1]);
  form.onkeydown = (event) => event.stopPropagation(); // not to JupyterLab
  form.onsubmit = (event) => event.preventDefault();
  form.oninput = update;
  root.prepend(form);
  if (!matchMedia("(prefers-reduced-motion: reduce)").matches)
    for (const {name} of controls.filter(({play}) => play)) {
      const input = form.elements[name], label = input.parentElement;
      const time = make("span", {className: "time"}, player(input, update));
      label.replaceWith(time);
      time.prepend(label);
    }
  update();
  // What is below stays where it is: keep the room of the longest texts.
  let width = 0;
  const keepRoom = () => {
    if (root.offsetWidth == width) return;
    width = root.offsetWidth;
    root.style.minHeight = "";
    const longest = (texts) => texts.filter(Boolean).reduce((one, other) =>
      String(other).length > String(one).length ? other : one, "");
    for (const [name, [texts]] of Object.entries(data.parts ?? {}))
      if (/^T[DH]$/.test(part(name).tagName)) put(part(name), longest(texts));
    part("said").textContent = longest(data.said?.[0]
      ?? [part("said").textContent, data.reveal]);
    root.style.minHeight = `${root.offsetHeight}px`;
    update();
  };
  keepRoom();
  new ResizeObserver(() => requestAnimationFrame(keepRoom)).observe(root);
};
// What a part shows: a text, [a text, a share, for its colour], attributes, or
// null if it is hidden; a path takes its text as where it goes.
const put = (node, shown) => {
  node.toggleAttribute("hidden", shown === null);
  if (Array.isArray(shown)) {
    if (shown[1] === null) node.removeAttribute("style");
    else shade(node, shown[1], shown[0], data.shades);
    node.textContent = shown[0];
  } else if (shown !== null && typeof shown == "object")
    for (const [name, value] of Object.entries(shown))
      node.setAttribute(name, value);
  else if (node.tagName == "path") node.setAttribute("d", shown);
  else node.textContent = shown;
};
// Show the state that Python has computed for the controls' values.
const showState = (given, part) => {
  let at = 0;
  for (const {name, kind, size, min, step} of data.controls) {
    const values = given.getAll(name).map(Number);
    at = at * size + (kind == "range" ? Math.round((values[0] - min) / step)
      : kind == "boxes" ? values.reduce((sum, box) => sum + 2 ** box, 0)
      : kind == "box" ? Number(given.has(name)) : values[0]);
  }
  for (const [name, [distinct, which]] of Object.entries(data.parts))
    put(part(name), distinct[which[at]]);
  return data.said[0][data.said[1][at]];
};
