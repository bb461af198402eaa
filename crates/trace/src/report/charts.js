// The roofline chart, on logarithmic axes, and the chart of memory use over time.
const chart = { width: 640, height: 330, left: 62, right: 14, top: 12, bottom: 34 };

const frame = (place, label) => {
  const svg = element("svg", { viewBox: `0 0 ${chart.width} ${chart.height}`, role: "img", "aria-label": label });
  document.getElementById(place).append(svg);
  return svg;
};

const axes = (svg, xs, ys, xLabel) => {
  const { width, height, left, right, top, bottom } = chart;
  xs.forEach(([at, text], k) => {
    const anchor = k === xs.length - 1 ? "end" : "middle";
    svg.append(element("line", { class: "axis", x1: at, x2: at, y1: top, y2: height - bottom }));
    svg.append(element("text", { x: at, y: height - bottom + 14, "text-anchor": anchor }, text));
  });
  for (const [at, text] of ys) {
    svg.append(element("line", { class: "axis", x1: left, x2: width - right, y1: at, y2: at }));
    svg.append(element("text", { x: left - 5, y: at + 4, "text-anchor": "end" }, text));
  }
  svg.append(element("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, xLabel));
};

const roofline = () => {
  const dots = report.kernels.filter((k) => k.flops > 0 && k.bytes > 0 && k.duration > 0)
    .map((k) => ({ kernel: k, intensity: k.flops / k.bytes, rate: k.flops / k.duration * 1e9 }));
  if (!dots.length) {
    document.getElementById("roofline").append("No kernel has known FLOPs and bytes.");
    return;
  }
  const { width, height, left, right, top, bottom } = chart;
  const svg = frame("roofline", "Roofline: FLOP/s by FLOPs per byte");
  const peak = report.peak;
  const low = (values) => Math.floor(Math.log10(Math.min(...values))), high = (values) => Math.ceil(Math.log10(Math.max(...values)));
  const ridge = peak ? [peak.flops / peak.bytes] : [];
  const xValues = [...dots.map((d) => d.intensity), ...ridge], yValues = [...dots.map((d) => d.rate), ...(peak ? [peak.flops] : [])];
  const [x0, x1] = [low(xValues), Math.max(high(xValues), low(xValues) + 1)];
  const [y0, y1] = [low(yValues), Math.max(high(yValues), low(yValues) + 1)];
  const x = (value) => left + (Math.log10(value) - x0) / (x1 - x0) * (width - left - right);
  const y = (value) => height - bottom - (Math.log10(value) - y0) / (y1 - y0) * (height - top - bottom);
  const powers = (from, to) => Array.from({ length: to - from + 1 }, (_, k) => 10 ** (from + k));
  axes(svg, powers(x0, x1).map((v) => [x(v), `${v >= 1 ? v : v.toPrecision(1)}`]), powers(y0, y1).map((v) => [y(v), withPrefix(v, "")]),
    "FLOPs per byte (horizontal), FLOP/s (vertical)");
  if (peak) {
    const floor = 10 ** y0;
    const start = Math.max(10 ** x0, floor / peak.bytes);
    const line = `M${x(start)} ${y(Math.min(peak.flops, start * peak.bytes))} L${x(peak.flops / peak.bytes)} ${y(peak.flops)} L${width - right} ${y(peak.flops)}`;
    svg.append(element("path", { class: "roof", d: line }));
    svg.append(element("text", { x: width - right - 4, y: y(peak.flops) - 5, "text-anchor": "end" },
      `${withPrefix(peak.flops, "FLOP/s")}, ${withPrefix(peak.bytes, "B/s")}`));
  }
  dots.sort((a, b) => b.kernel.duration - a.kernel.duration);
  const circles = dots.map(({ kernel, intensity, rate }) => {
    const radius = 3 + 14 * Math.sqrt(kernel.duration / table.whole);
    const circle = element("circle", { class: "dot", cx: x(intensity), cy: y(rate), r: radius, fill: color(kernel.kind), "fill-opacity": 0.75 },
      element("title", {}, `${kernel.name} ${kernel.node}: ${withPrefix(rate, "FLOP/s")}, ${time(kernel.duration)}`));
    circle.addEventListener("click", () => choose(kernel.name));
    svg.append(circle);
    return [kernel.name, circle];
  });
  choosers.push((name) => circles.forEach(([own, circle]) => circle.classList.toggle("chosen", own === name)));
};

const memory = () => {
  const series = report.memory.filter((s) => s.points.length);
  if (!series.length) {
    document.getElementById("memory").append("No memory was used.");
    return;
  }
  const { width, height, left, right, top, bottom } = chart;
  const svg = frame("memory", "Memory use over time");
  const limit = Math.max(1, ...series.flatMap((s) => s.points.map((point) => point[1]))) * 1.2;
  const x = (t) => left + t / timeline.end * (width - left - right);
  const y = (bytes) => height - bottom - bytes / limit * (height - top - bottom);
  const fractions = [0, 0.25, 0.5, 0.75, 1];
  axes(svg, fractions.map((part) => [x(part * timeline.end), time(part * timeline.end)]),
    fractions.map((part) => [y(part * limit / 1.2), withPrefix(part * limit / 1.2, "B")]), "time");
  series.forEach((s, number) => {
    let path = "";
    s.points.forEach(([t, bytes], k) => {
      path += k === 0 ? `M${x(t)} ${y(0)} V${y(bytes)}` : ` H${x(t)} V${y(bytes)}`;
    });
    path += ` H${x(timeline.end)} V${y(0)} Z`;
    svg.append(element("path", { class: "area", d: path }, element("title", {}, s.name)));
    const peakBytes = Math.max(...s.points.map((point) => point[1]));
    svg.append(element("text", { x: left + 8, y: top + 14 + 14 * number }, `${s.name}: peak ${withPrefix(peakBytes, "B")}`));
  });
};
