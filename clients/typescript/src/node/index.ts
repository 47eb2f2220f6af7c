/** What only node has: TCP, a server of one's own, and WebSockets where node has none. */

import type { ConnectionOptions } from "node:tls";

import { Client, type ClientOptions } from "../client.js";
import { webSocket, type Dial } from "../transport.js";
import { tcp } from "./tcp.js";
import { NodeWebSocket } from "./websocket.js";

export { ManagedServer, type ManagedServerOptions } from "./managed.js";
export { tcp } from "./tcp.js";
export { NodeWebSocket } from "./websocket.js";

export interface ConnectOptions extends ClientOptions {
  /** Speak TLS over TCP, with these options. */
  tls?: ConnectionOptions;
}

const DEFAULT_PORT = 9100;

/**
 * Connect and configure a session, at `HOST:PORT` by TCP, or at `ws://HOST:PORT`.
 *
 * @throws TryllError 1001, 1003, there is no server; 5004, it speaks another version; or what it says.
 */
export async function connect(address = "127.0.0.1:9100", options: ConnectOptions = {}): Promise<Client> {
  return new Client(dialOf(address, options.tls), options).connect();
}

/** The way to an address. */
export function dialOf(address: string, tls?: ConnectionOptions): Dial {
  if (/^wss?:/.test(address)) return webSocket(address, (url) => new NodeWebSocket(url));
  const { hostname, port } = new URL(`tcp://${address.replace(/^tcp:\/\//, "")}`);
  return tcp(hostname.replace(/^\[|\]$/g, ""), port ? Number(port) : DEFAULT_PORT, tls);
}
