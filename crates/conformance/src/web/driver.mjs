// Runs modules for the web, each with its arguments from a file. Each line of the input is the path of a
// directory with `NAME.js`, `NAME.wasm`, and the arguments' bytes in `arguments`; a space; the name; and a number of
// threads. The answer is a line of JSON: the sizes of the results, whose bytes are then in `results`, or an error.
import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const bytesOf = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

async function run(directory, name, threads) {
  const { load, program } = await import(pathToFileURL(`${directory}/${name}.js`));
  const once = async (count) => {
    const model = await load({ threads: count });
    if (model.threads !== (program.threads ? count : 1)) throw new Error(`${model.threads} threads instead of ${count}`);
    const given = readFileSync(`${directory}/arguments`);
    let position = 0;
    const take = (bytes) => given.subarray(position, position += bytes);
    program.arguments.forEach((array) => {
      if (array.kind === "size") {
        const size = program.sizes.find(({ offset }) => offset === array.offset);
        model.sizes[size.name] = take(4).readInt32LE();
        return;
      }
      const view = bytesOf((array.kind === "feed" ? model.args : model.variables)[array.name]);
      view.set(take(view.length));
    });
    if (position !== given.length) throw new Error(`took ${position} bytes of arguments, not ${given.length}`);
    model.run();
    const results = program.results.map((array) => {
      if (array.kind === "result") {
        // All of the array's memory, also beyond its last row.
        const { buffer, byteOffset, BYTES_PER_ELEMENT } = model.results[array.name];
        const view = new Uint8Array(buffer, byteOffset, array.count * BYTES_PER_ELEMENT);
        return { view, shape: model.shape(array.name) };
      }
      const variable = program.arguments.find(({ offset, kind }) => kind === "variable" && offset === array.offset);
      return { view: bytesOf(model.variables[variable.name]), shape: array.shape };
    });
    const bytes = Buffer.concat(results.map(({ view }) => view));
    model.dispose();
    return { bytes, shapes: results.map(({ shape }) => shape) };
  };
  const { bytes, shapes } = await once(1);
  if (program.threads && threads > 1) {
    const other = await once(threads);
    const isSame = bytes.equals(other.bytes) && JSON.stringify(shapes) === JSON.stringify(other.shapes);
    if (!isSame) throw new Error(`results with ${threads} threads differ from those with one`);
  }
  writeFileSync(`${directory}/results`, bytes);
  return { shapes };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { directory, name, threads } = JSON.parse(line);
  const answer = await run(directory, name, threads).catch((error) => ({ error: `${error}` }));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
