// Roofline, constants, and accuracy.
function roofline() {
  const dots = report.layers.map((layer, number) => ({ layer, number })).filter(({ layer }) => layer.seconds > 0 && layer.flops > 0 && layer.bytes > 0);
  by("roofline-section").hidden = !report.peak || dots.length === 0;
  if (by("roofline-section").hidden) return;
  const point = ({ layer }) => [layer.flops / layer.bytes, layer.flops / layer.seconds], peak = report.peak, points = dots.map(point);
  const log = Math.log10, ridge = peak.flops / peak.bytes;
  const low = Math.floor(log(Math.min(ridge / 10, ...points.map((p) => p[0])))), high = Math.ceil(log(Math.max(ridge * 10, ...points.map((p) => p[0]))));
  const top = log(Math.max(peak.flops, peak.byte_operations || 0, ...points.map((p) => p[1]))) + 0.25, bottom = Math.floor(log(Math.min(...points.map((p) => p[1]))));
  // Its text keeps its size in a narrow window.
  const width = Math.max(400, Math.min(by("roofline").clientWidth, 860)), right = width - 20;
  const x = (v) => 60 + ((log(v) - low) / (high - low)) * (right - 60), y = (v) => 290 - ((log(v) - bottom) / (top - bottom)) * 270;
  by("roofline").replaceChildren();
  const svg = drawn("svg", { viewBox: `0 0 ${width} 330`, role: "img", "aria-label": "Roofline of the layers" }, by("roofline"));
  for (let k = low; k <= high; k++) { drawn("line", { class: "axis", x1: x(10 ** k), x2: x(10 ** k), y1: 20, y2: 290 }, svg); drawn("text", { x: x(10 ** k), y: 306, "text-anchor": "middle" }, svg, String(+(10 ** k).toPrecision(1))); }
  for (let k = bottom; k <= top; k++) { drawn("line", { class: "axis", x1: 60, x2: right, y1: y(10 ** k), y2: y(10 ** k) }, svg); drawn("text", { x: 54, y: y(10 ** k) + 4, "text-anchor": "end" }, svg, count(10 ** k)); }
  drawn("text", { x: (60 + right) / 2, y: 324, "text-anchor": "middle" }, svg, "operations per byte of operands and results");
  drawn("text", { x: 60, y: 14 }, svg, "operations per second; points above the slope read from caches");
  const left = Math.max(10 ** low, 10 ** bottom / peak.bytes);
  drawn("polyline", { class: "roof", points: `${x(left)},${y(left * peak.bytes)} ${x(ridge)},${y(peak.flops)} ${x(10 ** high)},${y(peak.flops)}` }, svg);
  if (peak.byte_operations) { drawn("line", { class: "roof", "stroke-dasharray": "5 4", x1: x(peak.byte_operations / peak.bytes), x2: x(10 ** high), y1: y(peak.byte_operations), y2: y(peak.byte_operations) }, svg); drawn("text", { x: right - 4, y: y(peak.byte_operations) - 5, "text-anchor": "end" }, svg, "bytes"); }
  drawn("text", { x: right - 4, y: y(peak.flops) - 5, "text-anchor": "end" }, svg, "f32");
  const longest = Math.max(...dots.map((d) => d.layer.seconds));
  for (const dot of dots) {
    const [a, b] = point(dot), circle = drawn("circle", { class: "dot", cx: x(a), cy: y(b), r: 3 + 8 * Math.sqrt(dot.layer.seconds / longest) }, svg);
    drawn("title", {}, circle, `${nameOf(dot.layer)}: ${time(dot.layer.seconds)}, ${percent(dot.layer.share_of_peak)} of peak`);
    circle.addEventListener("click", () => { show(dot.number); by("layers").scrollIntoView({ block: "nearest" }); });
  }
}
function constants() {
  by("constants-section").hidden = report.constants.length === 0;
  if (report.constants.length) table(by("constants"), ["constant", "shape", "bytes", "of constants"], report.constants.slice(0, 20).map((c) => [c.node ? `${c.node} (${c.name})` : c.name, c.shape, bytes(c.bytes), percent(c.bytes / Math.max(1, report.sizes.constants))]));
}
function accuracy() {
  const rows = report.layers.filter((layer) => layer.accuracy).sort((a, b) => b.accuracy.share_of_limit - a.accuracy.share_of_limit);
  by("accuracy-section").hidden = rows.length === 0 && report.results.length === 0;
  if (report.results.length) table(by("accuracy"), ["result", "relative (rms)", "largest difference", "largest number"], report.results.map((r) => [r.name, small(r.relative), small(r.largest), small(r.magnitude)]));
  if (rows.length) table(by("accuracy"), ["layer", "input", "ulp", "relative", "of limit"], rows.slice(0, 20).map((l) => [nameOf(l), l.accuracy.input, String(l.accuracy.max_ulp), small(l.accuracy.max_relative), percent(l.accuracy.share_of_limit)]));
}
