// Words for numbers, and elements. Text is always set as text, since names are untrusted.
const data = JSON.parse(document.getElementById("data").textContent);
const report = data.report, old = data.old, diff = data.diff;
const by = (id) => document.getElementById(id);
function scaled(value, units, step) {
  let k = 0;
  while (Math.abs(value) >= step && k + 1 < units.length) { value /= step; k++; }
  return (k === 0 || Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(Math.abs(value) >= 10 ? 1 : 2)) + " " + units[k];
}
const bytes = (n) => (n == null ? "" : scaled(n, ["B", "kB", "MB", "GB"], 1000));
const time = (n) => (n == null ? "" : scaled(n * 1e9, ["ns", "us", "ms", "s"], 1000));
const count = (n) => (n == null ? "" : scaled(n, ["", "k", "M", "G", "T"], 1000).trim());
const percent = (n) => (n == null ? "" : (100 * n).toFixed(1) + "%");
const small = (n) => (n == null ? "" : n === 0 ? "0" : n.toExponential(1));
function element(tag, text, parent, className) {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  if (className) made.className = className;
  if (parent) parent.append(made);
  return made;
}
// Shows a name or path, which may break after its parts.
function parted(made, text) {
  made.replaceChildren(...text.split(/(?<=[/_])/).flatMap((part, k) => k ? [document.createElement("wbr"), part] : [part]));
}
function drawn(tag, attributes, parent, text) {
  const made = document.createElementNS("http:" + "//www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}
const nameOf = (layer) => layer.node || layer.name;
function table(parent, heads, rows) {
  const box = element("div", null, parent, "scroll"), made = element("table", null, box);
  const head = element("tr", null, element("thead", null, made)), body = element("tbody", null, made);
  for (const word of heads) element("th", word, head).scope = "col";
  for (const row of rows) { const line = element("tr", null, body); row.forEach((cell, k) => { const made = element("td", null, line); if (k) made.textContent = cell; else parted(made, cell); }); }
}
