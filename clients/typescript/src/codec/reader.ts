/**
 * Reads a buffer that nobody has checked. No byte of it is believed before it was seen to be possible.
 *
 * A FlatBuffer is a web of offsets, and offsets can lie: lead out of the buffer, into the middle of something else, or
 * a thousand times to the same place. What is checked, of whatever is visited:
 *
 * - each table, vector and string lies inside the buffer and on a multiple of four;
 * - a table's vtable lies inside the buffer, is even, and long enough for its own header; the fields that it tells of
 *   lie inside the table, on a multiple of their width (of four, for wider ones), and do not overlap;
 * - a vector's length fits into what is left of the buffer; a string ends with a zero byte and is UTF-8;
 * - a union has both its tag and its value, or neither, and the tag is known;
 * - all that is visited, counted as often as it is visited, is no more than an honest frame holds.
 *
 * How deep it goes needs no limit of its own: no table of the schema holds itself.
 */

import { ENVELOPE } from "../generated/tables.js";
import { FrameError, malformed } from "./errors.js";
import { membersOf, shapeOf, widthOf, type Fields, type Kind, type Row, type Shape } from "./tables.js";

/** All text of a frame, in bytes: four times what fits into one, since a builder may let fields share a string. */
export const MAX_TEXT = 4 << 20;
const SHARED_TEXT = 64 << 10;
/** Tables, vectors and strings of a frame. Each needs an offset of four bytes that leads to it, unless some share. */
export const MAX_OBJECTS = 1 << 17;
const SHARED_OBJECTS = 1024;
/** The root's offset, an empty vtable, an empty table. */
const SMALLEST = 12;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The number that a peer meant by a float of 32 bits: 0.15 comes as 0.15000000596. */
export function shortest(value: number): number {
  const short = Number(value.toPrecision(7));
  return Math.fround(short) === value ? short : value;
}

/** Where the fields of one table stand. */
interface Place {
  readonly row: Row;
  readonly at: number;
  /** Of a union: where its value stands. 0: nowhere. */
  readonly value: number;
}

/** Reads one buffer. */
export class Reader {
  private readonly view: DataView;
  private readonly length: number;
  private objects: number;
  private text: number;
  private seenShape: Shape | null = null;
  private seenVtable = -1;
  private seenPlaces: readonly Place[] = [];
  private seenSize = 0;

  constructor(private readonly data: Uint8Array) {
    this.view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    this.length = data.byteLength;
    this.objects = Math.min(SHARED_OBJECTS + (this.length >> 2), MAX_OBJECTS);
    this.text = Math.min(SHARED_TEXT + 4 * this.length, MAX_TEXT);
  }

  /**
   * The body of the root.
   *
   * @throws FrameError 5001, the buffer is not what it should be; 5002, a tag is not known.
   */
  message(): Fields {
    if (this.length < SMALLEST) {
      throw malformed(this.length ? "the frame is too short for a message" : "the frame is empty");
    }
    const root = this.table(shapeOf(ENVELOPE), this.follow(0));
    const body = root["body"] as Fields | null;
    if (body === null) throw malformed("the message has no body");
    return body;
  }

  /** Where the offset that stands at `at` leads to. There are at least four bytes there. */
  private follow(at: number): number {
    const offset = this.view.getUint32(at, true);
    const target = at + offset;
    if (offset === 0 || target & 3 || target + 4 > this.length) throw malformed("an offset points nowhere");
    return target;
  }

  private spend(objects: number): void {
    this.objects -= objects;
    if (this.objects < 0) throw malformed("the frame holds the same things too often");
  }

  /** The table at `at`, which `follow` has seen. */
  private table(shape: Shape, at: number): Fields {
    this.spend(1);
    const vtable = at - this.view.getInt32(at, true);
    if (vtable !== this.seenVtable || shape !== this.seenShape) {
      this.seenPlaces = this.places(shape, vtable);
      this.seenVtable = vtable;
      this.seenShape = shape;
    }
    const places = this.seenPlaces;
    if (at + this.seenSize > this.length) throw malformed("a table does not fit into the frame");
    const found: Fields = shape.tagged ? { type: shape.name } : {};
    for (const { row, at: place, value } of places) {
      const [name, kind, , fallback, of] = row;
      if (place === 0)
        found[name] = kind === "samples" ? new Int16Array(0) : kind === "strings" || kind === "tables" ? [] : fallback;
      else if (kind === "union") found[name] = this.union(of!, this.view.getUint8(at + place), value && at + value);
      else found[name] = this.value(kind, at + place, of);
    }
    return found;
  }

  /** Where the fields of a table with that vtable stand, from the table's beginning; 0 for those that are absent. */
  private places(shape: Shape, vtable: number): Place[] {
    if (vtable < 0 || vtable & 1 || vtable + 4 > this.length) throw malformed("a vtable lies outside the frame");
    const bytes = this.view.getUint16(vtable, true);
    if (bytes < 4 || bytes & 1 || vtable + bytes > this.length) throw malformed("a vtable's length is not possible");
    this.seenSize = this.view.getUint16(vtable + 2, true);
    if (this.seenSize < 4) throw malformed("a table is too short for its own header");
    const count = bytes / 2 - 2;
    const entry = (position: number): number =>
      position < count ? this.view.getUint16(vtable + 4 + 2 * position, true) : 0;
    const taken: [number, number][] = [];
    const places = shape.rows.map((row): Place => {
      const [, kind, position] = row;
      const at = entry(position);
      const value = kind === "union" ? entry(position + 1) : 0;
      if (at) taken.push([at, kind === "union" ? 1 : widthOf(kind)]);
      if (value) taken.push([value, 4]);
      return { row, at, value };
    });
    taken.sort((one, other) => one[0] - other[0]);
    let end = 4;
    for (const [at, width] of taken) {
      if (at < end || at % Math.min(width, 4) || at + width > this.seenSize) {
        throw malformed("a field lies outside its table, across another field, or askew");
      }
      end = at + width;
    }
    return places;
  }

  private value(kind: Kind, at: number, of: string | undefined): unknown {
    switch (kind) {
      case "u64":
        return this.view.getBigUint64(at, true);
      case "u32":
        return this.view.getUint32(at, true);
      case "i32":
        return this.view.getInt32(at, true);
      case "u16":
        return this.view.getUint16(at, true);
      case "u8":
        return this.view.getUint8(at);
      case "bool":
        return this.view.getUint8(at) !== 0;
      case "f32":
        return shortest(this.view.getFloat32(at, true));
      case "string":
        return this.string(this.follow(at));
      case "table":
        return this.table(shapeOf(of!), this.follow(at));
      default:
        return this.vector(kind, this.follow(at), of);
    }
  }

  private union(name: string, tag: number, at: number): Fields | null {
    if (tag === 0) return null;
    const member = membersOf(name)[tag - 1];
    if (member === undefined) throw new FrameError(5002, `there is no \`${name}\` with the tag ${tag}`);
    if (at === 0) throw malformed("a union has a tag and no value");
    return this.table(shapeOf(member), this.follow(at));
  }

  private string(at: number): string {
    this.spend(1);
    const size = this.view.getUint32(at, true);
    const end = at + 4 + size;
    if (end >= this.length || this.data[end] !== 0) {
      throw malformed("a string lies outside the frame, has no end, or is askew");
    }
    this.text -= size;
    if (this.text < 0) throw malformed("the frame holds the same text too often");
    try {
      return utf8.decode(this.data.subarray(at + 4, end));
    } catch {
      throw malformed("a string is not UTF-8");
    }
  }

  private vector(kind: Kind, at: number, of: string | undefined): unknown {
    this.spend(1);
    const count = this.view.getUint32(at, true);
    const first = at + 4;
    if (count * (kind === "samples" ? 2 : 4) > this.length - first)
      throw malformed("a vector does not fit into the frame");
    if (kind === "samples") return this.samples(first, count);
    const found: unknown[] = [];
    const shape = kind === "tables" ? shapeOf(of!) : null;
    for (let place = first; place < first + 4 * count; place += 4) {
      const target = this.follow(place);
      found.push(shape === null ? this.string(target) : this.table(shape, target));
    }
    return found;
  }

  private samples(first: number, count: number): Int16Array {
    const found = new Int16Array(count);
    for (let index = 0; index < count; index++) found[index] = this.view.getInt16(first + 2 * index, true);
    return found;
  }
}
