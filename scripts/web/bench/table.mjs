// Writes the table of docs/web.md from docs/web.json.
//
//   node table.mjs docs/web.json docs/web.md
import { readFileSync, writeFileSync } from "node:fs";

const [data, page] = process.argv.slice(2);
const { versions, browser, machine, date, results } = JSON.parse(readFileSync(data));
const peers = ["onnxruntime", "tfjs", "litert"];
const models = [...new Set(results.map(({ model }) => model))];
const find = (model, threads, runtime) => {
  const result = results.find((other) => other.model === model && other.threads === threads && other.runtime === runtime);
  return result && !result.failure && result.best !== null ? result : undefined;
};
const mean = (numbers) => Math.exp(numbers.reduce((sum, number) => sum + Math.log(number), 0) / numbers.length);
const number = (value) => (value === undefined ? "-" : value >= 10 ? value.toFixed(1) : value.toPrecision(2));
const megabytes = (bytes) => (bytes / 1e6).toFixed(bytes < 1e6 ? 3 : 1);
const ratios = (threads, peer, of) => models.flatMap((model) => {
  const [own, other] = [find(model, threads, "tfcompile"), find(model, threads, peer)];
  return own && other ? [of(other) / of(own)] : [];
});
const names = { onnxruntime: `ONNX Runtime Web ${versions["onnxruntime-web"]}`, tfjs: `TensorFlow.js ${versions["@tensorflow/tfjs"]} (wasm)`, litert: `LiteRT.js ${versions["@litertjs/core"]}` };
const lines = [
  `Measured in headless ${browser} on ${machine} on ${date}, each runtime in a fresh browser, best of ${JSON.parse(readFileSync(data)).rounds} rounds. Float models of batch 1. Other programs ran on the machine, so single figures vary by up to a factor of two. \`make bench-web\` repeats it.`,
  "",
  "Milliseconds per run, including the transfer of arguments and results:",
  "",
  `| model | threads | tfcompile | relaxed | ${peers.map((peer) => names[peer]).join(" | ")} |`,
  `|---|---|---|---|${peers.map(() => "---|").join("")}`,
  ...models.flatMap((model) => [1, 2].map((threads) => {
    const best = (runtime) => number(find(model, threads, runtime)?.best);
    return `| \`${model}\` | ${threads} | ${best("tfcompile")} | ${best("tfcompile-relaxed")} | ${peers.map(best).join(" | ")} |`;
  })),
  ...[1, 2].map((threads) => `| times as fast, geometric mean | ${threads} | 1 | | ${peers.map((peer) => mean(ratios(threads, peer, ({ best }) => best)).toFixed(2)).join(" | ")} |`),
  "",
  "With one thread, milliseconds from the first request to the first answer, and megabytes over the wire (in parentheses with gzip):",
  "",
  `| model | tfcompile | ${peers.map((peer) => names[peer]).join(" | ")} |`,
  `|---|---|${peers.map(() => "---|").join("")}`,
  ...models.map((model) => {
    const cell = (result) => (result ? `${result.first.toFixed(0)} ms, ${megabytes(result.bytes.raw)} (${megabytes(result.bytes.gzip)})` : "-");
    return `| \`${model}\` | ${cell(find(model, 1, "tfcompile"))} | ${peers.map((peer) => cell(find(model, 1, peer))).join(" | ")} |`;
  }),
  `| without weights | ${(() => {
    const own = models.map((model) => find(model, 1, "tfcompile")).filter(Boolean);
    const range = (of) => [Math.min, Math.max].map((end) => megabytes(end(...own.map(of)))).join(" to ");
    return `${range(({ bytes }) => bytes.runtime)} (${range(({ bytes }) => bytes.runtimeGzip)})`;
  })()} | ${peers.map((peer) => {
    const result = find(models[0], 1, peer);
    return `${megabytes(result.bytes.runtime)} (${megabytes(result.bytes.runtimeGzip)})`;
  }).join(" | ")} |`,
  "",
  "A dash marks a model that the runtime refuses.",
];
const text = readFileSync(page, "utf8");
const [begin, end] = ["<!-- table -->\n", "<!-- end of table -->"];
const start = text.indexOf(begin) + begin.length;
writeFileSync(page, `${text.slice(0, start)}${lines.join("\n")}\n${text.slice(text.indexOf(end))}`);
for (const threads of [1, 2]) for (const peer of peers) console.log(threads, peer, mean(ratios(threads, peer, ({ best }) => best)).toFixed(2));
