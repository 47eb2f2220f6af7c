/** What carries payloads: a WebSocket here, and TCP in `trunkline-tryll/node`. */

import { TryllError } from "./errors.js";
import { MAX_FRAME } from "./codec/frames.js";
import { pause } from "./waiting.js";

/** An open connection. */
export interface Transport {
  /** Send a payload. After the end it does nothing. */
  send(payload: Uint8Array): void;
  /** Wait until there is room for more. */
  drained(): Promise<void>;
  /** End it, with what was sent before. */
  close(): void;
}

/** Who hears what a connection carries. */
export interface Receiver {
  payload(payload: Uint8Array): void;
  /** It is over, and nothing comes any more. Called once. */
  ended(reason: TryllError): void;
}

/** Opens a connection. Fails with 1001 if nobody is there. */
export type Dial = (receiver: Receiver, signal: AbortSignal) => Promise<Transport>;

/** What `WebSocket` is here: the browser's, or that of `trunkline-tryll/node`. */
export type WebSocketMaker = (url: string) => WebSocketLike;

/** The part of a browser's WebSocket that is used. */
export interface WebSocketLike {
  binaryType: string;
  readonly readyState: number;
  readonly bufferedAmount: number;
  send(data: Uint8Array): void;
  close(code?: number, reason?: string): void;
  onopen: ((event: never) => unknown) | null;
  onmessage: ((event: { data: unknown }) => unknown) | null;
  onclose: ((event: { code: number; reason: string }) => unknown) | null;
  onerror: ((event: never) => unknown) | null;
}

const OPEN = 1;
/** Beyond this many bytes that wait for the network, a sender of sound waits, too. */
const MUCH = 256 * 1024;
const LOOK_MS = 10;

/** The way to a server's WebSocket, such as `ws://127.0.0.1:9101`. */
export function webSocket(url: string, make: WebSocketMaker = browserSocket): Dial {
  return (receiver, signal) =>
    new Promise<Transport>((resolve, reject) => {
      const unreachable = (why: string): TryllError =>
        new TryllError(1001, `There is no server that can be used at ${url}${why && `: ${why.replace(/\.$/, "")}`}.`);
      let socket: WebSocketLike;
      try {
        socket = make(url);
      } catch (error) {
        reject(error instanceof TryllError ? error : unreachable(error instanceof Error ? error.message : ""));
        return;
      }
      socket.binaryType = "arraybuffer";
      let open = false;
      let broken: TryllError | null = null;
      const abort = (): void => socket.close();
      signal.addEventListener("abort", abort, { once: true });
      socket.onopen = () => {
        open = true;
        signal.removeEventListener("abort", abort);
        resolve(new SocketTransport(socket));
      };
      socket.onmessage = ({ data }) => {
        if (broken !== null) return;
        if (data instanceof ArrayBuffer && data.byteLength <= MAX_FRAME) {
          receiver.payload(new Uint8Array(data));
          return;
        }
        broken =
          data instanceof ArrayBuffer
            ? new TryllError(5003, "The server broke the protocol: a message is larger than any may be.")
            : new TryllError(5001, "The server broke the protocol: a message is no bytes.");
        socket.close();
      };
      // A browser says nothing about what went wrong, and closes; node's says it as the reason.
      socket.onerror = () => {};
      socket.onclose = ({ reason }) => {
        signal.removeEventListener("abort", abort);
        if (open) receiver.ended(broken ?? new TryllError(1002, reason && `The connection was lost: ${reason}`));
        else reject(signal.aborted ? signal.reason : unreachable(reason));
      };
    });
}

function browserSocket(url: string): WebSocketLike {
  const known = (globalThis as { WebSocket?: new (url: string) => WebSocketLike }).WebSocket;
  if (known === undefined) {
    throw new TryllError(
      1001,
      "There is no `WebSocket` here. Use node 22 or later, or `connect` of `trunkline-tryll/node`, which has one of its " +
        "own and speaks TCP, too; or give `webSocket` a function that makes one.",
    );
  }
  return new known(url);
}

class SocketTransport implements Transport {
  constructor(private readonly socket: WebSocketLike) {}

  send(payload: Uint8Array): void {
    if (this.socket.readyState === OPEN) this.socket.send(payload);
  }

  async drained(): Promise<void> {
    while (this.socket.readyState === OPEN && this.socket.bufferedAmount > MUCH) await pause(LOOK_MS);
  }

  close(): void {
    this.socket.close();
  }
}
