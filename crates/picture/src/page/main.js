// The page: state, search, keys, and the URL. The URL records the open boxes, the selection, the
// search, and the coloring, so that a view can be shared.

const graph = JSON.parse(document.getElementById("graph").textContent);
const byId = (id) => document.getElementById(id);
const view = new View(byId("canvas"), graph.kinds);
const state = { open: new Set(), at: null, hits: [], hit: -1 };
// Maximum number of boxes that "Open all" creates.
const MAX_BOXES = 20000;

// First caller of each computation, which leads from a search hit back to the entry.
const caller = new Map();
graph.computations.forEach((computation, c) => computation.nodes.forEach((node, n) => {
  (node.calls || []).forEach((callee, k) => { if (!caller.has(callee)) caller.set(callee, { c, n, k }); });
}));

/** Returns the path of an instruction through first callers, or null if it is unreachable. */
function pathTo(computation, number) {
  let path = String(number);
  for (let at = computation, steps = 0; at !== graph.entry; steps++) {
    const from = caller.get(at);
    if (!from || steps > graph.computations.length) return null;
    path = `${from.n}/${from.k}.${path}`;
    at = from.c;
  }
  return path;
}

/** Returns the paths of the callers of the instruction at a path, outermost first. */
function callersOf(path) {
  const parts = path.split("/");
  return parts.slice(0, -1).map((_, k) => parts.slice(0, k + 1).join("/"));
}

function rebuild() {
  view.scene = buildScene(graph, state.open, (text, bold) => view.measure(text, bold));
  markHits();
  view.selected = state.at === null ? null : view.scene.byPath.get(state.at) || null;
  view.redraw();
}

function goTo(path) {
  let hidden = false;
  for (const outer of callersOf(path)) {
    if (!state.open.has(outer)) { state.open.add(outer); hidden = true; }
  }
  state.at = path;
  if (hidden) rebuild();
  const box = view.scene.byPath.get(path) || null;
  select(box);
  if (box) view.center(box);
}

function select(box) {
  state.at = box ? box.path : null;
  view.selected = box;
  showDetails(byId("panel"), graph, box, goTo, toggle, box !== null && state.open.has(box.path));
  view.resize();
  remember();
}

// Opens or closes a box. Its top left corner stays where it is on the screen.
function toggle(path) {
  const before = view.scene.byPath.get(path);
  if (state.open.has(path)) {
    for (const inner of [...state.open]) if (inner === path || inner.startsWith(path + "/")) state.open.delete(inner);
  } else state.open.add(path);
  rebuild();
  const after = view.scene.byPath.get(path);
  if (before && after) {
    view.x += after.ax - before.ax;
    view.y += after.ay - before.ay;
  }
  select(after || null);
}

/** Opens fusions and callees, level by level, up to the maximum number of boxes. */
function openAll() {
  let count = view.scene.boxes.length;
  for (let level = view.scene.boxes; level.length;) {
    const next = [];
    for (const box of level) {
      if (!box.openable || state.open.has(box.path)) continue;
      const inside = box.node.calls.reduce((sum, callee) => sum + graph.computations[callee].nodes.length, 0);
      if ((count += inside) > MAX_BOXES) {
        byId("hits").textContent = "graph too large to open completely";
        next.length = 0;
        break;
      }
      state.open.add(box.path);
      next.push(box.path);
    }
    rebuild();
    level = next.length ? view.scene.boxes.filter((box) => box.openable && !state.open.has(box.path)) : [];
  }
  view.start();
  remember();
}

function closeAll() {
  state.open.clear();
  if (state.at !== null && state.at.includes("/")) state.at = callersOf(state.at)[0];
  rebuild();
  select(view.selected);
  view.start();
}

function search(words) {
  const terms = words.toLowerCase().split(/\s+/).filter(Boolean);
  state.hits = [];
  state.hit = -1;
  if (terms.length) {
    graph.computations.forEach((computation, c) => computation.nodes.forEach((node, n) => {
      if (node.value !== undefined) return;
      const text = [node.name, node.opcode, node.shape, node.op_type, node.op_name].join(" ").toLowerCase();
      if (!terms.every((word) => text.includes(word))) return;
      const path = pathTo(c, n);
      if (path !== null) state.hits.push(path);
    }));
  }
  markHits();
  byId("hits").textContent = terms.length ? `${number(state.hits.length)} found` : "";
  view.redraw();
  remember();
}

// Marks the hits. A hit inside a closed box marks that box.
function markHits() {
  view.hits = new Set();
  for (const path of state.hits) {
    const hiding = callersOf(path).find((outer) => !state.open.has(outer));
    view.hits.add(hiding === undefined ? path : hiding);
  }
}

function nextHit(step) {
  if (!state.hits.length) return;
  state.hit = state.hit < 0 && step < 0 ? state.hits.length - 1 : (state.hit + step + state.hits.length) % state.hits.length;
  goTo(state.hits[state.hit]);
  byId("hits").textContent = `${number(state.hit + 1)} of ${number(state.hits.length)}`;
}

function colorBy(quantity) {
  const value = quantity === "flops" ? (node) => (node.flops || 0) + (node.transcendentals || 0)
    : quantity === "moved" ? (node) => (node.read || 0) + (node.written || 0) : null;
  const max = value ? Math.max(1, ...graph.computations[graph.entry].nodes.map(value)) : 1;
  view.heat = value ? { value: (node) => Math.min(max, value(node)), max } : null;
  byId("legend").hidden = Boolean(value);
  view.redraw();
  remember();
}

// ---- the URL

function remember() {
  const words = new URLSearchParams();
  if (state.at !== null) words.set("at", state.at);
  if (state.open.size && state.open.size <= 200) words.set("open", [...state.open].join(","));
  if (byId("search").value) words.set("find", byId("search").value);
  if (byId("color").value !== "kind") words.set("color", byId("color").value);
  const hash = words.toString();
  try {
    history.replaceState(null, "", hash ? "#" + hash : location.pathname + location.search);
  } catch { /* A page without its own URL does not record its state. */ }
}

function restore() {
  const words = new URLSearchParams(location.hash.slice(1));
  state.open = new Set((words.get("open") || "").split(",").filter(Boolean));
  const color = words.get("color") || "kind";
  byId("color").value = ["kind", "flops", "moved"].includes(color) ? color : "kind";
  byId("search").value = words.get("find") || "";
  const at = words.get("at");
  rebuild();
  view.resize();
  view.start();
  colorBy(byId("color").value);
  if (byId("search").value) search(byId("search").value);
  if (at) goTo(at);
}

// ---- user input

function followPointers() {
  const canvas = byId("canvas");
  const pointers = new Map();
  let moved = 0;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    if (pointers.size === 1) moved = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const last = pointers.get(event.pointerId);
    if (!last) {
      const { box, stub } = view.at(event.offsetX, event.offsetY);
      canvas.classList.toggle("over", Boolean(box || stub));
      canvas.title = box ? box.node.text.slice(0, 400) : "";
      return;
    }
    const now = { x: event.offsetX, y: event.offsetY };
    if (pointers.size === 2) {
      const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      const span = (p) => Math.hypot(p.x - other.x, p.y - other.y) || 1;
      view.zoom(span(now) / span(last), (now.x + other.x) / 2, (now.y + other.y) / 2);
    }
    moved += Math.abs(now.x - last.x) + Math.abs(now.y - last.y);
    view.pan((now.x - last.x) / pointers.size, (now.y - last.y) / pointers.size);
    canvas.classList.add("dragging");
    pointers.set(event.pointerId, now);
  });
  const end = (event) => {
    const wasClick = pointers.delete(event.pointerId) && moved < 5 && event.type === "pointerup";
    canvas.classList.remove("dragging");
    if (!wasClick) return;
    const { box, stub } = view.at(event.offsetX, event.offsetY);
    if (stub) goTo(stub.from.path);
    else if (box && box.openable && (box === view.selected || onSign(box, event))) toggle(box.path);
    else select(box || null);
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("dblclick", (event) => {
    const { box } = view.at(event.offsetX, event.offsetY);
    if (!box) view.zoom(2, event.offsetX, event.offsetY);
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    if (event.shiftKey) view.pan(-event.deltaY * lines, 0);
    else view.zoom(Math.exp(-event.deltaY * lines * 0.0015), event.offsetX, event.offsetY);
  }, { passive: false });
}

// True on the sign that opens or closes a box: right of a closed box's first line, or left of an
// open box's title.
function onSign(box, event) {
  const x = view.x + event.offsetX / view.scale - box.ax, y = view.y + event.offsetY / view.scale - box.ay;
  return box.regions.length ? y < HEAD && x < 2.5 * PAD : y < LINE + PAD && x > box.w - 20;
}

function followKeys() {
  const steps = { ArrowLeft: [80, 0], ArrowRight: [-80, 0], ArrowUp: [0, 80], ArrowDown: [0, -80] };
  const keys = {
    "/": () => byId("search").focus(), "+": () => view.zoom(1.25), "=": () => view.zoom(1.25), "-": () => view.zoom(0.8),
    0: () => view.fit(), e: openAll, c: closeAll, n: () => nextHit(1), p: () => nextHit(-1), Escape: () => select(null),
    Enter: () => { if (view.selected && view.selected.openable) toggle(view.selected.path); },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === byId("search")) {
      if (event.key === "Enter") nextHit(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") byId("canvas").focus();
      return;
    }
    if (event.target.closest("button, select")) return;
    if (steps[event.key]) view.pan(...steps[event.key]);
    else if (keys[event.key]) keys[event.key]();
    else return;
    event.preventDefault();
  });
}

function followButtons() {
  byId("search").addEventListener("input", (event) => search(event.target.value));
  byId("color").addEventListener("change", (event) => colorBy(event.target.value));
  byId("open-all").onclick = openAll;
  byId("close-all").onclick = closeAll;
  byId("zoom-in").onclick = () => view.zoom(1.25);
  byId("zoom-out").onclick = () => view.zoom(0.8);
  byId("fit").onclick = () => view.fit();
  window.addEventListener("resize", () => view.resize());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view.redraw());
}

function begin() {
  const entry = graph.entry === null ? [] : graph.computations[graph.entry].nodes;
  const all = graph.computations.reduce((sum, computation) => sum + computation.nodes.length, 0);
  const total = (value) => entry.reduce((sum, node) => sum + (value(node) || 0), 0);
  byId("title").textContent = graph.name;
  byId("title").title = graph.name;
  byId("totals").textContent = `${counted(all, "instruction")}, ${counted(graph.computations.length, "computation")}, `
    + `${short(total((node) => node.flops), "FLOP")}, `
    + `${short(total((node) => (node.read || 0) + (node.written || 0)), "B")} moved`;
  const used = new Set(graph.computations.flatMap((computation) => computation.nodes.map((node) => node.kind)));
  graph.kinds.forEach((kind, k) => {
    if (!used.has(k)) return;
    const item = element("li", kind.name);
    const swatch = element("i");
    swatch.style.background = kind.color;
    item.prepend(swatch);
    byId("legend").append(item);
  });
  view.onDrawn = () => {
    byId("status").textContent = `${number(view.scene.boxes.length)} boxes, ${number(view.drawn)} visible, zoom `
      + `${Math.round(view.scale * 100)}%. Click: details. Click again or +: open. Wheel: zoom. Drag: move. /: search.`;
  };
  followPointers();
  followKeys();
  followButtons();
  restore();
}

begin();
