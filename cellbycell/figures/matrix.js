(given, part) => {
  const may = given.getAll("may").map(Number);
  const used = data.groups.map((group) => may.includes(group));
  const counts = data.rows.map((row) =>
    [...row].filter((sign, c) => sign == "x" && used[c]).length);
  const order = counts.map((count, r) => r);
  if (given.get("order") == "1")
    order.sort((a, b) => counts[b] - counts[a] || a - b);
  const hide = (row) => [...row.children].slice(1).forEach((cell, c) => {
    cell.hidden = !used[c];
  });
  hide(part("heads"));
  for (const r of order) {
    const row = part("bug-" + r);
    row.parentNode.append(row);
    row.hidden = given.get("missed") != null && counts[r] > 0;
    hide(row);
  }
  return `Checks: ${used.filter(Boolean).length}. `
    + `Bugs seen: ${counts.filter(Boolean).length} of ${counts.length}.`;
}
