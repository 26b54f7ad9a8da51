// What this reader has read and done. Only this browser remembers it: nothing
// is sent, and where nothing may be stored, nothing is remembered.
const memory = {
  get(name) {
    try { return JSON.parse(localStorage.getItem(name)); } catch { return null; }
  },
  set(name, value) {
    try { localStorage.setItem(name, JSON.stringify(value)); } catch { /* no */ }
  },
};
const fileOf = (address) => address.split("#")[0].split("/").at(-1);
const progress = { read: [], done: [], ...memory.get("progress") };
const keep = () => memory.set("progress", progress);
const isChapter = document.querySelector(".facts");
const thisFile = fileOf(location.pathname);

const tickRead = () => {
  for (const link of document.querySelectorAll(".bd-links .toctree-l1 > a")) {
    const isTicked = link.querySelector(".tick");
    if (isTicked || !progress.read.includes(fileOf(link.href))) continue;
    const tick = document.createElement("span");
    tick.className = "tick";
    tick.textContent = "✓";
    tick.role = "img";
    tick.ariaLabel = "read";
    link.append(" ", tick);
  }
};
tickRead();

// Who sees the summary has read the chapter.
const summary = isChapter && document.querySelector("#summary > h2");
if (summary) new IntersectionObserver(([entry], observer) => {
  if (!entry.isIntersecting) return;
  observer.disconnect();
  progress.read = [...new Set([...progress.read, thisFile])];
  keep();
  tickRead();
}).observe(summary);

// A box at each exercise; the line below the title counts them.
const boxes = [];
const count = document.createElement("span");
const tell = () => {
  const done = boxes.filter((box) => box.checked).length;
  count.textContent = done ? ` · ${done} done` : "";
};
if (isChapter)
  for (const title of document.querySelectorAll("section[id^=exercise-] > h3")) {
    const label = document.createElement("label");
    const box = document.createElement("input");
    const name = document.createElement("span");
    const place = `${thisFile}#${title.parentElement.id}`;
    box.type = "checkbox";
    box.checked = progress.done.includes(place);
    box.addEventListener("change", () => {
      progress.done = progress.done.filter((one) => one !== place);
      if (box.checked) progress.done.push(place);
      keep();
      tell();
    });
    name.className = "visually-hidden";
    name.textContent = title.textContent.split(":")[0];
    label.className = "done";
    label.append(box, " done ", name);
    title.after(label);
    boxes.push(box);
  }
if (boxes.length) {
  isChapter.append(count);
  tell();
}

// The landing page: where to go on, and how much of that road is left.
const door = document.querySelector(".door");
const said = (minutes) => minutes < 55 ? `${5 * Math.ceil(minutes / 5)} minutes`
  : minutes < 90 ? "an hour" : `${Math.round(minutes / 60)} hours`;
const welcomeBack = () => {
  const [address, name] = memory.get("place") ?? [];
  if (address) {
    const link = door.querySelector("a").cloneNode();
    link.href = address;
    link.textContent = `Continue with ${name}`;
    door.prepend(link, " ");
  }
  const roads = JSON.parse(document.getElementById("roads").value)
    .map(([title, pages]) => ({ title,
      left: pages.filter(([page]) => !progress.read.includes(page)),
      isHere: address && pages.some(([page]) => page === fileOf(address)) }))
    .filter(({ left }) => left.length);
  const road = roads.find(({ isHere }) => isHere) ?? roads[0];
  const { read, done } = progress;
  const facts = [];
  if (road) facts.push(`About ${said(road.left.reduce(
    (sum, [, minutes]) => sum + minutes, 0))} left of “${road.title}”`);
  if (read.length) facts.push(`chapters read: ${read.length}`);
  if (done.length) facts.push(`exercises done: ${done.length}`);
  const line = document.createElement("p");
  const forget = document.createElement("button");
  forget.textContent = "Forget all this";
  forget.addEventListener("click", () => {
    for (const key of ["progress", "place"]) localStorage.removeItem(key);
    location.reload();
  });
  line.className = "progress-line";
  line.append(`${facts.join(" · ")}. Only this browser knows. `, forget);
  door.after(line);
};
if (door && (memory.get("place") || progress.read.length || progress.done.length))
  welcomeBack();
