// Drives a report's page as a reader does, and writes what it found to the document's title.
"use strict";
addEventListener("load", () => setTimeout(() => {
  const failures = [], check = (what, holds) => { if (!holds) failures.push(what); };
  const press = (target, key) => target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const box = by("layers"), rows = () => [...document.querySelectorAll(".row")];
  const many = report.layers.length > 1000;
  check("only visible rows are elements", rows().length > 0 && rows().length < 60);
  check("one row is chosen", document.querySelectorAll(".row.chosen").length === 1);
  press(box, "Home");
  const scope = state.rows[0];
  if (scope.items) {
    const before = state.rows.length, wasOpen = state.open.has(scope.path);
    press(box, wasOpen ? "ArrowLeft" : "ArrowRight");
    check("an arrow opens or closes a scope", state.rows.length !== before);
    press(box, wasOpen ? "ArrowRight" : "ArrowLeft");
    check("the other arrow undoes that", state.rows.length === before);
  }
  press(box, "ArrowDown");
  check("down moves to the next row", state.at === 1 || state.rows.length === 1);
  press(box, "End");
  check("End reaches the last row", state.at === state.rows.length - 1 && document.getElementById("row-" + state.at) !== null);
  press(document.body, "/");
  check("slash focuses the search", document.activeElement === by("search"));
  by("search").value = many ? "block_7/op_3" : "<" + "/script>";
  by("search").dispatchEvent(new Event("input"));
  check("the search finds one layer", by("hits").textContent === "1 found");
  press(by("search"), "Enter");
  check("the found layer has details", by("detail").textContent.includes("strategy"));
  if (many) {
    const words = by("detail").textContent, named = [...Array(5).keys()].map((k) => `net/block_7/bias_${k}`).join(", ");
    check("candidates have their modeled costs", words.includes("pixels=6x4 (1.23 k cycles per group); pixels=9x3"));
    check("a layer lists its nodes", words.includes(`nodes net/block_7/op_3, ${named}`));
    if (diff) {
      check("a row names the first nodes that were fused", rows()[0].textContent.includes("fused with net/block_7/bias_0, net/block_7/bias_1, net/block_7/bias_2 and 2 more"));
      check("the details name all of them", words.includes(`changed fused with ${named}`));
    }
  }
  if (diff) {
    check("a scope counts the layers that changed", scope.changes === "1 changed" && state.rows.length > 0);
    const button = [...by("kinds").children].find((one) => one.textContent === "1 fused with");
    button.click();
    check("a count of changes finds the layers", by("hits").textContent === "1 found" && button.getAttribute("aria-pressed") === "true");
    check("a count of changes does not find other words", (search("changed: slower"), by("hits").textContent === "0 found"));
    check("removed layers are listed", !by("removed").hidden && by("removed").textContent.includes("1 layer was removed") && by("removed").textContent.includes("net/gone"));
  }
  press(by("search"), "Escape");
  check("Escape ends the search", by("hits").textContent === "");
  [...document.querySelectorAll("#head button")].find((button) => button.textContent === "time").click();
  const times = state.rows.map((row) => row.sum.seconds);
  check("a heading sorts layers by time", times.length === report.layers.length && times.every((t, k) => k === 0 || times[k - 1] >= t));
  const canvas = by("memory"), middle = Math.floor(report.moments.length / 2);
  canvas.dispatchEvent(new MouseEvent("click", { bubbles: true, clientX: canvas.getBoundingClientRect().left + canvas.clientWidth * (middle + 0.5) / report.moments.length, clientY: canvas.getBoundingClientRect().top + 9 }));
  // Positions of the mouse are whole pixels, and many moments are narrower than two.
  const shown = () => Number(/^moment (\d+) of /.exec(by("live").textContent)[1]), slack = canvas.clientWidth < 2 * report.moments.length ? Math.ceil(report.moments.length / canvas.clientWidth) : 0;
  const clicked = shown();
  check("a click shows the buffers of a moment", Math.abs(clicked - (middle + 1)) <= slack);
  press(canvas, "ArrowRight");
  check("an arrow shows the next moment", shown() === Math.min(clicked + 1, report.moments.length));
  dispatchEvent(new Event("resize"));
  const drawings = [...document.querySelectorAll("#roofline svg")];
  check("a resize keeps one roofline", drawings.length === (report.peak && many ? 1 : 0));
  for (const svg of drawings) {
    check("a layer has a dot in the roofline", svg.querySelectorAll(".dot").length === report.layers.length);
    check("the text of the roofline keeps its size", Math.abs(svg.viewBox.baseVal.width - svg.getBoundingClientRect().width) <= 1);
  }
  const kind = [...document.querySelectorAll("#head button")].find((button) => button.textContent === "kind");
  check("the kind of a layer is in view", diff || kind.getBoundingClientRect().right <= box.getBoundingClientRect().right);
  check("the page is not wider than the window", document.documentElement.scrollWidth <= innerWidth);
  check("hostile names run nothing", !window.hostile);
  const result = document.createElement("pre");
  result.textContent = failures.length ? "failed: " + failures.join("; ") : `passed: report of ${report.layers.length} layers`;
  document.body.append(result);
  if (parent !== window) parent.postMessage(result.textContent, "*");
}, 300));
