// Checks properties of every layout on many graphs. Runs after page/layout.js in a browser
// (scripts/test_pictures.sh). The document's text reports the outcome.

function* randomGraphs() {
  // A linear congruential generator gives the same graphs every time.
  let state = 12345;
  const below = (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 4294967296) * n);
  };
  for (let g = 0; g < 60; g++) {
    const boxes = [];
    const count = 1 + below(g < 50 ? 40 : 800);
    for (let i = 0; i < count; i++) {
      const operands = [];
      for (let k = below(4); k > 0 && i > 0; k--) operands.push(below(2) ? Math.max(0, i - 1 - below(5)) : below(i));
      boxes.push({ operands, w: 40 + below(200), h: 20 + below(60) });
    }
    yield boxes;
  }
}

function faultsOf(boxes, size) {
  const faults = [];
  boxes.forEach((box, i) => {
    for (const o of box.operands) {
      if (boxes[o].layer >= box.layer) faults.push(`box ${i} is not below its operand ${o}`);
      if (boxes[o].y + boxes[o].h >= box.y) faults.push(`box ${i} begins above the end of its operand ${o}`);
    }
    if (!(box.x >= -0.01 && box.x + box.w <= size.w + 0.01 && box.y >= 0 && box.y + box.h <= size.h + 0.01)) {
      faults.push(`box ${i} lies outside`);
    }
  });
  const sorted = [...boxes].sort((a, b) => a.layer - b.layer || a.x - b.x);
  for (let k = 1; k < sorted.length; k++) {
    const [a, b] = [sorted[k - 1], sorted[k]];
    if (a.layer === b.layer && a.x + a.w + GAP_X > b.x + 0.01) faults.push("boxes of a layer overlap");
  }
  return faults;
}

function testLayout() {
  let graphs = 0;
  for (const boxes of randomGraphs()) {
    const faults = faultsOf(boxes, layOut(boxes));
    if (faults.length) return `failed: graph ${graphs}: ${faults[0]}`;
    graphs++;
  }
  // Boxes whose preferred centers overlap are placed around their mean. The others get theirs.
  const places = placeRow([0, 0, 500], [100, 100, 100]).map((x) => Math.round(x));
  if (places.join() !== `${-50 - GAP_X / 2},${50 + GAP_X / 2},500`) return `failed: unexpected centers ${places}`;
  // A weight is in the layer above its user.
  const chain = [[], [0], [1], [2], [], [3, 4]].map((operands) => ({ operands, w: 10, h: 10 }));
  layOut(chain);
  if (chain[4].layer !== 3 || chain[5].layer !== 4) return `failed: expected a weight in layer 3, got layer ${chain[4].layer}`;
  return `passed: ${graphs} graphs laid out`;
}

document.body.textContent = testLayout();
