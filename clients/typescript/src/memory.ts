/**
 * What a client remembers of a conversation, for a server that has lost it: its end, in whole exchanges. Half of one no
 * server takes back.
 */

import { MAX_FRAME } from "./codec/frames.js";
import type { HistoryEntry } from "./generated/messages.js";

/** What is remembered, in characters: more than small models read, and any exchange of so many fits into a frame. */
const REMEMBERED = (MAX_FRAME >> 2) - 1024;
/** And in exchanges: as many as our server keeps, so that short ones do not become very many. */
const MOST_EXCHANGES = 4096;

export class Memory {
  /** Another number whenever something was said. */
  version = 0;
  private exchanges: HistoryEntry[][] = [];
  private characters = 0;

  get entries(): HistoryEntry[] {
    return this.exchanges.flat();
  }

  /** A message was answered. Without an answer there is nothing to be remembered. */
  add(message: string, answer: string): void {
    this.version++;
    if (answer)
      this.keep([
        { role: "user", text: message },
        { role: "assistant", text: answer },
      ]);
  }

  /** Another conversation takes the place of this one. */
  begin(entries: readonly HistoryEntry[]): void {
    this.version++;
    this.exchanges = [];
    this.characters = 0;
    let exchange: HistoryEntry[] = [];
    for (const entry of entries) {
      if (entry.role === "user" && exchange.length) {
        this.keep(exchange);
        exchange = [];
      }
      exchange.push(entry);
    }
    if (exchange.length) this.keep(exchange);
  }

  private keep(exchange: HistoryEntry[]): void {
    const size = lengthOf(exchange);
    if (size > REMEMBERED) return;
    this.exchanges.push(exchange);
    this.characters += size;
    while (this.characters > REMEMBERED || this.exchanges.length > MOST_EXCHANGES) {
      this.characters -= lengthOf(this.exchanges.shift()!);
    }
  }
}

/** A conversation in which nobody speaks twice in a row, of one whose long texts came in several entries. */
export function joined(entries: readonly HistoryEntry[]): HistoryEntry[] {
  const found: { role: string; text: string }[] = [];
  for (const { role, text } of entries) {
    const last = found.at(-1);
    if (last?.role === role) last.text += text;
    else found.push({ role, text });
  }
  return found;
}

/** A conversation in as many parts as it takes for each to fit into a frame. None is cut within an exchange. */
export function inParts(entries: readonly HistoryEntry[]): HistoryEntry[][] {
  const parts: HistoryEntry[][] = [[]];
  let size = 0;
  for (const entry of entries) {
    const more = entry.text.length + ENTRY;
    if (size + more > REMEMBERED && entry.role === "user" && parts.at(-1)!.length) {
      parts.push([]);
      size = 0;
    }
    parts.at(-1)!.push(entry);
    size += more;
  }
  return parts;
}

/** What an entry takes beside its text. */
const ENTRY = 64;

function lengthOf(exchange: readonly HistoryEntry[]): number {
  return exchange.reduce((sum, entry) => sum + entry.text.length, 0);
}
