/** TCP, as native programs speak to a server, also inside of TLS. */

import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";

import { FrameError } from "../codec/errors.js";
import { frame, Framer } from "../codec/frames.js";
import { TryllError } from "../errors.js";
import type { Dial, Receiver, Transport } from "../transport.js";

/** How long the end of a connection is waited for before it is cut. */
const CLOSE_MS = 1000;

/** The way to a server's TCP port. `tls`: inside of TLS, with these options. */
export function tcp(host: string, port: number, tls?: ConnectionOptions): Dial {
  return (receiver, signal) =>
    new Promise<Transport>((resolve, reject) => {
      const socket =
        tls === undefined ? connectTcp({ host, port }) : connectTls({ servername: host, ...tls, host, port });
      socket.setNoDelay(true);
      const refused = (error: Error): void =>
        reject(new TryllError(1001, `The server at ${host}:${port} cannot be reached: ${reasonOf(error)}.`));
      const abort = (): void => {
        socket.destroy();
        reject(signal.reason);
      };
      signal.addEventListener("abort", abort, { once: true });
      socket.once("error", refused);
      socket.once(tls === undefined ? "connect" : "secureConnect", () => {
        signal.removeEventListener("abort", abort);
        socket.off("error", refused);
        resolve(new TcpTransport(socket, receiver));
      });
    });
}

class TcpTransport implements Transport {
  private readonly framer = new Framer();
  private problem: Error | null = null;
  private broken = false;

  constructor(
    private readonly socket: Socket,
    receiver: Receiver,
  ) {
    socket.on("error", (error) => (this.problem = error));
    socket.on("data", (data) => this.take(data, receiver));
    socket.on("close", () => {
      const told = this.problem === null ? "" : `The connection was lost: ${reasonOf(this.problem)}.`;
      receiver.ended(new TryllError(1002, told));
    });
  }

  send(payload: Uint8Array): void {
    if (this.socket.writable) this.socket.write(frame(payload));
  }

  async drained(): Promise<void> {
    if (!this.socket.writableNeedDrain) return;
    await new Promise<void>((done) => {
      const go = (): void => {
        this.socket.off("drain", go).off("close", go);
        done();
      };
      this.socket.on("drain", go).on("close", go);
    });
  }

  close(): void {
    if (this.socket.destroyed) return;
    this.socket.end();
    setTimeout(() => this.socket.destroy(), CLOSE_MS).unref();
  }

  private take(data: Uint8Array, receiver: Receiver): void {
    if (this.broken) return;
    try {
      this.framer.feed(data, (payload) => receiver.payload(payload));
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.broken = true;
      receiver.ended(new TryllError(error.code, `The server broke the protocol: ${error.message}.`));
      this.socket.destroy();
    }
  }
}

function reasonOf(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? error.message;
}
