// A client of npm's official SDK: has one message answered, and prints what it was told as JSON.
//
//   node acp_client.mjs NODE_MODULES stdio CWD TEXT COMMAND [ARGUMENT...]
//   node acp_client.mjs NODE_MODULES http CWD TEXT URL TOKEN
//
// Files are those that it makes up, and commands are run by itself. A session is loaded again at the end.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [modules, how, cwd, text, ...target] = process.argv.slice(2);
const found = createRequire(`${modules}/client.cjs`);
const load = (name) => import(pathToFileURL(found.resolve(name)));
const { client, methods, ndJsonStream } = await load("@agentclientprotocol/sdk");

const said = { text: "", thoughts: "", kinds: [], asked: [], files: [], commands: [], replayed: [] };
const buffers = new Map();
const terminals = new Map();
let loading = false;

const app = client({ name: "a stranger" })
  .onNotification(methods.client.session.update, ({ params: { update } }) => {
    if (loading) {
      said.replayed.push(update.sessionUpdate);
      return;
    }
    said.kinds.push(update.sessionUpdate);
    if (update.sessionUpdate === "agent_message_chunk") said.text += update.content.text;
    if (update.sessionUpdate === "agent_thought_chunk") said.thoughts += update.content.text;
    if (update.sessionUpdate === "tool_call_update")
      for (const shown of update.content ?? []) if (shown.type === "terminal") said.kinds.push("terminal");
  })
  .onRequest(methods.client.session.requestPermission, ({ params: { options, toolCall } }) => {
    said.asked.push({ kinds: options.map((option) => option.kind), content: toolCall.content ?? null });
    const chosen = options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: chosen.optionId } };
  })
  .onRequest(methods.client.fs.readTextFile, ({ params: { path } }) => {
    said.files.push(["read", path]);
    return { content: buffers.get(path) ?? "not saved yet\n" };
  })
  .onRequest(methods.client.fs.writeTextFile, ({ params: { path, content } }) => {
    said.files.push(["write", path, content]);
    buffers.set(path, content);
    return {};
  })
  .onRequest(methods.client.terminal.create, ({ params: { command, args, cwd: where, env } }) => {
    said.commands.push([command, ...args]);
    const more = Object.fromEntries(env.map(({ name, value }) => [name, value]));
    const child = spawn(command, args, { cwd: where, env: { ...process.env, ...more } });
    const terminal = { child, output: "" };
    terminal.ended = new Promise((resolve) =>
      child.on("close", (exitCode, signal) => resolve((terminal.status = { exitCode, signal }))),
    );
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (terminal.output += data));
    terminals.set(`t${terminals.size}`, terminal);
    return { terminalId: `t${terminals.size - 1}` };
  })
  .onRequest(methods.client.terminal.waitForExit, ({ params }) => terminals.get(params.terminalId).ended)
  .onRequest(methods.client.terminal.output, ({ params }) => {
    const { output, status } = terminals.get(params.terminalId);
    return { output, truncated: false, exitStatus: status ?? null };
  })
  .onRequest(methods.client.terminal.kill, ({ params }) => {
    terminals.get(params.terminalId).child.kill("SIGKILL");
    return {};
  })
  .onRequest(methods.client.terminal.release, ({ params }) => {
    terminals.get(params.terminalId).child.kill("SIGKILL");
    return {};
  });

let child;
async function connected() {
  if (how === "stdio") {
    child = spawn(target[0], target.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
    return ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  }
  const [url, token] = target;
  const { createHttpStream } = await load("@agentclientprotocol/sdk/experimental/http-client");
  return createHttpStream(url, { headers: { Authorization: `Bearer ${token}` } });
}

const offered = { fs: { readTextFile: true, writeTextFile: true }, terminal: true };
await app.connectWith(await connected(), async (agent) => {
  const hello = await agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: offered });
  said.agent = hello.agentInfo?.name ?? null;
  const { sessionId } = await agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
  const prompt = [{ type: "text", text }];
  const ended = await agent.request(methods.agent.session.prompt, { sessionId, prompt });
  said.stopReason = ended.stopReason;
  const listed = await agent.request(methods.agent.session.list, {});
  said.listed = listed.sessions.some((session) => session.sessionId === sessionId);
  loading = true;
  await agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
  loading = false;
  try {
    await agent.request("_no/such", {});
  } catch (error) {
    said.unknown = error.code;
  }
});
if (child) {
  child.stdin.end();
  said.exit = await new Promise((resolve) => child.on("close", resolve));
}
console.log(JSON.stringify(said));
process.exit(0);
