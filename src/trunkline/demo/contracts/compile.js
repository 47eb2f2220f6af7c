// Compiles a contract of this folder, and writes what came of it to a file beside it, or to the one that is named:
//   npm install --prefix /tmp/solc solc@0.8.30
//   NODE_PATH=/tmp/solc/node_modules node compile.js Vault [Vault.json]
const fs = require("fs");
const solc = require("solc");

const [name, target] = process.argv.slice(2);
const source = fs.readFileSync(`${__dirname}/${name}.sol`, "utf8");
const input = {
  language: "Solidity",
  sources: { [`${name}.sol`]: { content: source } },
  settings: {
    evmVersion: "paris",
    metadata: { appendCBOR: false, bytecodeHash: "none" },
    optimizer: { enabled: true, runs: 200 },
    outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } },
  },
};
const output = JSON.parse(solc.compile(JSON.stringify(input)));
const problems = output.errors || [];
problems.forEach((problem) => console.error(problem.formattedMessage));
if (problems.some((problem) => problem.severity === "error")) process.exit(1);
const compiled = output.contracts[`${name}.sol`][name];
const made = {
  contract: name,
  compiler: solc.version(),
  abi: compiled.abi,
  bytecode: `0x${compiled.evm.bytecode.object}`,
};
fs.writeFileSync(target || `${__dirname}/${name}.json`, `${JSON.stringify(made, null, 1)}\n`);
