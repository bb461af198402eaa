// Draws on the page of `tfcompile init --build web` in a headless Chromium, and takes a picture of it.
//
//   node page.mjs DIRECTORY PICTURE.png
//
// Serves only files, as any static server does. Fails if the page reports an error or its answer does not change.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const [directory, picture] = process.argv.slice(2);
const drive = join(dirname(fileURLToPath(import.meta.url)), "drive.html");
const kinds = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm" };
let report, held;
const server = createServer((request, response) => {
  const path = normalize(new URL(request.url, "http://localhost").pathname);
  if (path === "/hold" && !report) { held = response; return; }
  if (path === "/done") {
    let body = "";
    request.on("data", (piece) => { body += piece; });
    request.on("end", () => {
      report = JSON.parse(body);
      response.end();
      held?.writeHead(404).end();
    });
    return;
  }
  const file = path === "/drive.html" ? drive : join(directory, path);
  if (!existsSync(file)) { response.writeHead(404).end(); return; }
  response.writeHead(200, { "Content-Type": kinds[extname(file)] ?? "application/octet-stream" }).end(readFileSync(file));
});
await new Promise((resolve) => { server.listen(0, resolve); });
const profile = mkdtempSync(join(tmpdir(), "chromium-"));
const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", `--user-data-dir=${profile}`, "--window-size=900,640"];
const url = `http://localhost:${server.address().port}/drive.html`;
const browser = spawn(process.env.CHROMIUM ?? "chromium", [...flags, `--screenshot=${picture}`, url], { stdio: "ignore", detached: true });
// The browser and its processes are one group.
const limit = setTimeout(() => process.kill(-browser.pid, "SIGKILL"), 60000);
await new Promise((resolve) => { browser.once("exit", resolve); });
clearTimeout(limit);
rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
console.log(JSON.stringify(report ?? "the page does not report"));
process.exit(report?.changed && report.rows > 0 && !report.error ? 0 : 1);
