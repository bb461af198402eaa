// Writes models that a package has as scripts, as files: model.json, and the weights that it names.
//
//   node unpack.mjs FROM TO
//
// FROM has a directory for each model: model.min.js, whose export is the JSON, and for each file of weights a
// script whose export is its contents in base64. TO gets a directory for each model.
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const [from, to] = process.argv.slice(2).map((path) => resolve(path));
const require = createRequire(join(from, "none.js"));
for (const name of readdirSync(from)) {
  const model = require(join(from, name, "model.min.js"));
  mkdirSync(join(to, name), { recursive: true });
  writeFileSync(join(to, name, "model.json"), JSON.stringify(model));
  for (const path of model.weightsManifest.flatMap((group) => group.paths)) {
    const content = require(join(from, name, `${path.replace(/\.bin$/, "")}.min.js`));
    writeFileSync(join(to, name, path), Buffer.from(content, "base64"));
  }
}
