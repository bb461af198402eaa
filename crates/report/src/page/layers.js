// The table of layers: a tree of scopes, of which only the visible rows exist as elements.
const ROW = 26;
const state = { open: new Set(), rows: [], at: 0, query: "", sort: null, up: false };
const root = { path: "", children: new Map(), layers: [] };
const changeOf = new Map();
const sums = ["seconds", "flops", "bytes", "code_bytes", "weight_bytes"];
const columns = [
  ["layer", (r) => r.label, (r) => r.label],
  ["time", (r) => time(r.sum.seconds), (r) => r.sum.seconds], ["of run", (r) => total ? percent(r.sum.seconds / total) : "", (r) => r.sum.seconds],
  ["kind", (r) => r.layer ? r.layer.kind : `${r.count} layers`, (r) => r.layer ? r.layer.kind : ""],
  ["of peak", (r) => r.layer ? percent(r.layer.share_of_peak) : "", (r) => r.layer ? r.layer.share_of_peak || 0 : 0],
  ["flops", (r) => count(r.sum.flops), (r) => r.sum.flops], ["bytes", (r) => bytes(r.sum.bytes), (r) => r.sum.bytes],
  ["code", (r) => r.sum.code_bytes === 0 ? "shared" : bytes(r.sum.code_bytes), (r) => r.sum.code_bytes], ["weights", (r) => bytes(r.sum.weight_bytes), (r) => r.sum.weight_bytes],
  ["precision", (r) => r.layer ? r.layer.precision : "", (r) => r.layer ? r.layer.precision : ""],
  ["error / limit", (r) => r.layer && r.layer.accuracy ? percent(r.layer.accuracy.share_of_limit) : "", (r) => r.layer && r.layer.accuracy ? r.layer.accuracy.share_of_limit : -1],
];
if (diff) columns.splice(3, 0, ["changed", (r) => r.changes || "", (r) => r.changes || ""]);
// A search for a change.
const CHANGED = "changed: ", WORSE = /slower|larger|less accurate/;
let total = 0;
// The changes in words, with the first nodes that were fused or split.
function changed(change, most) {
  const part = { added: ": was part of ", removed: ": now part of " };
  const words = (kind) => kind.replaceAll("_", " ") + (kind in part && change.part_of ? part[kind] + change.part_of : "") + (change[kind] ? " " + change[kind].slice(0, most).join(", ") + (change[kind].length > most ? ` and ${change[kind].length - most} more` : "") : "");
  return change.changes.map(words).join(", ");
}
function plant() {
  for (const layer of report.layers) total += layer.seconds || 0;
  if (diff) for (const change of diff.layers) if (change.new != null) changeOf.set(change.new, change);
  report.layers.forEach((layer, number) => {
    const parts = (layer.group ? [layer.group] : []).concat((layer.node || layer.name).split("/").filter(Boolean));
    let scope = root;
    for (const part of parts.slice(0, -1)) {
      if (!scope.children.has(part)) scope.children.set(part, { path: scope.path + "/" + part, label: part, children: new Map(), layers: [], items: [] });
      const next = scope.children.get(part);
      if (!next.known) { next.known = true; (scope.items = scope.items || []).push(next); }
      scope = next;
    }
    (scope.items = scope.items || []).push({ layer, number, label: parts.at(-1) || layer.name });
  });
  // A scope of one layer is shown as that layer.
  (function join(scope) {
    scope.items = (scope.items || []).map((item) => {
      if (!item.items) return item;
      join(item);
      const only = item.items.length === 1 && item.items[0].layer ? item.items[0] : null;
      return only ? { ...only, label: item.label + "/" + only.label } : item;
    });
  })(root);
  (function measure(item) {
    item.sum = Object.fromEntries(sums.map((key) => [key, item.layer ? item.layer[key] || 0 : 0]));
    item.count = item.layer ? 1 : 0;
    if (item.layer) { const change = changeOf.get(item.number); item.changes = change ? changed(change, 3) : ""; }
    for (const child of item.items || []) { measure(child); item.count += child.count; for (const key of sums) item.sum[key] += child.sum[key]; }
    // A closed scope says how many of its layers changed, and how many of them for the worse.
    item.changed = item.layer ? [item.changes ? 1 : 0, WORSE.test(item.changes) ? 1 : 0] : (item.items || []).reduce((sum, child) => sum.map((n, k) => n + child.changed[k]), [0, 0]);
    if (!item.layer) item.changes = item.changed[0] ? `${item.changed[0]} changed` + (item.changed[1] ? `, ${item.changed[1]} worse` : "") : "";
  })(root);
  // A scope with most of the time says nothing when closed.
  let scope = root;
  const main = (item) => item.items && (item.sum.seconds > total / 2 || item.count > root.count / 2);
  while ((scope = (scope.items || []).find(main))) state.open.add(scope.path);
}
function flatten() {
  const rows = [], words = state.query.toLowerCase();
  const order = state.sort === null ? null : columns[state.sort][2];
  const sorted = (items) => order === null ? items : items.slice().sort((a, b) => {
    const x = order(a), y = order(b), sign = typeof x === "string" ? x.localeCompare(y) : x - y;
    return state.up ? sign : -sign;
  });
  let hits = 0;
  if (words || order) {
    const found = [];
    (function walk(item) {
      if (item.layer && (!words || (words.startsWith(CHANGED) ? (item.changes || "").includes(words.slice(CHANGED.length)) : [nameOf(item.layer), item.layer.name, ...(item.layer.nodes || []), item.layer.kind, item.layer.strategy, item.layer.precision, item.changes].join("\n").toLowerCase().includes(words))))
        found.push({ ...item, label: nameOf(item.layer), depth: 0 });
      for (const child of item.items || []) walk(child);
    })(root);
    hits = found.length;
    rows.push(...sorted(found));
  } else {
    (function walk(items, depth) {
      for (const item of items || []) {
        rows.push(Object.assign(item, { depth }));
        if (item.items && state.open.has(item.path)) walk(item.items, depth + 1);
      }
    })(root.items, 0);
  }
  state.rows = rows;
  state.at = Math.max(0, Math.min(state.at, rows.length - 1));
  for (const button of by("kinds").children) button.setAttribute("aria-pressed", words === CHANGED + button.dataset.kind);
  by("hits").textContent = words ? `${hits} found` : "";
  by("rows").style.height = rows.length * ROW + "px";
}
function paint() {
  const box = by("layers"), first = Math.max(0, Math.floor(box.scrollTop / ROW) - 5), last = Math.min(state.rows.length, first + Math.ceil(box.clientHeight / ROW) + 12);
  const made = [];
  for (let k = first; k < last; k++) {
    const item = state.rows[k], row = element("div", null, null, "row" + (item.items ? " scope" : "") + (k === state.at ? " chosen" : ""));
    row.setAttribute("role", "row");
    row.setAttribute("aria-level", item.depth + 1);
    row.id = "row-" + k;
    if (item.items) row.setAttribute("aria-expanded", state.open.has(item.path));
    row.style.top = k * ROW + "px";
    columns.forEach(([name, show], c) => {
      const cell = element("span", (c === 0 && item.items ? (state.open.has(item.path) ? "\u25be " : "\u25b8 ") : "") + show(item), row, c === 0 ? "left name" : ["changed", "kind"].includes(name) ? "left" : name === "of run" ? "bar" : "");
      cell.setAttribute("role", "gridcell");
      if (c === 0) { cell.style.paddingLeft = 8 + 16 * item.depth + "px"; cell.title = item.layer ? nameOf(item.layer) : item.path; }
      if (name === "of run" && total) cell.style.setProperty("--part", item.sum.seconds / total);
      if (name === "changed") cell.title = item.changes || "";
      if (name === "changed" && item.changed[1]) cell.classList.add("worse");
    });
    row.addEventListener("click", () => { choose(k); if (item.items) toggle(item); });
    made.push(row);
  }
  by("rows").replaceChildren(...made);
  if (state.rows.length) box.setAttribute("aria-activedescendant", "row-" + state.at); else box.removeAttribute("aria-activedescendant");
}
function refresh() { flatten(); paint(); }
function toggle(item) { if (state.open.has(item.path)) state.open.delete(item.path); else state.open.add(item.path); refresh(); }
function choose(k) {
  if (!state.rows.length) return;
  state.at = Math.max(0, Math.min(k, state.rows.length - 1));
  const box = by("layers"), top = state.at * ROW;
  if (top < box.scrollTop) box.scrollTop = top;
  if (top + 2 * ROW > box.scrollTop + box.clientHeight - 16) box.scrollTop = top + 2 * ROW - box.clientHeight + 16;
  paint();
  detail(state.rows[state.at]);
}
function detail(item) {
  const box = by("detail"), layer = item.layer;
  box.replaceChildren();
  if (!layer) return;
  const line = (words, value) => { if (value) { const p = element("p", null, box); element("b", words + " ", p); p.append(value); } };
  line("layer", `${nameOf(layer)} (${layer.name})`);
  if (layer.nodes && layer.nodes.length > 1) line("nodes", layer.nodes.join(", "));
  line("result", layer.shape);
  line("strategy", layer.strategy);
  line("why", layer.reason);
  const cost = (name) => { const found = (layer.costs || []).find((one) => one.candidate === name); return found ? `${name} (${count(found.cost)} ${found.unit})` : name; };
  line("candidates", layer.candidates.map(cost).join("; "));
  if (layer.runs !== 1 && report.kind === "model") line("executions", layer.runs == null ? "data-dependent; the work of one is shown" : String(layer.runs));
  if (layer.accuracy) line("accuracy", `${layer.accuracy.max_ulp} ulp, ${small(layer.accuracy.max_relative)} relative, ${percent(layer.accuracy.share_of_limit)} of the limit (${layer.accuracy.input})`);
  line("not compared", layer.not_compared);
  const change = changeOf.get(item.number);
  if (change) line("changed", changed(change, Infinity));
  if (change && change.old != null) {
    const before = old.layers[change.old];
    line("before", `${change.old_name ? change.old_name + "; " : ""}${before.precision}; ${time(before.seconds)}; code ${bytes(before.code_bytes) || "shared"}; weights ${bytes(before.weight_bytes)}; ${before.strategy}`);
  }
}
function show(number) {
  state.query = by("search").value = "";
  state.sort = null;
  const find = (items, path) => { for (const item of items || []) { if (item.number === number && item.layer) return path; const deep = find(item.items, path.concat([item])); if (deep) return deep; } return null; };
  for (const scope of find(root.items, []) || []) state.open.add(scope.path);
  heads(); refresh();
  choose(state.rows.findIndex((item) => item.layer && item.number === number));
}
function heads() {
  by("head").replaceChildren(...columns.map(([name], c) => {
    const button = element("button", name, null, state.sort === c ? (state.up ? "up" : "down") : "");
    button.setAttribute("role", "columnheader");
    if (["layer", "changed", "kind"].includes(name)) button.classList.add("left");
    button.addEventListener("click", () => {
      if (state.sort !== c) { state.sort = c; state.up = c === 0; } else if (state.up === (c === 0)) state.up = !state.up; else state.sort = null;
      heads(); refresh();
    });
    return button;
  }));
}
function search(words) { by("search").value = state.query = words; state.at = 0; by("layers").scrollTop = 0; refresh(); }
// How many layers changed in which way, as searches for them, and the layers that only the old program has.
function kinds() {
  const counts = new Map(), gone = [];
  for (const change of diff.layers) {
    if (change.new == null) gone.push(change);
    else for (const kind of change.changes) counts.set(kind.replaceAll("_", " "), (counts.get(kind.replaceAll("_", " ")) || 0) + 1);
  }
  for (const [kind, number] of counts) {
    const button = element("button", `${number} ${kind}`, by("kinds"), WORSE.test(kind) ? "worse" : "");
    button.dataset.kind = kind;
    button.addEventListener("click", () => search(state.query === CHANGED + kind ? "" : CHANGED + kind));
  }
  by("removed").hidden = gone.length === 0;
  by("removed").firstElementChild.textContent = gone.length === 1 ? "1 layer was removed" : `${gone.length} layers were removed`;
  if (gone.length) table(by("removed"), ["layer", "now part of", "kind", "time", "code", "weights"], gone.map((change) => { const layer = old.layers[change.old]; return [nameOf(layer), change.part_of || "-", layer.kind, time(layer.seconds), bytes(layer.code_bytes) || "shared", bytes(layer.weight_bytes)]; }));
}
function layers() {
  const box = by("layers");
  // The name stays in view while the other columns scroll.
  box.style.setProperty("--columns", `minmax(var(--name), 2fr) 82px 80px ${diff ? "210px " : ""}98px 74px 78px 84px 84px 84px 105px 105px`);
  box.style.setProperty("--width", `calc(var(--name) + ${diff ? 1084 : 874}px)`);
  by("removed").hidden = true;
  if (diff) kinds();
  plant(); heads(); refresh();
  box.addEventListener("scroll", paint);
  by("search").addEventListener("input", () => search(by("search").value));
  by("search").addEventListener("keydown", (event) => { if (event.key === "Escape") { search(""); box.focus(); } if (event.key === "ArrowDown" || event.key === "Enter") { event.preventDefault(); box.focus(); choose(0); } });
  box.addEventListener("keydown", (event) => {
    if (event.target !== box) return;
    const item = state.rows[state.at], page = Math.max(1, Math.floor(box.clientHeight / ROW) - 2);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 };
    if (event.key in moves) choose(state.at + moves[event.key]);
    else if (event.key === "ArrowRight" && item && item.items) { if (!state.open.has(item.path)) toggle(item); else choose(state.at + 1); }
    else if (event.key === "ArrowLeft" && item) {
      if (item.items && state.open.has(item.path)) toggle(item);
      else { let k = state.at; while (k > 0 && state.rows[k].depth >= item.depth) k--; choose(k); }
    } else if (event.key === "Enter" && item && item.items) toggle(item);
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => { if (event.key === "/" && event.target.tagName !== "INPUT") { event.preventDefault(); by("search").focus(); } });
}
