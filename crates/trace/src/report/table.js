// The table of kernels. A click on a column's header sorts by that column.
const table = (() => {
  const whole = report.kernels.reduce((sum, kernel) => sum + kernel.duration, 0) || 1;
  const rate = (amount, kernel, unit) => amount > 0 && kernel.duration > 0 ? withPrefix(amount / kernel.duration * 1e9, unit) : "";
  const roof = (kernel) => {
    if (!report.peak || !(kernel.flops + kernel.bytes > 0)) return 0;
    return Math.max(kernel.flops / report.peak.flops, kernel.bytes / report.peak.bytes) * 1e9;
  };
  const columns = [
    { head: "Name", key: (k) => k.name, text: (k) => k.name },
    { head: "Kind", key: (k) => k.kind, text: (k) => k.kind },
    { head: "Node", key: (k) => k.node, text: (k) => k.node },
    { head: "Time", key: (k) => k.duration, text: (k) => time(k.duration) },
    { head: "Share", key: (k) => k.duration, text: (k) => percent(k.duration / whole) },
    { head: "FLOPs", key: (k) => k.flops, text: (k) => k.flops ? withPrefix(k.flops, "") : "" },
    { head: "Bytes", key: (k) => k.bytes, text: (k) => k.bytes ? withPrefix(k.bytes, "B") : "" },
    { head: "FLOP/s", key: (k) => k.flops / (k.duration || 1), text: (k) => rate(k.flops, k, "") },
    { head: "Bytes/s", key: (k) => k.bytes / (k.duration || 1), text: (k) => rate(k.bytes, k, "B") },
  ];
  // Shortest time at the machine's peaks, as a share of the measured time.
  if (report.peak) {
    columns.push({
      head: "% of peak", key: (k) => roof(k) / (k.duration || 1),
      text: (k) => roof(k) > 0 && k.duration > 0 ? percent(roof(k) / k.duration) : "",
    });
  }
  let sorted = columns[3], descending = true, chosen = null;
  const head = document.querySelector("#kernels thead"), body = document.querySelector("#kernels tbody");
  const filter = document.getElementById("filter");

  const draw = () => {
    const query = filter.value.toLowerCase();
    const rows = report.kernels.filter((k) => `${k.name} ${k.kind} ${k.node}`.toLowerCase().includes(query));
    rows.sort((a, b) => {
      const [p, q] = [sorted.key(a), sorted.key(b)];
      return (p < q ? -1 : p > q ? 1 : 0) * (descending ? -1 : 1);
    });
    head.replaceChildren(element("tr", {}, ...columns.map((column) => {
      const button = element("button", { type: "button" }, column.head);
      button.addEventListener("click", () => {
        descending = column === sorted ? !descending : true;
        sorted = column;
        draw();
      });
      return element("th", column === sorted ? { "aria-sort": descending ? "descending" : "ascending" } : {}, button);
    })));
    body.replaceChildren(...rows.map((kernel) => {
      const cells = columns.map((column) => element("td", {}, column.text(kernel)));
      cells[1].prepend(element("i", { class: "kind", style: `background: ${color(kernel.kind)}` }));
      cells[4].classList.add("share");
      cells[4].style.setProperty("--part", kernel.duration / whole);
      const row = element("tr", kernel.name === chosen ? { class: "chosen" } : {}, ...cells);
      row.addEventListener("click", () => choose(kernel.name));
      return row;
    }));
  };
  filter.addEventListener("input", draw);
  choosers.push((name) => {
    chosen = name;
    draw();
    body.querySelector(".chosen")?.scrollIntoView({ block: "nearest" });
  });
  return { draw, whole };
})();
