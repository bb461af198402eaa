// Layout of boxes in layers from operands to users (Sugiyama, Tagawa, and Toda: "Methods for visual
// understanding of hierarchical system structures", 1981). Horizontal coordinates are averages of
// those of neighbors.

// Maximum number of layers that an arrow spans. A longer edge is shown as the operand's name at its
// user, and does not affect the layout.
const NEAR_LAYERS = 7;
const GAP_X = 18, GAP_Y = 46;

/**
 * Returns the layer of each box: one more than the deepest layer of its operands. A box with at
 * most one computed operand is placed directly above its first user instead. Operands have smaller
 * indices than users.
 * @param {{operands: number[]}[]} boxes
 * @returns {number[]}
 */
function layersOf(boxes) {
  const layer = boxes.map(() => 0);
  const firstUser = boxes.map(() => Infinity);
  boxes.forEach((box, i) => {
    for (const o of box.operands) layer[i] = Math.max(layer[i], layer[o] + 1);
  });
  for (let i = boxes.length - 1; i >= 0; i--) {
    const computed = new Set(boxes[i].operands.filter((o) => boxes[o].operands.length));
    if (computed.size <= 1 && firstUser[i] < Infinity) layer[i] = firstUser[i] - 1;
    for (const o of boxes[i].operands) firstUser[o] = Math.min(firstUser[o], layer[i]);
  }
  return layer;
}

/**
 * Returns the centers closest to the preferred ones (least squares) that keep the order and do not
 * overlap. This is an isotonic regression: it pools neighbors that would overlap.
 * @param {number[]} wishes  preferred centers, in the order of the row
 * @param {number[]} widths
 * @returns {number[]} centers
 */
function placeRow(wishes, widths) {
  const offset = [0];
  for (let i = 1; i < widths.length; i++) offset.push(offset[i - 1] + (widths[i - 1] + widths[i]) / 2 + GAP_X);
  const pools = [];
  wishes.forEach((wish, i) => {
    let pool = { sum: wish - offset[i], count: 1 };
    while (pools.length && pools[pools.length - 1].sum / pools[pools.length - 1].count > pool.sum / pool.count) {
      const last = pools.pop();
      pool = { sum: pool.sum + last.sum, count: pool.count + last.count };
    }
    pools.push(pool);
  });
  const centers = [];
  for (const pool of pools) {
    for (let k = 0; k < pool.count; k++) centers.push(pool.sum / pool.count + offset[centers.length]);
  }
  return centers;
}

/**
 * Places all boxes: sets `x` and `y` (left and top) and `layer` of each.
 * @param {{operands: number[], w: number, h: number}[]} boxes
 * @returns {{w: number, h: number}} size of the graph
 */
function layOut(boxes) {
  const layer = layersOf(boxes);
  const rows = [];
  boxes.forEach((box, i) => {
    box.layer = layer[i];
    (rows[layer[i]] ||= []).push(i);
  });
  for (let r = 0; r < rows.length; r++) rows[r] ||= [];

  const above = boxes.map(() => []), below = boxes.map(() => []);
  boxes.forEach((box, i) => {
    for (const o of new Set(box.operands)) {
      if (layer[i] - layer[o] > NEAR_LAYERS) continue;
      above[i].push(o);
      below[o].push(i);
    }
  });

  const center = boxes.map(() => 0);
  for (const row of rows) {
    placeRow(row.map(() => 0), row.map((i) => boxes[i].w)).forEach((x, k) => { center[row[k]] = x; });
  }
  // Sorts rows by their neighbors, alternately downward and upward. The last rounds keep the order
  // and only adjust positions.
  const turns = boxes.length > 2000 ? 10 : 24, settle = 6;
  for (let turn = 0; turn < turns; turn++) {
    const down = turn % 2 === 0;
    const neighbors = down ? above : below;
    const sequence = down ? rows : [...rows].reverse();
    for (const row of sequence) {
      const wish = new Map(row.map((i) => [i, meanOf(neighbors[i], center, layer, layer[i], center[i])]));
      if (turn < turns - settle) row.sort((a, b) => wish.get(a) - wish.get(b) || a - b);
      placeRow(row.map((i) => wish.get(i)), row.map((i) => boxes[i].w)).forEach((x, k) => { center[row[k]] = x; });
    }
  }

  let left = Infinity, right = -Infinity, y = 0;
  for (const row of rows) {
    let tallest = 0;
    for (const i of row) {
      boxes[i].x = center[i] - boxes[i].w / 2;
      boxes[i].y = y;
      left = Math.min(left, boxes[i].x);
      right = Math.max(right, boxes[i].x + boxes[i].w);
      tallest = Math.max(tallest, boxes[i].h);
    }
    if (row.length) y += tallest + GAP_Y;
  }
  for (const box of boxes) box.x -= left;
  return { w: boxes.length ? right - left : 0, h: Math.max(0, y - GAP_Y) };
}

// Mean center of the neighbors, weighted by the inverse of their distance in layers.
function meanOf(neighbors, center, layer, from, otherwise) {
  let sum = 0, weight = 0;
  for (const n of neighbors) {
    const w = 1 / Math.max(1, Math.abs(layer[n] - from));
    sum += w * center[n];
    weight += w;
  }
  return weight ? sum / weight : otherwise;
}
