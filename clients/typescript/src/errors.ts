/** What can go wrong, as typed errors with the number of the catalogue and a sentence for people. */

import { CODES } from "./generated/errors.js";
import type { Turn } from "./turn.js";

/** What the server refused, or what happened to the connection. `message` can be shown to people. */
export class TryllError extends Error {
  override readonly name: string = "TryllError";

  /** A number that nobody knows is kept as it is. */
  constructor(
    readonly code: number,
    message = "",
  ) {
    super(message || (CODES[code]?.text ?? "The server gave no reason."));
  }

  /** The code's name, such as `AgentBusy`; "" for one that is not in the catalogue. */
  get codeName(): string {
    return CODES[this.code]?.name ?? "";
  }

  /** What to do about it; "" for a number that nobody knows. */
  get advice(): string {
    return CODES[this.code]?.advice ?? "";
  }
}

/** A turn ended with an error. `turn` holds what was said until then. */
export class TurnFailed extends TryllError {
  override readonly name = "TurnFailed";

  constructor(readonly turn: Turn) {
    const said = turn.debug["error"];
    const error = (typeof said === "object" && said !== null ? said : {}) as Record<string, unknown>;
    super(
      typeof error["code"] === "number" ? error["code"] : 4001,
      typeof error["message"] === "string" ? error["message"] : "",
    );
  }
}

/** After these another connection is tried, also while one is being made: the server may be starting anew. */
export const PASSING: readonly number[] = [1001, 1002, 1003, 2001];
/** After these no new connection is tried: the next one would be no better. */
export const FINAL: readonly number[] = [5003, 5004];
