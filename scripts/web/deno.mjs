// Runs the module of `deno.sh` in Deno: in the first thread or, with the argument "worker", in a worker.
//   deno run [PERMISSION...] deno.mjs CASE [worker]
// Prints the number of threads, the pieces of the weights, and whether each element has the value that its
// definition gives: `dot(a, b) + c` with the same numbers as here.
const rows = 96, inner = 200, columns = 160;

async function compute(name, threads) {
  const { load } = await import(new URL(`./${name}/product.js`, import.meta.url));
  let arrived = 0;
  const model = await load({ threads, onProgress: (loaded) => { arrived = loaded; } });
  const [a, b] = Object.values(model.args);
  a.forEach((_, index) => { a[index] = Math.sin(index); });
  b.forEach((_, index) => { b[index] = Math.cos(index); });
  for (let run = 0; run < 10; ++run) model.run();
  const result = Object.values(model.results)[0].slice();
  let worst = 0;
  for (let row = 0; row < rows; ++row) {
    for (let column = 0; column < columns; ++column) {
      let sum = 1 + column % 2;
      for (let k = 0; k < inner; ++k) sum += a[row * inner + k] * b[k * columns + column];
      worst = Math.max(worst, Math.abs(result[row * columns + column] - sum));
    }
  }
  const used = model.threads;
  model.dispose();
  return { used, arrived, worst, result };
}

async function report(name) {
  const one = await compute(name, 1);
  const three = await compute(name, 3);
  const isSame = one.result.every((value, index) => Object.is(value, three.result[index]));
  return `${name}: ${one.used} and ${three.used} threads, ${one.arrived} bytes, `
    + `${one.worst < 1e-4 ? "right" : `off by ${one.worst}`}, ${isSame ? "same bits" : "other bits"}`;
}

if (globalThis.WorkerGlobalScope) {
  globalThis.onmessage = async ({ data }) => globalThis.postMessage(await report(data));
} else if (Deno.args[1] === "worker") {
  const worker = new Worker(import.meta.url, { type: "module" });
  worker.onmessage = ({ data }) => {
    console.log(data);
    worker.terminate();
  };
  worker.onerror = () => Deno.exit(1);
  worker.postMessage(Deno.args[0]);
} else {
  console.log(await report(Deno.args[0]));
}
