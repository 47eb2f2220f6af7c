/**
 * What a session consists of, in the order in which it came to be, so that a new connection can have it again.
 *
 * An agent keeps the engines and the storages that it was made with, also when the session has others by now: so the
 * configurations are gone through again, and a storage that is destroyed is made and destroyed again if somebody was
 * made in between. What cannot be made again fails alone.
 */

import type { Init } from "./codec/init.js";
import type { Connection } from "./connection.js";
import { PASSING, TryllError } from "./errors.js";
import type { ConfigureSessionRequest, MessageBody, NodeParams } from "./generated/messages.js";

/** How long anything may take that needs no model, in milliseconds. */
export const REQUEST_MS = 30_000;
/** How long a server may be silent while it fetches, loads or embeds: not all of them show progress. */
export const MODEL_MS = 300_000;

export type Config = Init<ConfigureSessionRequest>;

/** An agent or a voice input. */
export interface Made {
  /** Make it again. */
  create(link: Connection, timeoutMs: number): Promise<void>;
  /** It cannot be made again. */
  fail(error: TryllError): void;
}

/** An agent. */
export interface MadeAgent extends Made {
  changeAgain(link: Connection, node: string, params: Init<NodeParams>): Promise<void>;
}

type Step =
  | { readonly is: "configured"; readonly config: Config }
  | { readonly is: "stored"; readonly key: string; readonly request: Init<MessageBody> }
  | { readonly is: "dropped"; readonly key: string; readonly request: Init<MessageBody> }
  | { readonly is: "created"; readonly made: Made }
  | { readonly is: "changed"; readonly made: MadeAgent; readonly node: string; readonly params: Init<NodeParams> };

/** The steps of one session. Each is told when the server has done it. */
export class SessionReplay {
  private steps: Step[];

  constructor(public config: Config) {
    this.steps = [{ is: "configured", config }];
  }

  /** How long the server may be silent while it makes an agent. */
  get makingMs(): number {
    return this.config.allow_auto_model_downloading ? MODEL_MS : REQUEST_MS;
  }

  configured(config: Config): void {
    this.config = config;
    this.add({ is: "configured", config });
  }

  stored(key: string, request: Init<MessageBody>): void {
    this.add({ is: "stored", key, request });
  }

  dropped(key: string, request: Init<MessageBody>): void {
    this.add({ is: "dropped", key, request });
  }

  created(made: Made): void {
    this.add({ is: "created", made });
  }

  changed(made: MadeAgent, node: string, params: Init<NodeParams>): void {
    this.steps = this.steps.filter((step) => !(step.is === "changed" && step.made === made && step.node === node));
    this.add({ is: "changed", made, node, params });
  }

  /** An agent or a voice input is no more. */
  released(made: Made): void {
    this.steps = this.steps.filter((step) => !("made" in step) || step.made !== made);
    this.prune();
  }

  /**
   * Do everything again.
   *
   * @throws TryllError the session cannot be configured, or the connection is of no use.
   */
  async replay(link: Connection): Promise<void> {
    let unusable: TryllError | null = null;
    for (const step of [...this.steps]) {
      try {
        if (step.is === "configured") {
          unusable = null;
          // What lets us in is what holds now.
          const config = { ...step.config, token: this.config.token };
          await link.request(config, "ConfigureSessionResponse", REQUEST_MS);
        } else if (unusable !== null && step.is !== "dropped") {
          throw unusable;
        } else {
          await this.redo(step, link);
        }
      } catch (error) {
        if (!(error instanceof TryllError) || link.lost !== null || PASSING.includes(error.code)) throw error;
        if (step.is === "configured") {
          if (step.config === this.config) throw error;
          unusable = error;
        }
        if ("made" in step) step.made.fail(error);
      }
    }
  }

  private async redo(step: Exclude<Step, { is: "configured" }>, link: Connection): Promise<void> {
    if (step.is === "stored") await link.request(step.request, answerTo(step.request), MODEL_MS);
    else if (step.is === "dropped") await link.request(step.request, "Ack", REQUEST_MS);
    else if (step.is === "created") await step.made.create(link, this.makingMs);
    else await step.made.changeAgain(link, step.node, step.params);
  }

  private add(step: Step): void {
    this.steps.push(step);
    this.prune();
  }

  /** Leave out what nothing follows from: storages that nobody was made with, configurations that nobody used. */
  private prune(): void {
    const kept: Step[] = [];
    for (const step of this.steps) {
      if (step.is === "dropped") {
        const from = kept.findLastIndex((each) => each.is === "stored" && each.key === step.key);
        if (from >= 0 && !kept.slice(from).some((each) => each.is === "created")) {
          kept.splice(from, 1);
          continue;
        }
      } else if (step.is === "configured" && kept.at(-1)?.is === "configured") {
        kept.pop();
      }
      kept.push(step);
    }
    this.steps = kept;
  }
}

/** The answer to a request for a storage. */
export function answerTo(
  request: Init<MessageBody>,
): "CreateStringStorageResponse" | "CreateEmbeddedStringStorageResponse" {
  return request.type === "CreateStringStorageRequest"
    ? "CreateStringStorageResponse"
    : "CreateEmbeddedStringStorageResponse";
}
