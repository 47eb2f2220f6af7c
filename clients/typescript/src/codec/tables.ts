/** What the codec knows of the schema. The rows themselves are generated: see `../generated/tables.ts`. */

import { ENVELOPE, TABLES, UNIONS } from "../generated/tables.js";

/** What a field holds. */
export type Kind =
  | "u64"
  | "u32"
  | "i32"
  | "u16"
  | "u8"
  | "f32"
  | "bool"
  | "string"
  | "strings"
  | "samples"
  | "table"
  | "tables"
  | "union";

/** One field: its name, what it holds, its position in the vtable, its default, and the table or union it holds. */
export type Row = readonly [name: string, kind: Kind, position: number, fallback: unknown, of?: string];

/** A value of a table, before anybody looked at its type. */
export type Fields = Record<string, unknown>;

/** One table, as the reader and the writer use it. */
export interface Shape {
  readonly name: string;
  readonly rows: readonly Row[];
  /** Positions of the vtable that are known here. What a newer peer has put behind them is passed over. */
  readonly positions: number;
  /** Where absence means "inherit", an empty vector is not written either. */
  readonly sparse: boolean;
  /** Whether its values say their `type`: they are members of a union. */
  readonly tagged: boolean;
}

/** The width of each scalar; an offset, which leads to anything else, has four bytes. */
export const WIDTHS: Readonly<Record<string, number>> = { u64: 8, u32: 4, i32: 4, f32: 4, u16: 2, u8: 1, bool: 1 };

export function widthOf(kind: Kind): number {
  return WIDTHS[kind] ?? 4;
}

const shapes = new Map<string, Shape>();

/** The one shape of a table of the schema. */
export function shapeOf(name: string): Shape {
  let shape = shapes.get(name);
  if (shape === undefined) {
    const rows = name === ENVELOPE ? ([["body", "union", 0, null, "MessageBody"]] as readonly Row[]) : TABLES[name];
    if (rows === undefined) throw new TypeError(`the schema has no table \`${name}\``);
    const last = rows[rows.length - 1];
    const positions = last === undefined ? 0 : last[2] + (last[1] === "union" ? 2 : 1);
    const sparse = UNIONS["NodeParams"]!.includes(name);
    const tagged = sparse || UNIONS["MessageBody"]!.includes(name);
    shape = { name, rows, positions, sparse, tagged };
    shapes.set(name, shape);
  }
  return shape;
}

/** The members of a union, by tag from 1. */
export function membersOf(union: string): readonly string[] {
  const members = UNIONS[union];
  if (members === undefined) throw new TypeError(`the schema has no union \`${union}\``);
  return members;
}
