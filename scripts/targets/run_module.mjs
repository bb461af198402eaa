// Runs a compiled model for WebAssembly once in Node and prints its results and variables.
//   node run_module.mjs DIRECTORY VARIABLES
// DIRECTORY has model.js, and feed0.bin, ... with the bytes of feeds and variables. The last
// VARIABLES of them are printed after the results.
import { readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [directory, variables] = process.argv.slice(2);
const { load, program } = await import(pathToFileURL(path.resolve(directory, "model.js")));
const model = await load();
const bytes = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength);
const places = program.arguments.map(({ kind, name }) => (kind === "variable" ? model.variables : model.args)[name]);
places.forEach((array, k) => bytes(array).set(readFileSync(path.join(directory, `feed${k}.bin`))));
const results = model.run();
const names = program.results.filter(({ kind }) => kind === "result").map(({ name }) => name);
const printed = [...names.map((name) => results[name]), ...places.slice(places.length - Number(variables))];
for (const array of printed) console.log(`result ${bytes(array).toString("hex")}`);
