/** What the nodes of an agent tell while a turn runs, in the form of its type. */

import type { NodeEvent } from "./generated/messages.js";

/** The model wants to call a tool. The name is not checked: that is up to the code that runs the tool. */
export interface ToolCall {
  readonly kind: "tool_call";
  readonly node: string;
  readonly name: string;
  /** null if what came is no JSON object; then only `argumentsJson` tells. */
  readonly arguments: Readonly<Record<string, unknown>> | null;
  readonly argumentsJson: string;
}

/** What the user wants, as a node understands it. */
export interface IntentClassified {
  readonly kind: "intent";
  readonly node: string;
  readonly intent: string;
  readonly recordId: string;
  readonly recordIndex: number;
  readonly distance: number | null;
  /** How likely it is, and by how much likelier than the next; of ClassifyIntentLLM only. */
  readonly topProb: number | null;
  readonly margin: number | null;
}

/** Any other event, as it came. */
export interface OtherEvent {
  readonly kind: "event";
  readonly node: string;
  readonly type: string;
  readonly pairs: ReadonlyMap<string, string>;
}

export type Told = ToolCall | IntentClassified | OtherEvent;

/** The event in the form of its type. One that lacks what its type needs stays as it came. */
export function told(event: NodeEvent): Told {
  const pairs = new Map(event.kv_pairs.map(({ key, value }) => [key, value]));
  const node = event.node_name;
  const name = pairs.get("tool_name");
  if (event.event_type === "tool_call" && name !== undefined) {
    const text = pairs.get("arguments_json") ?? "";
    return { kind: "tool_call", node, name, arguments: jsonObject(text), argumentsJson: text };
  }
  const intent = pairs.get("intent");
  if (event.event_type === "intent_classified" && intent !== undefined) {
    return {
      kind: "intent",
      node,
      intent,
      recordId: pairs.get("record_id") ?? "",
      recordIndex: number(pairs.get("record_index")) ?? 0,
      distance: number(pairs.get("distance")),
      topProb: number(pairs.get("top_prob")),
      margin: number(pairs.get("margin")),
    };
  }
  return { kind: "event", node, type: event.event_type, pairs };
}

/** The JSON object that a text is; null if it is none. */
export function jsonObject(text: string): Record<string, unknown> | null {
  try {
    const found: unknown = JSON.parse(text);
    return typeof found === "object" && found !== null && !Array.isArray(found)
      ? (found as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

function number(text: string | undefined): number | null {
  const found = text === undefined || text.trim() === "" ? NaN : Number(text);
  return Number.isFinite(found) ? found : null;
}

/** Let a listener hear something. What it throws, also later, is reported, and harms nobody else. */
export function call<T>(listener: ((heard: T) => unknown) | null | undefined, heard: T): void {
  if (!listener) return;
  const failed = (error: unknown): void => console.error("a listener of the Tryll client failed", error);
  try {
    const told = listener(heard);
    if (told instanceof Promise) told.catch(failed);
  } catch (error) {
    failed(error);
  }
}
