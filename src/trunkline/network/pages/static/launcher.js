// The launcher on the reader's own machine. Only this page's origin may talk to it, and only with its secret.

import { Refusal, good, request } from "./session.js";

// Where launchers are looked for.
const FIRST_PORT = 4318;
const LAST_PORT = 4324;

const address = (port) => `http://127.0.0.1:${Number(port)}`;

export async function ask(method, { port, secret }, path, body) {
  const headers = { "x-runner-secret": secret };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  try {
    const sent = { method, headers, body: body === undefined ? undefined : JSON.stringify(body) };
    return good(await request(address(port) + path, sent));
  } catch (error) {
    if (error.status === 401) throw new Refusal(401, "That is not the launcher's secret.");
    if (error.status !== 0) throw error;
    throw new Refusal(0, `No launcher answers on port ${port}. Start it: trunkline runner serve --allow-origin ${location.origin}`);
  }
}

// The first port that a launcher answers on; null if none does.
export async function detect() {
  for (let port = FIRST_PORT; port <= LAST_PORT; port += 1) {
    const answer = await request(`${address(port)}/health`, { method: "GET" }).catch(() => null);
    if (answer?.ok && answer.data.service === "runner-launcher") return port;
  }
  return null;
}

export const agentPath = (path, id) => `${path}?${new URLSearchParams({ agentId: id })}`;

// What a launcher says of one agent.
export async function statusOf(launcher, id) {
  const { status } = await ask("GET", launcher, agentPath("/runner/status", id));
  return ofAgent(status, id);
}

// What a status, which tells of several agents and of the one that was asked for, says of that one.
export function ofAgent(status, id) {
  const one = status?.selectedAgentStatus ?? status ?? {};
  const running = status?.selectedAgentRunning ?? Boolean(one.running && (!one.config || one.config.agentId === id));
  return { ...one, running };
}
