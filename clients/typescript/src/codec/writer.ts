/**
 * Writes messages as FlatBuffers, parents before children: what an offset leads to always lies behind it.
 *
 * All scalars are written, also those that equal their default. What is `undefined` is the default; what is null is
 * left out, and in the parameters of nodes, where absence means "inherit", an empty vector, too.
 */

import { ENVELOPE } from "../generated/tables.js";
import { Unsendable } from "./errors.js";
import { membersOf, shapeOf, widthOf, type Fields, type Kind, type Row, type Shape } from "./tables.js";

/** How a table with one certain choice of fields is arranged: the widest fields first. */
interface Plan {
  readonly vtable: readonly number[];
  readonly size: number;
  readonly aligned: number;
  /** Where each position stands in the table. */
  readonly offsets: ReadonlyMap<number, number>;
}

const encoder = new TextEncoder();
const plans = new Map<string, Plan>();

/** [position, what stands there] */
type Slot = readonly [position: number, kind: Kind];

function planOf(shape: Shape, slots: readonly Slot[]): Plan {
  const key = `${shape.name} ${slots.map(([position]) => position).join(" ")}`;
  let plan = plans.get(key);
  if (plan === undefined) plans.set(key, (plan = arranged(slots)));
  return plan;
}

function arranged(slots: readonly Slot[]): Plan {
  const offsets = new Map<number, number>();
  let at = 4;
  for (const [position, kind] of [...slots].sort((one, other) => widthOf(other[1]) - widthOf(one[1]))) {
    offsets.set(position, at);
    at += widthOf(kind);
  }
  const size = at + (-at & 3);
  const positions = 1 + Math.max(-1, ...offsets.keys());
  const vtable = [4 + 2 * positions, size];
  for (let position = 0; position < positions; position++) vtable.push(offsets.get(position) ?? 0);
  // With the widest fields first, the table itself stands just in front of a multiple of their width.
  return { vtable, size, aligned: slots.some(([, kind]) => kind === "u64") ? 8 : 4, offsets };
}

/** Writes one message. */
export class Writer {
  private data = new Uint8Array(256);
  private view = new DataView(this.data.buffer);
  private length = 4;

  /**
   * The buffer of a message.
   *
   * @throws Unsendable a value is not of its field's type, or out of its range.
   */
  message(body: Fields): Uint8Array {
    const root = this.table(shapeOf(ENVELOPE), { body });
    this.view.setUint32(0, root, true);
    return this.data.slice(0, this.length);
  }

  /** Make room for so many bytes; where they begin. They are zero. */
  private grow(bytes: number): number {
    const at = this.length;
    this.length += bytes;
    if (this.length > this.data.length) {
      const wider = new Uint8Array(Math.max(this.length, 2 * this.data.length));
      wider.set(this.data);
      this.data = wider;
      this.view = new DataView(wider.buffer);
    }
    return at;
  }

  /** Write a table and all that it holds; where it begins. */
  private table(shape: Shape, value: Fields): number {
    const slots: Slot[] = [];
    const present: [Row, unknown][] = [];
    for (const row of shape.rows) {
      const [name, kind, position, fallback] = row;
      const given = value[name];
      const item = given === undefined ? (isVector(kind) ? [] : fallback) : given;
      if (item === null || (shape.sparse && isVector(kind) && (item as { length: number }).length === 0)) continue;
      if (kind === "union") slots.push([position, "u8"], [position + 1, "union"]);
      else slots.push([position, kind]);
      present.push([row, item]);
    }
    const plan = planOf(shape, slots);
    const header = 2 * plan.vtable.length;
    const padding = -(this.length + header + 4) & (plan.aligned - 1);
    const vtable = this.grow(padding + header + plan.size) + padding;
    const at = vtable + header;
    plan.vtable.forEach((entry, index) => this.view.setUint16(vtable + 2 * index, entry, true));
    this.view.setInt32(at, header, true);
    for (const [row, item] of present) this.field(shape, row, item, at, plan);
    return at;
  }

  private field(shape: Shape, row: Row, item: unknown, table: number, plan: Plan): void {
    const [name, kind, position, , of] = row;
    const at = table + plan.offsets.get(position)!;
    try {
      if (kind === "union") {
        const member = item as Fields;
        const tag = membersOf(of!).indexOf(String(member["type"])) + 1;
        if (tag === 0) throw new RangeError(`\`${String(member["type"])}\` is not one of \`${of}\``);
        this.view.setUint8(at, tag);
        const place = table + plan.offsets.get(position + 1)!;
        this.lead(place, () => this.table(shapeOf(membersOf(of!)[tag - 1]!), member));
      } else if (widths(kind)) {
        this.scalar(kind, at, item);
      } else if (kind === "table") {
        this.lead(at, () => this.table(shapeOf(of!), item as Fields));
      } else {
        this.lead(at, () => this.vector(kind, item, of));
      }
    } catch (error) {
      if (error instanceof Unsendable) throw error;
      const told = error instanceof Error ? error.message : String(error);
      throw new Unsendable(3007, `\`${shape.name}.${name}\` cannot be sent: ${told}`);
    }
  }

  /** Write what the offset at `at` leads to, and the offset. */
  private lead(at: number, write: () => number): void {
    const start = write();
    this.view.setUint32(at, start - at, true);
  }

  private scalar(kind: Kind, at: number, item: unknown): void {
    switch (kind) {
      case "u64":
        return this.view.setBigUint64(at, whole(item, 0n, 0xffff_ffff_ffff_ffffn), true);
      case "u32":
        return this.view.setUint32(at, Number(whole(item, 0n, 0xffff_ffffn)), true);
      case "i32":
        return this.view.setInt32(at, Number(whole(item, -0x8000_0000n, 0x7fff_ffffn)), true);
      case "u16":
        return this.view.setUint16(at, Number(whole(item, 0n, 0xffffn)), true);
      case "u8":
        return this.view.setUint8(at, Number(whole(item, 0n, 0xffn)));
      case "bool":
        return this.view.setUint8(at, item ? 1 : 0);
      default:
        return this.view.setFloat32(at, real(item), true);
    }
  }

  private vector(kind: Kind, item: unknown, of: string | undefined): number {
    // Everything but tables ends on a multiple of four.
    this.grow(-this.length & 3);
    if (kind === "string") return this.string(item);
    if (kind === "samples") return this.samples(item);
    const items = list(item);
    const start = this.grow(4 + 4 * items.length);
    this.view.setUint32(start, items.length, true);
    items.forEach((each, index) => {
      const place = start + 4 + 4 * index;
      if (kind === "strings") this.lead(place, () => this.vector("string", each, of));
      else this.lead(place, () => this.table(shapeOf(of!), each as Fields));
    });
    return start;
  }

  private string(item: unknown): number {
    if (typeof item !== "string") throw new TypeError("it must be a text");
    // Halves of characters are replaced: UTF-8 cannot carry them.
    const bytes = encoder.encode(item);
    const start = this.grow(4 + bytes.length + 4 - (bytes.length & 3));
    this.view.setUint32(start, bytes.length, true);
    this.data.set(bytes, start + 4);
    return start;
  }

  private samples(item: unknown): number {
    const samples = item instanceof Int16Array ? item : Int16Array.from(list(item) as number[]);
    const start = this.grow(4 + 2 * samples.length);
    this.view.setUint32(start, samples.length, true);
    for (let index = 0; index < samples.length; index++) {
      this.view.setInt16(start + 4 + 2 * index, samples[index]!, true);
    }
    return start;
  }
}

function isVector(kind: Kind): boolean {
  return kind === "strings" || kind === "samples" || kind === "tables";
}

function widths(kind: Kind): boolean {
  return kind !== "string" && kind !== "table" && !isVector(kind);
}

function list(item: unknown): readonly unknown[] {
  if (!Array.isArray(item)) throw new TypeError("it must be a list");
  return item;
}

function real(item: unknown): number {
  if (typeof item !== "number") throw new TypeError("it must be a number");
  return item;
}

function whole(item: unknown, least: bigint, most: bigint): bigint {
  if (typeof item !== "bigint" && !Number.isInteger(item)) throw new TypeError("it must be a whole number");
  const number = BigInt(item as bigint | number);
  if (number < least || number > most) throw new RangeError(`${number} is not between ${least} and ${most}`);
  return number;
}
