/**
 * The turns of a connection: which reply a frame belongs to.
 *
 * One turn of an agent runs at a time. Most are asked for. Some the server begins by itself, because somebody has
 * spoken: those are expected, perhaps several, and come in that order.
 */

import type { TryllError } from "./errors.js";
import type { Reply, TurnFrame } from "./turn.js";

export class PendingReplies {
  private readonly wanted = new Map<bigint, Reply>();
  private readonly unasked = new Map<bigint, Reply[]>();

  /** A turn is asked for. */
  begin(agent: bigint, reply: Reply): void {
    this.wanted.set(agent, reply);
  }

  /** The server will begin a turn, after those that it has begun before. */
  expect(agent: bigint, reply: Reply): void {
    this.unasked.set(agent, [...(this.unasked.get(agent) ?? []), reply]);
  }

  /** The turn is over. */
  forget(agent: bigint, reply: Reply): void {
    if (this.wanted.get(agent) === reply) this.wanted.delete(agent);
    const left = (this.unasked.get(agent) ?? []).filter((each) => each !== reply);
    if (left.length) this.unasked.set(agent, left);
    else this.unasked.delete(agent);
  }

  /** Whose frame it is; undefined if nobody waits for it. */
  of(message: TurnFrame): Reply | undefined {
    const asked = this.wanted.get(message.agent_id);
    const unasked = this.unasked.get(message.agent_id)?.[0];
    // A turn that the server begins waits for the end of the one that was asked for.
    if (!("request_id" in message)) return asked ?? unasked;
    if (message.request_id) return asked?.requestId === message.request_id ? asked : undefined;
    return unasked ?? asked;
  }

  /** The turn that was asked for like that. */
  asked(request: bigint): Reply | undefined {
    return [...this.wanted.values()].find((reply) => reply.requestId === request);
  }

  /** The last turn that the server was to begin with an agent. */
  expected(agent: bigint): Reply | undefined {
    return this.unasked.get(agent)?.at(-1);
  }

  /** No more frames come, of any. */
  lose(error: TryllError): void {
    const all = [...this.wanted.values(), ...[...this.unasked.values()].flat()];
    this.wanted.clear();
    this.unasked.clear();
    for (const reply of all) reply.lose(error);
  }
}
