/**
 * A WebSocket for nodes that have none of their own (before 22): the part of RFC 6455 that a client of this server
 * needs.
 *
 * It looks like the browser's. Messages are binary; what else a server sends ends it.
 */

import { createHash, randomBytes } from "node:crypto";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { Duplex } from "node:stream";

import { MAX_FRAME } from "../codec/frames.js";
import type { WebSocketLike } from "../transport.js";

const MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/** How long the end of a connection is waited for before it is cut. */
const CLOSE_MS = 1000;
/** What a header of a server's frame has at most. */
const HEADER = 10;

const CONTINUATION = 0;
const TEXT = 1;
const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

const NORMAL = 1000;
const PROTOCOL_ERROR = 1002;
const NO_STATUS = 1005;
const ABNORMAL = 1006;
const TOO_BIG = 1009;

/** Opens a WebSocket to `ws://` or `wss://`. */
export class NodeWebSocket implements WebSocketLike {
  binaryType = "arraybuffer";
  readyState = 0;
  onopen: ((event: never) => unknown) | null = null;
  onmessage: ((event: { data: unknown }) => unknown) | null = null;
  onclose: ((event: { code: number; reason: string }) => unknown) | null = null;
  onerror: ((event: never) => unknown) | null = null;
  private socket: Duplex | null = null;
  private held: Buffer = Buffer.alloc(0);
  private parts: Buffer[] = [];
  private size = 0;
  private kind = 0;
  private code = ABNORMAL;
  private reason = "";
  private readonly abort: () => void;

  constructor(url: string) {
    const place = new URL(url);
    if (place.protocol !== "ws:" && place.protocol !== "wss:")
      throw new SyntaxError(`\`${url}\` is not a WebSocket's address`);
    const key = randomBytes(16).toString("base64");
    const wanted = createHash("sha1")
      .update(key + MAGIC)
      .digest("base64");
    place.protocol = place.protocol === "ws:" ? "http:" : "https:";
    const asked = (place.protocol === "http:" ? requestHttp : requestHttps)(place, {
      headers: {
        Connection: "Upgrade",
        Upgrade: "websocket",
        "Sec-WebSocket-Key": key,
        "Sec-WebSocket-Version": "13",
      },
    });
    this.abort = () => asked.destroy();
    asked.on("upgrade", (response, socket, head) => {
      if (response.headers["sec-websocket-accept"] === wanted) this.open(socket, head);
      else (socket.destroy(), this.refused("it speaks no WebSocket"));
    });
    asked.on("response", (response) => {
      response.destroy();
      this.refused(`it answers with the HTTP status ${response.statusCode}`);
    });
    asked.on("error", (error: NodeJS.ErrnoException) => this.refused(error.code ?? error.message));
    asked.end();
  }

  get bufferedAmount(): number {
    return this.socket?.writableLength ?? 0;
  }

  send(data: Uint8Array): void {
    if (this.readyState === 1) this.write(BINARY, data);
  }

  close(code = NORMAL, reason = ""): void {
    if (this.readyState >= 2) return;
    const open = this.readyState === 1;
    this.readyState = 2;
    if (!open) {
      this.abort();
      return;
    }
    const said = Buffer.concat([Buffer.from([code >> 8, code & 255]), Buffer.from(reason)]);
    this.write(CLOSE, said);
    this.socket?.end();
    setTimeout(() => this.socket?.destroy(), CLOSE_MS).unref();
  }

  private open(socket: Duplex, head: Buffer): void {
    this.socket = socket;
    (socket as { setNoDelay?: (on: boolean) => void }).setNoDelay?.(true);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.ended());
    socket.on("end", () => socket.end());
    this.readyState = 1;
    this.onopen?.(undefined as never);
    socket.on("data", (data: Buffer) => this.take(data));
    if (head.length) this.take(head);
  }

  private refused(reason: string): void {
    this.reason = reason;
    this.ended();
  }

  private ended(): void {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.onclose?.({ code: this.code, reason: this.reason });
  }

  private fail(code: number): void {
    this.held = Buffer.alloc(0);
    this.parts = [];
    this.close(code);
  }

  private take(data: Buffer): void {
    this.held = this.held.length ? Buffer.concat([this.held, data]) : data;
    for (let used = this.frame(); used > 0; used = this.frame()) this.held = this.held.subarray(used);
  }

  /** Take one frame; how many bytes it has, 0 if it is not complete. */
  private frame(): number {
    const data = this.held;
    if (data.length < 2 || this.readyState >= 3) return 0;
    const first = data[0]!;
    const short = data[1]!;
    const opcode = first & 15;
    // A server masks nothing, and nobody has agreed on extensions.
    if (first & 0x70 || short & 0x80) return (this.fail(PROTOCOL_ERROR), 0);
    const at = short < 126 ? 2 : short === 126 ? 4 : HEADER;
    if (data.length < at) return 0;
    const size = short < 126 ? short : short === 126 ? data.readUInt16BE(2) : Number(data.readBigUInt64BE(2));
    if (size > MAX_FRAME || this.size + size > MAX_FRAME) return (this.fail(TOO_BIG), 0);
    if (data.length < at + size) return 0;
    const payload = data.subarray(at, at + size);
    if (opcode >= CLOSE) this.control(opcode, payload);
    else this.piece(opcode, payload, (first & 0x80) !== 0);
    return this.held.length ? at + size : 0;
  }

  private piece(opcode: number, payload: Buffer, last: boolean): void {
    const begins = opcode === TEXT || opcode === BINARY;
    if (begins === this.parts.length > 0 || (!begins && opcode !== CONTINUATION)) return this.fail(PROTOCOL_ERROR);
    if (begins) this.kind = opcode;
    this.parts.push(payload);
    this.size += payload.length;
    if (!last) return;
    const whole = Buffer.concat(this.parts);
    this.parts = [];
    this.size = 0;
    const bytes = whole.buffer.slice(whole.byteOffset, whole.byteOffset + whole.length);
    this.onmessage?.({ data: this.kind === BINARY ? bytes : whole.toString() });
  }

  private control(opcode: number, payload: Buffer): void {
    if (opcode === PING) this.write(PONG, payload);
    if (opcode !== CLOSE) return;
    this.code = payload.length >= 2 ? payload.readUInt16BE(0) : NO_STATUS;
    this.reason = payload.subarray(2).toString();
    this.close();
  }

  private write(opcode: number, payload: Uint8Array): void {
    const mask = randomBytes(4);
    const size = payload.length;
    const at = size < 126 ? 2 : size < 1 << 16 ? 4 : HEADER;
    const out = Buffer.alloc(at + 4 + size);
    out[0] = 0x80 | opcode;
    if (at === 2) out[1] = 0x80 | size;
    else if (at === 4) ((out[1] = 0x80 | 126), out.writeUInt16BE(size, 2));
    else ((out[1] = 0x80 | 127), out.writeBigUInt64BE(BigInt(size), 2));
    out.set(mask, at);
    for (let index = 0; index < size; index++) out[at + 4 + index] = payload[index]! ^ mask[index & 3]!;
    this.socket?.write(out);
  }
}
