// The timeline: bars on a canvas. Only visible bars are drawn, so ten thousand bars stay fast.
const timeline = (() => {
  const canvas = document.getElementById("timeline");
  const status = document.getElementById("bar");
  const lanes = report.lanes;
  const end = Math.max(1, ...lanes.flatMap((lane) => lane.bars.map((bar) => bar[2] + bar[3])));
  const laneHeight = 26, top = 22, left = 150;
  let from = 0, span = end, chosen = null, over = null, drag = null;

  const width = () => canvas.clientWidth - left;
  const x = (nanoseconds) => left + (nanoseconds - from) / span * width();
  const limit = () => {
    span = Math.min(end, Math.max(end / 1e6, span));
    from = Math.min(end - span, Math.max(0, from));
  };

  const ticks = (context, style) => {
    let step = 10 ** Math.floor(Math.log10(span / 4));
    for (const factor of [2, 5, 10]) if (span / step > 12) step *= factor / (factor === 5 ? 2 : factor === 10 ? 5 : 1);
    context.fillStyle = style.getPropertyValue("--faint");
    for (let t = Math.ceil(from / step) * step; t <= from + span; t += step) {
      context.fillRect(x(t), 16, 1, canvas.clientHeight);
      context.fillText(time(t), x(t) + 3, 12);
    }
  };

  const draw = () => {
    const style = getComputedStyle(document.documentElement);
    const height = top + lanes.length * laneHeight + 6;
    const ratio = window.devicePixelRatio || 1;
    canvas.style.height = `${height}px`;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = height * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "11px system-ui, sans-serif";
    context.globalAlpha = 0.4;
    ticks(context, style);
    context.globalAlpha = 1;
    lanes.forEach((lane, row) => {
      const y = top + row * laneHeight;
      context.save();
      context.beginPath();
      context.rect(left, y, width(), laneHeight);
      context.clip();
      for (const bar of lane.bars) {
        if (bar[2] + bar[3] < from || bar[2] > from + span) continue;
        const begin = Math.max(x(bar[2]), left - 1), size = Math.max(1, x(bar[2] + bar[3]) - begin);
        context.fillStyle = color(bar[1]);
        context.fillRect(begin, y + 2, Math.max(1, size - 0.5), laneHeight - 4);
        if (bar[0] === chosen || bar === over) {
          context.strokeStyle = style.getPropertyValue("--hit");
          context.lineWidth = 2;
          context.strokeRect(begin + 1, y + 3, Math.max(1, size - 2), laneHeight - 6);
        }
        if (size > 30) {
          context.save();
          context.beginPath();
          context.rect(begin, y, size - 3, laneHeight);
          context.clip();
          context.fillStyle = "#fff";
          context.fillText(bar[0], begin + 4, y + 17);
          context.restore();
        }
      }
      context.restore();
      context.fillStyle = style.getPropertyValue("--ink");
      context.save();
      context.beginPath();
      context.rect(0, y, left - 6, laneHeight);
      context.clip();
      context.fillText(lane.name, 6, y + 17);
      context.restore();
    });
  };

  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    const lane = lanes[Math.floor((event.clientY - box.top - top) / laneHeight)];
    const pixel = event.clientX - box.left;
    if (!lane || pixel < left) return null;
    const t = from + (pixel - left) / width() * span, slack = 2 * span / width();
    return lane.bars.find((bar) => t >= bar[2] - slack && t <= bar[2] + bar[3] + slack) || null;
  };

  const zoom = (factor, middle = from + span / 2) => {
    const share = (middle - from) / span;
    span *= factor;
    limit();
    from = middle - share * span;
    limit();
    draw();
  };
  const move = (part) => {
    from += part * span;
    limit();
    draw();
  };
  const showStatus = (bar) => {
    status.textContent = bar ? `${bar[0]}: ${time(bar[3])}, starting at ${time(bar[2])}. ${bar[4]}` : "\u00a0";
  };

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const pixel = Math.max(0, event.clientX - canvas.getBoundingClientRect().left - left);
    zoom(Math.exp(event.deltaY / 400), from + pixel / width() * span);
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    drag = { x: event.clientX, from, moved: false };
    canvas.classList.add("dragging");
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) {
      over = at(event);
      showStatus(over);
      draw();
      return;
    }
    drag.moved ||= Math.abs(event.clientX - drag.x) > 3;
    from = drag.from - (event.clientX - drag.x) / width() * span;
    limit();
    draw();
  });
  canvas.addEventListener("pointerup", (event) => {
    const bar = drag && !drag.moved && at(event);
    drag = null;
    canvas.classList.remove("dragging");
    if (bar) choose(bar[0]);
  });
  canvas.addEventListener("keydown", (event) => {
    const actions = {
      "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), ArrowLeft: () => move(-0.15), ArrowRight: () => move(0.15),
      0: () => { from = 0; span = end; draw(); },
    };
    if (actions[event.key]) {
      event.preventDefault();
      actions[event.key]();
    }
  });
  window.addEventListener("resize", draw);
  choosers.push((name) => {
    chosen = name;
    const bar = lanes.flatMap((lane) => lane.bars).find((candidate) => candidate[0] === name);
    if (bar && (bar[2] > from + span || bar[2] + bar[3] < from)) {
      from = bar[2] - span / 2;
      limit();
    }
    showStatus(bar);
    draw();
  });
  return { draw, end };
})();
