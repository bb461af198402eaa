// The scene (boxes at absolute positions, and arrows between them) and the canvas that shows it.

const FONT = '11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
const BOLD = 'bold 11px system-ui, "Helvetica Neue", Arial, sans-serif';
const LINE = 14, PAD = 8, HEAD = 24, MAX_CHARS = 44;

const cut = (text, chars = MAX_CHARS) => (text.length > chars ? text.slice(0, chars - 1) + "\u2026" : text);

// Opcodes in a fusion, without those that only rename or copy.
function workOf(graph, node) {
  const quiet = new Set(["parameter", "constant", "broadcast", "reshape", "bitcast", "tuple", "get-tuple-element"]);
  const inner = graph.computations[node.calls[0]].nodes.map((each) => each.opcode);
  return [...new Set(inner.filter((opcode) => !quiet.has(opcode)))].join(", ");
}

/** Lines of a box: opcode, name, shape, the opcodes in a fusion, and the constant operands. */
function labelOf(graph, computation, node) {
  const lines = [node.opcode];
  if (node.name !== node.opcode) lines.push(cut(node.name));
  lines.push(cut(node.shape));
  if (node.opcode === "fusion") lines.push(cut(workOf(graph, node), 34));
  node.operands.forEach((o, k) => {
    const operand = computation.nodes[o];
    if (operand.value !== undefined) lines.push(cut(`operand ${k} = ${operand.value}`));
  });
  return lines;
}

/**
 * Lays out the boxes of one computation and its open callees, relative to its top left corner.
 * @param graph  the page's graph
 * @param {number} index  index of the computation
 * @param {string} path  path of the calling instruction, or "" for the entry
 * @param {Set<string>} open  paths of instructions whose callees are shown
 * @param {(text: string, bold: boolean) => number} measure  width of a text in pixels
 */
function buildRegion(graph, index, path, open, measure) {
  const computation = graph.computations[index];
  const position = new Map();
  const boxes = [];
  computation.nodes.forEach((node, number) => {
    if (node.value !== undefined) return;
    position.set(number, boxes.length);
    const box = { node, number, computation: index, path: path + number, regions: [], lines: [] };
    box.lines = labelOf(graph, computation, node).filter(Boolean);
    box.parameters = node.calls && node.calls.length === 1 ? graph.computations[node.calls[0]].parameters : null;
    box.openable = Boolean(node.calls && node.calls.length);
    box.operands = node.operands.filter((o) => position.has(o)).map((o) => position.get(o));
    if (box.openable && open.has(box.path)) {
      box.regions = node.calls.map((callee, k) => buildRegion(graph, callee, `${box.path}/${k}.`, open, measure));
      placeInside(box, measure);
    } else {
      const widths = box.lines.map((line, k) => measure(line, k === 0));
      box.w = Math.ceil(Math.max(70, ...widths) + 2 * PAD + (box.openable ? 14 : 0));
      box.h = box.lines.length * LINE + PAD + 4;
    }
    boxes.push(box);
  });
  const size = layOut(boxes);
  return { index, boxes, position, x: 0, y: 0, w: size.w, h: size.h };
}

// Places callees side by side, below the title of the box.
function placeInside(box, measure) {
  let x = PAD, tallest = 0;
  for (const region of box.regions) {
    region.x = x + PAD;
    region.y = HEAD + PAD;
    x += region.w + 3 * PAD;
    tallest = Math.max(tallest, region.h);
  }
  box.title = `${box.node.opcode} ${box.node.name}  ${cut(box.node.shape)}`;
  box.w = Math.max(x, measure(box.title, true) + 4 * PAD);
  box.h = HEAD + tallest + 3 * PAD;
}

/**
 * Builds the scene: all boxes with absolute corners (`ax`, `ay`), callers before their callees,
 * arrows, and the names of far operands.
 */
function buildScene(graph, open, measure) {
  const scene = { boxes: [], arrows: [], stubs: [], byPath: new Map(), w: 0, h: 0 };
  if (graph.entry === null) return scene;
  const root = buildRegion(graph, graph.entry, "", open, measure);
  scene.w = root.w;
  scene.h = root.h;
  const add = (region, x, y, depth) => {
    for (const box of region.boxes) {
      box.ax = x + box.x;
      box.ay = y + box.y;
      box.depth = depth;
      scene.boxes.push(box);
      scene.byPath.set(box.path, box);
      for (const inner of box.regions) add(inner, box.ax + inner.x, box.ay + inner.y, depth + 1);
    }
    for (const box of region.boxes) connect(scene, region, box);
  };
  add(root, 0, 0, 0);
  return scene;
}

function connect(scene, region, box) {
  let stubs = 0;
  box.node.operands.forEach((operand, k) => {
    if (!region.position.has(operand)) return;
    const from = region.boxes[region.position.get(operand)];
    if (box.layer - from.layer > NEAR_LAYERS) {
      scene.stubs.push({ from, to: box, row: stubs++ });
      scene.arrows.push({ from, to: box, far: true });
      return;
    }
    // If an open callee has one parameter per operand, the arrow ends at the parameter.
    const inner = box.regions.length === 1 ? box.regions[0] : null;
    const takesOperands = inner && box.parameters.length === box.node.operands.length;
    const to = takesOperands ? inner.boxes[inner.position.get(box.parameters[k])] : box;
    scene.arrows.push({ from, to, outer: box, far: false });
  });
}

/** The canvas, a camera over a scene. */
class View {
  constructor(canvas, kinds) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.kinds = kinds;
    this.scene = { boxes: [], arrows: [], stubs: [], byPath: new Map(), w: 0, h: 0 };
    this.x = 0;
    this.y = 0;
    this.scale = 1;
    this.selected = null;
    this.hits = new Set();
    this.heat = null;
    this.drawn = 0;
    this.pending = false;
  }

  measure(text, bold) {
    this.context.font = bold ? BOLD : FONT;
    return this.context.measureText(text).width;
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.canvas.clientWidth * ratio);
    this.canvas.height = Math.round(this.canvas.clientHeight * ratio);
    this.redraw();
  }

  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.draw(); });
  }

  fit() {
    const { clientWidth: w, clientHeight: h } = this.canvas;
    const whole = Math.min((w - 40) / Math.max(1, this.scene.w), (h - 40) / Math.max(1, this.scene.h));
    // At most 125 %, so that small graphs are not blown up.
    this.scale = Math.min(1.25, Math.max(whole, 0.0005));
    this.x = this.scene.w / 2 - w / 2 / this.scale;
    this.y = whole * this.scene.h < h ? this.scene.h / 2 - h / 2 / this.scale : -20 / this.scale;
    this.redraw();
  }

  /** Shows the top of the graph at a legible size. */
  start() {
    this.fit();
    if (this.scale >= 0.6) return;
    this.scale = 0.8;
    const shown = this.scene.boxes.filter((box) => box.depth === 0 && box.ay < this.canvas.clientHeight / this.scale);
    const middle = shown.reduce((sum, box) => sum + box.ax + box.w / 2, 0) / Math.max(1, shown.length);
    this.x = middle - this.canvas.clientWidth / 2 / this.scale;
    this.y = -20 / this.scale;
    this.redraw();
  }

  center(box) {
    this.scale = Math.max(this.scale, 0.7);
    const { clientWidth: w, clientHeight: h } = this.canvas;
    this.x = box.ax + box.w / 2 - w / 2 / this.scale;
    this.y = box.ay + Math.min(box.h, h / this.scale / 2) / 2 - h / 2 / this.scale;
    this.redraw();
  }

  zoom(factor, px = this.canvas.clientWidth / 2, py = this.canvas.clientHeight / 2) {
    const scale = Math.min(4, Math.max(0.0005, this.scale * factor));
    this.x += px / this.scale - px / scale;
    this.y += py / this.scale - py / scale;
    this.scale = scale;
    this.redraw();
  }

  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
    this.redraw();
  }

  /** Returns the innermost box, or the name of a far operand, at a point of the canvas. */
  at(px, py) {
    const x = this.x + px / this.scale, y = this.y + py / this.scale;
    if (this.scale > 0.35) {
      for (const stub of this.scene.stubs) {
        const box = stubPlace(stub);
        if (x >= box.x && x <= box.x + box.w && y >= box.y - 10 && y <= box.y + 3) return { stub };
      }
    }
    for (let i = this.scene.boxes.length - 1; i >= 0; i--) {
      const box = this.scene.boxes[i];
      if (x >= box.ax && x <= box.ax + box.w && y >= box.ay && y <= box.ay + box.h) return { box };
    }
    return {};
  }

  color(box) {
    if (!this.heat) return this.kinds[box.node.kind].color;
    const share = Math.sqrt(this.heat.value(box.node) / this.heat.max);
    return `rgb(${255 - 10 * share}, ${255 - 170 * share}, ${250 - 220 * share})`;
  }

  draw() {
    const { context: c, canvas } = this;
    const ratio = window.devicePixelRatio || 1;
    const style = getComputedStyle(document.documentElement);
    const css = (name) => style.getPropertyValue(name).trim();
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = css("--paper");
    c.fillRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    c.setTransform(ratio * this.scale, 0, 0, ratio * this.scale, -this.x * this.scale * ratio, -this.y * this.scale * ratio);
    const seen = {
      left: this.x, top: this.y,
      right: this.x + canvas.clientWidth / this.scale, bottom: this.y + canvas.clientHeight / this.scale,
    };
    const isVisible = (b) => b.ax < seen.right && b.ax + b.w > seen.left && b.ay < seen.bottom && b.ay + b.h > seen.top;
    // Open boxes lie below all arrows, and closed boxes above them.
    const visible = this.scene.boxes.filter(isVisible);
    for (const box of visible) if (box.regions.length) this.drawRegion(box, css);
    this.drawArrows(seen, css);
    for (const box of visible) if (!box.regions.length) this.drawBox(box, css);
    if (this.scale > 0.35) this.drawStubs(seen, css);
    this.drawn = visible.length;
    if (this.onDrawn) this.onDrawn();
  }

  outline(box, css) {
    const hit = this.hits.has(box.path);
    this.context.lineWidth = box === this.selected || hit ? Math.max(2.5, 2 / this.scale) : 1;
    this.context.strokeStyle = box === this.selected ? css("--accent") : hit ? css("--hit") : "#00000055";
    this.context.stroke();
  }

  drawRegion(box, css) {
    const c = this.context;
    c.beginPath();
    c.roundRect(box.ax, box.ay, box.w, box.h, 8);
    c.fillStyle = box.depth % 2 ? css("--paper") : css("--region");
    c.fill();
    this.outline(box, css);
    if (this.scale < 0.25) return;
    c.fillStyle = css("--ink");
    c.font = BOLD;
    c.fillText(`\u2212  ${box.title}`, box.ax + PAD, box.ay + 16);
  }

  drawBox(box, css) {
    const c = this.context;
    c.beginPath();
    c.roundRect(box.ax, box.ay, box.w, box.h, 6);
    c.fillStyle = this.color(box);
    c.fill();
    this.outline(box, css);
    if (this.scale < 0.25) return;
    c.fillStyle = "#1b1f24";
    box.lines.forEach((line, k) => {
      c.font = k === 0 ? BOLD : FONT;
      c.fillText(line, box.ax + PAD, box.ay + LINE * (k + 1));
    });
    if (box.openable) c.fillText("+", box.ax + box.w - 14, box.ay + LINE);
  }

  drawArrows(seen, css) {
    const groups = [[], [], []];
    for (const arrow of this.scene.arrows) {
      const { from, to } = arrow;
      const outer = arrow.outer || to;
      const chosen = this.selected && (from === this.selected ? 2 : outer === this.selected ? 1 : 0);
      if (arrow.far && !chosen) continue;
      const top = Math.min(from.ay, to.ay), bottom = Math.max(from.ay + from.h, to.ay);
      const left = Math.min(from.ax, to.ax), right = Math.max(from.ax + from.w, to.ax + to.w);
      if (left > seen.right || right < seen.left || top > seen.bottom || bottom < seen.top) continue;
      groups[chosen || 0].push(arrow);
    }
    const colors = [css("--edge"), css("--accent"), css("--hit")];
    const c = this.context;
    groups.forEach((group, k) => {
      c.beginPath();
      for (const { from, to } of group) curve(c, from, to, this.scale > 0.3);
      c.lineWidth = (k ? 2 : 1) * Math.max(1, 0.35 / this.scale);
      c.strokeStyle = colors[k];
      c.stroke();
    });
  }

  drawStubs(seen, css) {
    const c = this.context;
    c.font = FONT;
    c.fillStyle = css("--accent");
    for (const stub of this.scene.stubs) {
      const place = stubPlace(stub);
      if (place.y < seen.top || place.y - 12 > seen.bottom || place.x > seen.right || place.x + place.w < seen.left) continue;
      c.fillText(cut(`\u2191 ${stub.from.node.name}`, Math.floor(place.w / 7)), place.x, place.y);
    }
  }
}

// Position of a far operand's name, in the gap above its user. From the third on, names share a row.
function stubPlace({ to, row }) {
  return { x: to.ax + 4, y: to.ay - 4 - 11 * Math.min(row, 2), w: Math.max(90, to.w - 4) };
}

function curve(c, from, to, heads) {
  const x0 = from.ax + from.w / 2, y0 = from.ay + from.h, x1 = to.ax + to.w / 2, y1 = to.ay;
  const bend = Math.min(60, Math.max(14, Math.abs(y1 - y0) / 2));
  c.moveTo(x0, y0);
  c.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
  if (!heads) return;
  c.moveTo(x1 - 3.5, y1 - 6);
  c.lineTo(x1, y1);
  c.lineTo(x1 + 3.5, y1 - 6);
}
