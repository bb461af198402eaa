// The figures at the top.
function summary() {
  parted(by("title"), report.name);
  const how = report.time && (report.time.source === "measured"
    ? `measured, ${report.time.runs} runs, ${report.time.threads === 1 ? "1 thread" : report.time.threads + " threads"}` : "modeled: one core with wide vectors, at best");
  parted(by("subtitle"), [report.target, old ? "compared with " + old.name : "", `${report.layers.length} ${report.kind === "object" ? "functions" : "layers"}`].filter(Boolean).join("; "));
  const sizes = report.sizes, ram = (s) => s.arena + s.scratch + s.stack + s.feeds + s.variables + s.results;
  const changed = (name) => diff && diff.figures.find((figure) => figure.name === name && figure.old != null && figure.new != null);
  const show = (label, value, more, key) => {
    const box = element("div", null, by("figures")), dt = element("dt", label, box), dd = element("dd", value, box);
    if (more) element("small", more, dd);
    const change = changed(key);
    if (change && change.old > 0) {
      const part = change.new / change.old - 1, words = change.unit === "bytes" ? bytes(change.old) : change.unit === "s" ? time(change.old) : small(change.old);
      element("small", `${part >= 9 ? `${(part + 1).toFixed(0)} times` : `${part >= 0 ? "+" : ""}${(100 * part).toFixed(1)}%`} from ${words}`, dd, part > 0.02 ? "worse" : part < -0.02 ? "better" : "");
    }
    return dt;
  };
  if (report.time) show("latency", time(report.time.seconds), how, "latency");
  show("size", bytes(sizes.code + sizes.constants), `code ${bytes(sizes.code)}, constants ${bytes(sizes.constants)}`, "size");
  show("RAM", bytes(ram(sizes)), `arena ${bytes(sizes.arena)}, scratch ${bytes(sizes.scratch)}, arrays ${bytes(sizes.feeds + sizes.variables + sizes.results)}`, "ram");
  if (report.peak) {
    let work = 0, whole = 0;
    for (const layer of report.layers) if (layer.seconds > 0) { whole += layer.seconds; work += (layer.share_of_peak || 0) * layer.seconds; }
    show("share of peak", percent(whole ? work / whole : 0), `${count(report.peak.flops)}FLOP/s, ${bytes(report.peak.bytes)}/s measured`);
  }
  if (report.precision.length) show("precision", report.precision[0], report.precision.slice(1, 4).join(", "));
  for (const result of report.results.slice(0, 4)) show("error of " + result.name, small(result.relative), `at most ${small(result.largest)}`, "error of " + result.name);
  const notes = report.missing.concat(diff ? diff.notes : []);
  for (const what of notes) element("li", what, by("missing"));
}
