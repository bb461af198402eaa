// Shows a picture to the model, and its answer.
import { load, program } from "./@NAME@.js";

const element = (id) => document.getElementById(id);
const canvas = element("input"), pen = canvas.getContext("2d", { willReadFrequently: true });

/** Height, width, and channels of the first argument, and the distances of their elements; null if it is no picture. */
function picture({ shape }) {
  const [first, ...sizes] = shape.length > 1 ? shape : [1, ...shape];
  const side = Math.sqrt(sizes[0]);
  if (first !== 1) return null;
  if (sizes.length === 1 && Number.isInteger(side)) return layout(side, side, 1, [side, 1, 1]);
  if (sizes.length === 2) return layout(...sizes, 1, [sizes[1], 1, 1]);
  if (sizes.length !== 3) return null;
  const [a, b, c] = sizes;
  if (c === 1 || c === 3) return layout(a, b, c, [b * c, c, 1]);
  return a === 1 || a === 3 ? layout(b, c, a, [c, 1, b * c]) : null;
}
const layout = (height, width, channels, strides) => ({ height, width, channels, strides });

/** Writes the canvas to an argument: in gray for one channel. */
function write(array, { height, width, channels, strides }) {
  const small = new OffscreenCanvas(width, height).getContext("2d");
  small.imageSmoothingQuality = "high";
  small.drawImage(canvas, 0, 0, width, height);
  const { data } = small.getImageData(0, 0, width, height);
  const scale = { unit: (v) => v / 255, signed: (v) => v / 127.5 - 1, bytes: (v) => v }[element("range").value];
  for (let y = 0; y < height; ++y) {
    for (let x = 0; x < width; ++x) {
      const at = 4 * (y * width + x);
      const gray = 0.299 * data[at] + 0.587 * data[at + 1] + 0.114 * data[at + 2];
      for (let c = 0; c < channels; ++c) {
        array[y * strides[0] + x * strides[1] + c * strides[2]] = scale(channels === 1 ? gray : data[at + c]);
      }
    }
  }
}

/** Shows the largest numbers of a result. */
function show(result) {
  const numbers = Array.from(result, Number);
  const sum = numbers.reduce((all, number) => all + number, 0);
  const isShare = numbers.every((number) => number >= 0) && Math.abs(sum - 1) < 0.01;
  const best = numbers.map((number, index) => ({ number, index })).sort((a, b) => b.number - a.number).slice(0, 10);
  const [low, high] = [isShare ? 0 : Math.min(...numbers), isShare ? 1 : Math.max(...numbers)];
  element("answers").replaceChildren(...best.map(({ number, index }) => {
    const row = document.createElement("div"), bar = document.createElement("div");
    row.className = "answer";
    bar.style.width = `${100 * (number - low) / (high - low || 1)}%`;
    const cells = [`${index}`, isShare ? `${(100 * number).toFixed(1)} %` : number.toPrecision(4)];
    const [name, value] = cells.map((text) => Object.assign(document.createElement("span"), { textContent: text }));
    row.append(name, bar, value);
    return row;
  }));
}

async function start() {
  const began = performance.now();
  const model = await load({ onProgress: (loaded) => { element("hint").textContent = `Loading: ${loaded} bytes`; } });
  const ready = performance.now() - began;
  const [first] = program.arguments.filter(({ kind }) => kind === "feed");
  const place = first && picture(first);
  const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
  const files = performance.getEntriesByType("resource").filter(({ name }) => /\.(wasm|js|constants)$/.test(name));
  const size = files.reduce((all, { decodedBodySize }) => all + decodedBodySize, 0);

  const run = () => {
    if (place) write(model.args[first.name], place);
    // The clock of the browser is coarse, so a short run is repeated.
    const from = performance.now();
    let runs = 0;
    do {
      model.run();
      ++runs;
    } while (performance.now() - from < 5);
    const time = (performance.now() - from) / runs;
    show(Object.values(model.results)[0]);
    element("facts").textContent = `${time.toFixed(3)} ms per run with ${model.threads} thread${model.threads === 1 ? "" : "s"}, loaded in ${ready.toFixed(0)} ms, ` +
      `${kilobytes(size)} of code and weights, ${kilobytes(model.bytes)} of memory`;
    document.body.dataset.state = "answered";
  };

  const clear = () => {
    pen.fillStyle = "#000";
    pen.fillRect(0, 0, canvas.width, canvas.height);
    run();
  };
  const guarded = (action) => (event) => {
    element("error").textContent = "";
    try {
      action(event);
    } catch (error) {
      element("error").textContent = `${error.message}`;
    }
  };
  if (!place) {
    element("hint").textContent = `The first argument, ${first?.type}[${first?.shape}], is no picture: write your own input in app.js.`;
    canvas.hidden = true;
    guarded(run)();
    return;
  }
  element("hint").textContent = `Draw with the pointer, or drop a picture. The model sees ${place.width} × ${place.height} pixels.`;
  if (/^[us]8$/.test(first.type)) element("range").value = "bytes";
  pen.lineWidth = 22;
  pen.lineCap = pen.lineJoin = "round";
  pen.strokeStyle = "#fff";
  const at = ({ offsetX, offsetY }) => [offsetX * canvas.width / canvas.clientWidth, offsetY * canvas.height / canvas.clientHeight];
  canvas.onpointerdown = (event) => {
    canvas.setPointerCapture(event.pointerId);
    pen.beginPath();
    pen.moveTo(...at(event));
  };
  canvas.onpointermove = guarded((event) => {
    if (!event.buttons) return;
    pen.lineTo(...at(event));
    pen.stroke();
    run();
  });
  element("clear").onclick = guarded(clear);
  element("range").onchange = guarded(run);
  for (const type of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(type, (event) => {
      event.preventDefault();
      canvas.classList.toggle("over", type === "dragover");
    });
  }
  document.addEventListener("drop", async ({ dataTransfer }) => {
    const [file] = dataTransfer.files;
    if (!file) return;
    try {
      pen.drawImage(await createImageBitmap(file), 0, 0, canvas.width, canvas.height);
      guarded(run)();
    } catch {
      element("error").textContent = `cannot read ${file.name} as a picture`;
    }
  });
  guarded(clear)();
}

start().catch((error) => {
  element("hint").textContent = "";
  element("error").textContent = error.message;
});
