/** Reads payloads in hexadecimal, a line each, and answers what they hold: see clients/vectors/README.md. */

import { createInterface } from "node:readline";

import { decode, encode } from "trunkline-tryll";

const encodes = process.argv.includes("--encode");

for await (const line of createInterface({ input: process.stdin })) {
  console.log(answered(Buffer.from(line.trim(), "hex")));
}

function answered(payload: Uint8Array): string {
  try {
    const message = decode(payload);
    return encodes ? Buffer.from(encode(message)).toString("hex") : JSON.stringify(message, plain);
  } catch (error) {
    return JSON.stringify({ error: String(error) });
  }
}

/** Wide numbers as digits, and samples as base64. */
function plain(_: string, value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (value instanceof Int16Array)
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
  return value;
}
