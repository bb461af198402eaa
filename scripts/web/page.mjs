// Draws on the page of `tfcompile init --build web` in a headless Chromium, in windows of several
// sizes, light and dark, and takes pictures of them.
//
//   node page.mjs DIRECTORY PICTURES
//
// Serves only files, as any static server does. Fails if the page reports an error, its answer does
// not change, it needs scroll bars, or it does not follow the browser's color scheme.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const SIZES = ["900x640", "480x800", "1280x800"];
const [directory, pictures] = process.argv.slice(2);
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

/** Opens the page in a browser of its own, and returns what it reports. */
async function visit(size, isDark) {
  [report, held] = [undefined, undefined];
  const profile = mkdtempSync(join(tmpdir(), "chromium-"));
  const picture = join(pictures, `page-${size}-${isDark ? "dark" : "light"}.png`);
  const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", `--user-data-dir=${profile}`];
  flags.push(`--window-size=${size.replace("x", ",")}`, `--screenshot=${picture}`, `--blink-settings=preferredColorScheme=${isDark ? 0 : 1}`);
  const url = `http://localhost:${server.address().port}/drive.html?size=${size}`;
  const browser = spawn(process.env.CHROMIUM ?? "chromium", [...flags, url], { stdio: "ignore", detached: true });
  // The browser and its processes are one group.
  const limit = setTimeout(() => process.kill(-browser.pid, "SIGKILL"), 60000);
  await new Promise((resolve) => { browser.once("exit", resolve); });
  clearTimeout(limit);
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  return report;
}

mkdirSync(pictures, { recursive: true });
let good = 0, total = 0;
for (const size of SIZES) {
  const colors = [];
  for (const isDark of [false, true]) {
    const seen = await visit(size, isDark);
    console.log(size, isDark ? "dark:" : "light:", JSON.stringify(seen ?? "the page does not report"));
    colors.push(seen && `${seen.color} on ${seen.backgroundColor}`);
    const isNew = colors.indexOf(colors.at(-1)) === colors.length - 1;
    good += Boolean(seen?.changed && seen.rows > 0 && !seen.error && seen.fits && seen.isDark === isDark && isNew);
    ++total;
  }
}
console.log(`${good} of ${total} windows`);
process.exit(good === total ? 0 : 1);
