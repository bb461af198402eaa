// The panel with details of the selected instruction.

const number = (n) => (n || 0).toLocaleString("en-US");

const counted = (n, noun) => `${number(n)} ${noun}${n === 1 ? "" : "s"}`;

/** Formats a number with a metric prefix and a unit: 1.23 GFLOP. */
function short(n, unit) {
  const prefixes = ["", "k", "M", "G", "T", "P", "E"];
  let k = 0, x = n || 0;
  while (x >= 999.5 && k < prefixes.length - 1) { x /= 1000; k++; }
  return `${k ? x.toPrecision(3) : x} ${prefixes[k]}${unit}`;
}

function element(tag, text, attributes = {}) {
  const result = document.createElement(tag);
  if (text !== undefined) result.textContent = text;
  Object.assign(result, attributes);
  return result;
}

/**
 * Fills the panel with details of an instruction, or clears it.
 * @param {HTMLElement} panel
 * @param graph
 * @param {{computation: number, number: number, path: string}} box
 * @param {(path: string) => void} goTo
 * @param {(path: string) => void} toggle
 * @param {boolean} isOpen
 */
function showDetails(panel, graph, box, goTo, toggle, isOpen) {
  panel.replaceChildren();
  if (!box) return;
  const computation = graph.computations[box.computation];
  const node = computation.nodes[box.number];
  panel.append(element("h2", node.name));
  panel.append(element("div", `${node.opcode} in ${computation.name}`));
  if (node.calls) {
    const names = node.calls.map((callee) => graph.computations[callee].name).join(", ");
    panel.append(element("button", `${isOpen ? "Close" : "Open"} ${names}`, { onclick: () => toggle(box.path) }));
  }
  const list = element("dl");
  const row = (name, value) => list.append(element("dt", name), element("dd", value));
  row("shape", node.shape);
  row("size", `${number(node.bytes)} bytes`);
  row("FLOPs", number(node.flops));
  if (node.transcendentals) row("transcendentals", number(node.transcendentals));
  row("bytes read", number(node.read));
  row("bytes written", number(node.written));
  const moved = (node.read || 0) + (node.written || 0);
  if (node.flops && moved) row("FLOPs per byte", (node.flops / moved).toPrecision(3));
  if (node.op_type) row("TF op", node.op_type);
  if (node.op_name) row("TF node", node.op_name);
  if (node.source) row("source", node.line ? `${node.source}:${node.line}` : node.source);
  panel.append(list);
  const prefix = box.path.slice(0, box.path.length - String(box.number).length);
  const links = (title, numbers) => {
    if (!numbers.length) return;
    panel.append(element("h3", title));
    const items = element("ul");
    for (const other of numbers) {
      const item = element("li");
      const target = computation.nodes[other];
      const text = `${target.name}  ${target.shape}`;
      item.append(target.value !== undefined
        ? element("span", `${target.value}  ${target.shape}`)
        : element("button", text, { className: "link", onclick: () => goTo(prefix + other) }));
      items.append(item);
    }
    panel.append(items);
  };
  links("Operands", node.operands);
  const users = [];
  computation.nodes.forEach((user, k) => { if (user.operands.includes(box.number)) users.push(k); });
  links("Users", users);
  panel.append(element("h3", "HLO"), element("pre", node.text));
}
