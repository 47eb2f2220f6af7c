/** Frames to messages and back: no sockets, no clocks. */

import type { MessageBody } from "../generated/messages.js";
import { FrameError, Unsendable } from "./errors.js";
import type { Init } from "./init.js";
import { Reader } from "./reader.js";
import type { Fields } from "./tables.js";
import { Writer } from "./writer.js";

/** The longest payload, in both directions. The length in front of it does not count. */
export const MAX_FRAME = 1 << 20;

/**
 * The message in a payload.
 *
 * @throws FrameError 5001, it is none; 5002, it is of a kind that is not in this schema.
 */
export function decode(payload: Uint8Array): MessageBody {
  return new Reader(payload).message() as unknown as MessageBody;
}

/**
 * The payload of a message. Fields that are left out have their defaults.
 *
 * @throws Unsendable 5003, it would be larger than `MAX_FRAME`; 3007, a value cannot be sent.
 */
export function encode(message: Init<MessageBody>): Uint8Array {
  const payload = new Writer().message(message as Fields);
  if (payload.length > MAX_FRAME) {
    throw new Unsendable(5003, `a \`${message.type}\` of ${payload.length} bytes does not fit into a frame`);
  }
  return payload;
}

/** The payload with its length in front, as TCP wants it. */
export function frame(payload: Uint8Array): Uint8Array {
  const framed = new Uint8Array(4 + payload.length);
  new DataView(framed.buffer).setUint32(0, payload.length, true);
  framed.set(payload, 4);
  return framed;
}

/** Cuts a stream of bytes into payloads, and never holds more than one of them. */
export class Framer {
  private readonly header = new Uint8Array(4);
  private payload: Uint8Array | null = null;
  private filled = 0;

  /**
   * Take some bytes, and hand on the payloads that they complete. One of length zero is a payload, too.
   *
   * @throws FrameError 5003, one larger than `MAX_FRAME` was announced. Where the next one begins is not known.
   */
  feed(data: Uint8Array, take: (payload: Uint8Array) => void): void {
    let at = 0;
    while (at < data.length || (this.payload !== null && this.payload.length === 0)) {
      const into = this.payload ?? this.header;
      const piece = data.subarray(at, at + into.length - this.filled);
      into.set(piece, this.filled);
      this.filled += piece.length;
      at += piece.length;
      if (this.filled < into.length) return;
      this.filled = 0;
      if (this.payload === null) {
        const size = new DataView(this.header.buffer).getUint32(0, true);
        if (size > MAX_FRAME) {
          throw new FrameError(5003, `a frame of ${size} bytes was announced; ${MAX_FRAME} are allowed`);
        }
        this.payload = new Uint8Array(size);
      } else {
        const payload = this.payload;
        this.payload = null;
        take(payload);
      }
    }
  }
}
