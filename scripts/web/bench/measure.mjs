// Measures runtimes on models, each in a fresh headless Chromium with an empty profile.
//
//   node measure.mjs ROOT OUT.json [MODELS] [RUNTIMES] [THREADS] [ROUNDS] [SECONDS]
//
// ROOT has `models` (see convert.py), `ours/TARGET/MODEL`, and `npm` (a directory of node_modules). Lists are joined
// by commas. Rounds alternate between the runtimes. The best figures of all rounds count.
import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { cpus, tmpdir } from "node:os";
import { dirname, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const [root, out, ...lists] = process.argv.slice(2);
const list = (index, all) => (lists[index] ? lists[index].split(",") : all);
const models = list(0, ["mlp"]);
const runtimes = list(1, ["tfcompile", "tfcompile-relaxed", "onnxruntime", "tfjs", "litert"]);
const threads = list(2, ["1", "2"]).map(Number);
const rounds = Number(lists[3] ?? 2), seconds = lists[4] ?? "2";
const browser = process.env.CHROMIUM ?? "chromium";

const kinds = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm", ".json": "application/json" };
let served = new Map(), finish;
const server = createServer((request, response) => {
  const headers = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };
  const { pathname } = new URL(request.url, "http://localhost");
  if (pathname === "/result") {
    let body = "";
    request.on("data", (piece) => { body += piece; });
    request.on("end", () => { response.writeHead(200, headers).end(); finish(JSON.parse(body)); });
    return;
  }
  if (pathname === "/begin") { served = new Map(); response.writeHead(200, headers).end(); return; }
  const file = pathname === "/page.html" ? join(here, "page.html") : join(root, normalize(pathname));
  if (!existsSync(file) || !statSync(file).isFile()) { response.writeHead(404, headers).end(); return; }
  const bytes = readFileSync(file);
  served.set(pathname, bytes);
  response.writeHead(200, { ...headers, "Content-Type": kinds[extname(file)] ?? "application/octet-stream" }).end(bytes);
});

/** Opens the page, and returns what it reports. */
async function open(port, query) {
  const profile = mkdtempSync(join(tmpdir(), "chromium-"));
  const url = `http://localhost:${port}/page.html?${new URLSearchParams(query)}`;
  const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", `--user-data-dir=${profile}`, url];
  const child = spawn(browser, flags, { stdio: "ignore", detached: true });
  const limit = new Promise((resolve) => { setTimeout(resolve, 90000, { failure: "no answer within 90 s" }).unref(); });
  const report = await Promise.race([new Promise((resolve) => { finish = resolve; }), limit]);
  // The browser and its processes are one group.
  process.kill(-child.pid, "SIGKILL");
  await new Promise((resolve) => { child.once("exit", resolve); });
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  return report;
}

const isModel = (path) => path.startsWith("/models/");
await new Promise((resolve) => { server.listen(0, resolve); });
const results = [], sizes = new Map();
const version = (name) => JSON.parse(readFileSync(join(root, "npm", name, "package.json"))).version;
const versions = Object.fromEntries(["onnxruntime-web", "@tensorflow/tfjs", "@tensorflow/tfjs-backend-wasm", "@litertjs/core"].map((name) => [name, version(name)]));
const text = execFileSync(browser, ["--version"], { encoding: "utf8" }).match(/\w+ \d+(\.\d+)*/)[0];
const machine = cpus()[0].model;
const date = new Date().toISOString().slice(0, 10);
for (const model of models) {
  for (const count of threads) {
    for (let round = 0; round < rounds; ++round) {
      for (const runtime of runtimes) {
        if (runtime === "tfcompile-relaxed" && count > 1) continue;
        const report = await open(server.address().port, { runtime, model, threads: count, seconds });
        const files = [...served].filter(([path]) => path !== "/favicon.ico");
        const sum = (map, keep = () => true) => files.filter(([path]) => keep(path)).reduce((all, [, bytes]) => all + map(bytes), 0);
        const zipped = (bytes) => {
          const key = createHash("sha256").update(bytes).digest("hex");
          if (!sizes.has(key)) sizes.set(key, gzipSync(bytes, { level: 9 }).length);
          return sizes.get(key);
        };
        const bytes = {
          raw: sum((file) => file.length), gzip: sum(zipped),
          runtime: sum((file) => file.length, (path) => !isModel(path)), runtimeGzip: sum(zipped, (path) => !isModel(path)),
        };
        if (runtime === "tfcompile") {
          const code = ["js", "wasm"].map((suffix) => join(root, "code", model, `${model}.${suffix}`)).filter(existsSync);
          const all = code.map((file) => readFileSync(file));
          bytes.runtime = all.reduce((total, file) => total + file.length, 0);
          bytes.runtimeGzip = all.reduce((total, file) => total + zipped(file), 0);
        }
        const known = results.find((other) => other.model === model && other.threads === count && other.runtime === runtime);
        const result = known ?? { model, threads: count, runtime, bytes };
        if (!known) results.push(result);
        if (report.failure) result.failure = report.failure;
        for (const key of ["first", "best", "median"]) result[key] = Math.min(result[key] ?? Infinity, report[key] ?? Infinity);
        result.error = report.error;
        console.log(model, count, runtime, report.failure ?? `first ${report.first.toFixed(1)} ms, best ${report.best.toFixed(4)} ms, median ${report.median.toFixed(4)} ms, error ${report.error.toExponential(1)}, ${bytes.raw} bytes, ${report.isolated}`);
      }
    }
  }
  writeFileSync(out, `${JSON.stringify({ versions, browser: text, machine, date, rounds, results }, null, 1)}\n`);
}
server.close();
process.exit(0);
