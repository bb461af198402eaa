// Formatting of numbers, colors of kinds, and creation of elements.
const report = JSON.parse(document.getElementById("data").textContent);

const digits = (value) => value.toPrecision(value >= 1000 ? 4 : 3).replace(/e\+?/, "e");

const withPrefix = (value, unit, step = 1000) => {
  const prefixes = ["", "k", "M", "G", "T", "P"];
  let k = 0;
  for (; k < 5 && value >= step; k++) value /= step;
  return `${value === 0 ? "0" : digits(value)} ${prefixes[k]}${unit}`;
};

const time = (nanoseconds) => {
  for (const [size, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "us"]]) {
    if (nanoseconds >= size) return `${digits(nanoseconds / size)} ${unit}`;
  }
  return `${nanoseconds === 0 ? "0" : digits(nanoseconds)} ns`;
};

const percent = (part) => `${(100 * part).toFixed(1)} %`;

// Color of a kind. It depends only on the kind's name, so it is the same on every page.
const color = (kind) => {
  let hash = 0x811c9dc5;
  for (const letter of kind) hash = Math.imul(hash ^ letter.codePointAt(0), 0x01000193) >>> 0;
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 0;
  return `hsl(${hash % 360} 52% ${38 + (hash >>> 9) % 3 * 6}%)`;
};

const element = (name, attributes = {}, ...children) => {
  const svg = ["svg", "g", "line", "path", "circle", "text", "title", "rect"].includes(name);
  const result = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) result.setAttribute(key, value);
  result.append(...children);
  return result;
};

// Callbacks of the charts and the table, called with the name of the selected kernel.
const choosers = [];
const choose = (name) => choosers.forEach((chooser) => chooser(name));
