/** What a message asks for that not every server knows: one that does not would pass over it, and answer otherwise. */

import { EXTENSION_OF } from "./generated/tables.js";

/** A field of a message that is set, and that a server with these extensions does not know; "" if there is none. */
export function unknownField(message: object, extensions: readonly string[]): string {
  for (const [name, value] of Object.entries(message)) {
    const extension = EXTENSION_OF.get(name);
    if (extension !== undefined && isSet(value) && !extensions.includes(extension)) return name;
    // Samples hold no fields.
    if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) continue;
    const found = unknownField(value as object, extensions);
    if (found) return found;
  }
  return "";
}

function isSet(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}
