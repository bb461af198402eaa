// Runs a graph model or a layers model with TensorFlow.js, whose `cpu` back end is plain JavaScript.
//
//   node run.mjs MODEL.json JOB.json
//
// JOB.json has inputs (tensor, dtype, shape, file) and outputs (tensor, file); a layers model takes and returns
// them in its own order. Files of inputs have the
// elements; each output's file receives them, and the shapes and types are printed as JSON. The modules are
// found in the current directory's node_modules.
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const require = createRequire(join(process.cwd(), "none.js"));
const tf = require("@tensorflow/tfjs");
const [model, job] = process.argv.slice(2);
const { inputs, outputs } = JSON.parse(readFileSync(job, "utf8"));

const arrays = { float32: Float32Array, int32: Int32Array, bool: Uint8Array };
const bytes = (path) => {
  const buffer = readFileSync(path);
  return buffer.buffer.slice(buffer.byteOffset, buffer.byteOffset + buffer.byteLength);
};

const json = JSON.parse(readFileSync(model, "utf8"));
const isLayers = json.modelTopology.model_config !== undefined;
const load = async () => {
  const groups = json.weightsManifest;
  const parts = groups.flatMap((group) => group.paths).map((path) => readFileSync(join(dirname(model), path)));
  const all = Buffer.concat(parts);
  return {
    modelTopology: json.modelTopology,
    weightSpecs: groups.flatMap((group) => group.weights),
    weightData: all.buffer.slice(all.byteOffset, all.byteOffset + all.byteLength),
    signature: json.signature ?? json.userDefinedMetadata?.signature,
    userDefinedMetadata: json.userDefinedMetadata,
  };
};

await tf.setBackend("cpu");
const network = isLayers ? await tf.loadLayersModel({ load }) : await tf.loadGraphModel({ load });
const feeds = {};
for (const { tensor, dtype, shape, file } of inputs) {
  feeds[tensor] = tf.tensor(new arrays[dtype](bytes(file)), shape, dtype);
}
const results = isLayers
  ? network.predict(Object.values(feeds))
  : await network.executeAsync(feeds, outputs.map(({ tensor }) => tensor));
const described = [];
for (const [k, result] of [results].flat().entries()) {
  // A cast may leave integers in an array of floats.
  const data = arrays[result.dtype].from(await result.data());
  writeFileSync(outputs[k].file, Buffer.from(data.buffer));
  described.push({ dtype: result.dtype, shape: result.shape });
}
console.log(JSON.stringify(described));
