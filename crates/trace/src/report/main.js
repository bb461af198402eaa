// Fills in the title and the totals, and draws the parts of the page.
document.getElementById("title").textContent = report.title;
document.getElementById("subtitle").textContent = report.subtitle;
const totals = (() => {
  const sum = (key) => report.kernels.reduce((all, kernel) => all + kernel[key], 0);
  const duration = table.whole, flops = sum("flops"), bytes = sum("bytes");
  const shown = [["kernel time per step", time(duration)], ["kernels", `${report.kernels.length}`]];
  if (flops > 0) shown.push(["FLOP/s", withPrefix(flops / duration * 1e9, "")]);
  if (flops > 0 && report.peak) shown.push(["of peak FLOP/s", percent(flops / duration * 1e9 / report.peak.flops)]);
  if (bytes > 0) shown.push(["bytes moved", withPrefix(bytes, "B")]);
  return shown;
})();
document.getElementById("totals").append(
  ...totals.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))),
);
timeline.draw();
table.draw();
roofline();
memory();
