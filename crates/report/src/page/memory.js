// Live bytes over the schedule.
let moment = -1;
function memory() {
  by("memory-section").hidden = report.moments.length === 0;
  if (!report.moments.length) return;
  const canvas = by("memory"), last = report.moments.length - 1;
  const pick = (k) => { moment = Math.max(0, Math.min(k, last)); paintMemory(); live(); };
  canvas.addEventListener("click", (event) => pick(Math.floor((event.offsetX / canvas.clientWidth) * report.moments.length)));
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowRight: 1, ArrowLeft: -1, Home: -1e9, End: 1e9 };
    if (event.key in moves) { pick(moment + moves[event.key]); event.preventDefault(); }
  });
  addEventListener("resize", paintMemory);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paintMemory);
  let peak = 0;
  report.moments.forEach((m, k) => { if (m.bytes > report.moments[peak].bytes) peak = k; });
  pick(peak);
}
function paintMemory() {
  const canvas = by("memory"), scale = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * scale; canvas.height = height * scale;
  const pen = canvas.getContext("2d"), style = getComputedStyle(document.documentElement), color = (name) => style.getPropertyValue(name);
  pen.scale(scale, scale);
  const top = Math.max(report.sizes.arena, ...report.moments.map((m) => m.bytes), 1), step = width / report.moments.length;
  const y = (n) => height - (n / top) * (height - 24);
  report.moments.forEach((m, k) => {
    pen.fillStyle = color(k === moment ? "--hit" : "--accent");
    pen.globalAlpha = k === moment ? 1 : 0.55;
    pen.fillRect(k * step, y(m.bytes), Math.max(step - (step > 4 ? 1 : 0), 0.5), height - y(m.bytes));
  });
  pen.globalAlpha = 1;
  pen.strokeStyle = color("--faint"); pen.setLineDash([5, 4]);
  pen.beginPath(); pen.moveTo(0, y(report.sizes.arena)); pen.lineTo(width, y(report.sizes.arena)); pen.stroke();
  pen.fillStyle = color("--faint"); pen.font = "12px system-ui, sans-serif";
  pen.fillText(`arena ${bytes(report.sizes.arena)}`, 8, y(report.sizes.arena) - 6);
}
function live() {
  const now = report.moments[moment], box = by("live");
  box.replaceChildren();
  const shown = now.layer == null ? now.name : nameOf(report.layers[now.layer]);
  parted(element("b", null, box), `moment ${moment + 1} of ${report.moments.length}: ${shown}: ${bytes(now.bytes)} live`);
  const buffers = report.buffers.filter((b) => b.live.some(([from, to]) => from <= moment && moment <= to)).sort((a, b) => b.bytes - a.bytes);
  table(box, ["buffer", "shape", "offset", "bytes"], buffers.slice(0, 40).map((b) => [b.node ? `${b.node} (${b.name})` : b.name, b.shape || "-", String(b.offset), bytes(b.bytes)]));
  if (buffers.length > 40) element("p", `and ${buffers.length - 40} smaller ones`, box);
}
