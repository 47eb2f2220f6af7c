/** An agent on a server, for whoever talks to it. It outlives its connection: the next one has it again. */

import type { Init } from "./codec/init.js";
import type { Connection, Progress, RequestOptions } from "./connection.js";
import { PASSING, TryllError } from "./errors.js";
import { call } from "./events.js";
import {
  TurnStatus,
  type CreateAgentRequest,
  type GraphDescription,
  type HistoryEntry,
  type NodeParams,
} from "./generated/messages.js";
import { inParts, joined, Memory } from "./memory.js";
import { REQUEST_MS, type MadeAgent } from "./replay.js";
import { Reply, TURN_MS, type Conduct, type SendOptions, type Turn, type TurnListeners } from "./turn.js";
import { again, timed, unlessAborted } from "./waiting.js";

export interface AgentOptions {
  /** The model of nodes that name none. */
  defaultModel?: string;
  /** Whether `Turn.debug` tells what each node did. */
  diagnostics?: boolean;
  /** The nodes that a turn may run; 0: as the server has it. */
  maxSteps?: number;
  /** Hears of models that are downloaded for the agent. */
  onProgress?: Progress;
  timeoutMs?: number;
  signal?: AbortSignal;
}

/** Who hears all turns of an agent. */
export interface AgentListeners extends TurnListeners {
  /** A server did not take the conversation back after a lost connection, and why: the agent began anew. */
  onForgotten?: (error: TryllError) => unknown;
}

/** What an agent needs of the client that made it. */
export interface AgentOwner {
  live(): Promise<Connection>;
  changed(agent: Agent, node: string, params: Init<NodeParams>): void;
  release(agent: Agent): void;
}

/** Made by `Client.createAgent`. */
export class Agent implements Conduct, MadeAgent {
  /** What the server calls it; another number after each loss of the connection. */
  id = 0n;
  private graph: Init<GraphDescription>;
  private home: Connection | null = null;
  private failure: TryllError | null = null;
  private current: Reply | null = null;
  private readonly unasked = new Set<Reply>();
  /** Messages begin one after the other. */
  private queue: Promise<void> = Promise.resolve();
  private readonly memory = new Memory();
  private looking = false;
  private destroyed = false;
  private heard: AgentListeners = {};

  constructor(
    private readonly owner: AgentOwner,
    private readonly request: Init<CreateAgentRequest>,
  ) {
    this.graph = request.graph ?? {};
  }

  // Turns.

  /**
   * Send a message. Its turn begins when the one before it is over, and its frames go to the callbacks and the reply.
   *
   * What fails is told by the reply: see `Reply.result`.
   */
  send(text: string, options: SendOptions = {}): Reply {
    const reply = new Reply(text, this, options);
    this.queue = this.queue.then(() => this.begin(reply, options.timeoutMs ?? TURN_MS));
    return reply;
  }

  /** Send a message, and wait for the end of its turn. Throws as `Reply.result`. */
  ask(text: string, options: SendOptions = {}): Promise<Turn> {
    return this.send(text, options).result();
  }

  /**
   * Stop the turn that is running, if one is: it ends as cancelled.
   *
   * @throws TryllError 5002, the server cannot do that.
   */
  async cancel(options: RequestOptions = {}): Promise<void> {
    if (this.home === null || (this.current === null && !this.unasked.size)) return;
    this.home.need("cancel", "stop a turn");
    await this.home.request({ type: "CancelTurnRequest", agent_id: this.id }, "Ack", REQUEST_MS, options);
  }

  // Between turns.

  /**
   * Give a node other parameters: all of them, of the same kind.
   *
   * @throws TryllError 3004 to 3011, it cannot be done.
   */
  async change(node: string, params: Init<NodeParams>, options: RequestOptions = {}): Promise<void> {
    const link = await this.live();
    const request = { type: "ChangeAgentParamRequest", agent_id: this.id, node_name: node, params } as const;
    await link.request(request, "Ack", REQUEST_MS, options);
    this.owner.changed(this, node, params);
    const nodes = (this.graph.nodes ?? []).map((each) => (each.name === node ? { ...each, params } : each));
    this.graph = { ...this.graph, nodes };
  }

  /** Give a node other values for some parameters. Throws as `change`; 3005 also without asking. */
  async changeSome(node: string, changes: Record<string, unknown>, options: RequestOptions = {}): Promise<void> {
    const params = (this.graph.nodes ?? []).find((each) => each.name === node)?.params;
    if (!params) throw new TryllError(3005, `The graph has no node \`${node}\`.`);
    await this.change(node, { ...params, ...changes } as Init<NodeParams>, options);
  }

  /**
   * The conversation so far.
   *
   * @throws TryllError 5002, the server cannot tell.
   */
  async history(options: RequestOptions = {}): Promise<HistoryEntry[]> {
    const link = await this.live();
    link.need("history", "give a conversation");
    return this.asked(link, options);
  }

  /**
   * Go on from another conversation.
   *
   * @throws TryllError 5002, the server cannot take one.
   */
  async restore(entries: readonly HistoryEntry[], options: RequestOptions = {}): Promise<void> {
    const link = await this.live();
    link.need("history", "take a conversation");
    const whole = joined(entries);
    await this.give(link, whole, options);
    this.memory.begin(whole);
  }

  /** End it, and a turn of it. From now on no listener hears anything. */
  async destroy(options: RequestOptions = {}): Promise<void> {
    if (this.destroyed) return;
    this.destroyed = true;
    this.heard = {};
    this.owner.release(this);
    const link = this.home;
    if (link === null || link.lost !== null) return;
    try {
      await link.request({ type: "DestroyAgentRequest", agent_id: this.id }, "Ack", REQUEST_MS, options);
    } catch (error) {
      // With its connection it is gone, too.
      if (link.lost === null) throw error;
    }
  }

  /**
   * Hear every turn, also those that the server begins because somebody has spoken; in place of what was set before.
   */
  listen(listeners: AgentListeners): void {
    this.heard = listeners;
  }

  // For its replies.

  get listeners(): TurnListeners {
    return this.heard;
  }

  giveUp(reply: Reply): void {
    if (reply === this.current || this.unasked.has(reply)) this.stop();
  }

  ended(reply: Reply): void {
    if (this.current !== reply) return;
    this.current = null;
    this.home?.replies.forget(this.id, reply);
    this.remember(reply);
  }

  private async begin(reply: Reply, timeoutMs: number): Promise<void> {
    try {
      await this.free(timeoutMs);
      if (reply.leftFor !== null) throw reply.leftFor;
      const link = await this.live();
      if (reply.leftFor !== null) throw reply.leftFor;
      this.current = reply;
      link.beginTurn(this.id, reply);
    } catch (error) {
      reply.lose(error);
    }
  }

  private async free(timeoutMs: number): Promise<void> {
    const late = AbortSignal.timeout(timed(timeoutMs));
    try {
      for (let going = this.going; going.length; going = this.going) {
        await unlessAborted(Promise.all(going.map((each) => each.whenOver())), late);
      }
    } catch {
      throw new TryllError(3004, `The turn before did not end within ${timeoutMs / 1000} s.`);
    }
  }

  private get going(): Reply[] {
    return this.current === null ? [...this.unasked] : [this.current, ...this.unasked];
  }

  /** The server begins a turn: ours wait for its end. */
  expect(reply: Reply): void {
    this.unasked.add(reply);
  }

  /** It is over. */
  heardOut(reply: Reply): void {
    this.unasked.delete(reply);
    this.remember(reply);
  }

  private stop(): void {
    if (this.home?.extensions.includes("cancel")) this.home.write({ type: "CancelTurnRequest", agent_id: this.id });
  }

  // For the client.

  async create(link: Connection, timeoutMs: number, options: RequestOptions = {}): Promise<void> {
    const [made] = await link.request(this.request, "CreateAgentResponse", timeoutMs, options);
    if (this.destroyed) {
      link.write({ type: "DestroyAgentRequest", agent_id: made!.agent_id });
      return;
    }
    this.id = made!.agent_id;
    this.home = link;
    this.failure = null;
    const entries = this.memory.entries;
    if (!entries.length) return;
    try {
      link.need("history", "take a conversation");
      await this.give(link, entries, {});
    } catch (error) {
      if (!(error instanceof TryllError) || link.lost !== null || PASSING.includes(error.code)) throw error;
      this.memory.begin([]);
      call(this.heard.onForgotten, error);
    }
  }

  async changeAgain(link: Connection, node: string, params: Init<NodeParams>): Promise<void> {
    if (this.home !== link) return;
    const request = { type: "ChangeAgentParamRequest", agent_id: this.id, node_name: node, params } as const;
    await link.request(request, "Ack", REQUEST_MS);
  }

  fail(error: TryllError): void {
    this.failure = error;
    if (this.home?.lost === null) this.home.write({ type: "DestroyAgentRequest", agent_id: this.id });
    this.home = null;
  }

  /**
   * Its number on a connection.
   *
   * @throws TryllError it could not be made there.
   */
  at(link: Connection): bigint {
    if (this.home !== link) throw again(this.failure ?? new TryllError(1002));
    return this.id;
  }

  private async live(): Promise<Connection> {
    if (this.destroyed) throw new TryllError(3002);
    const link = await this.owner.live();
    this.at(link);
    return link;
  }

  // What was said.

  private remember(reply: Reply): void {
    this.memory.add(reply.message, reply.text);
    const link = this.home;
    // Of a turn that was stopped or failed the server may have less than was read: only what was said aloud.
    if (reply.status === null || reply.status === TurnStatus.Success || this.looking || this.destroyed) return;
    if (link?.lost === null && link.extensions.includes("history")) void this.look(link);
  }

  private async look(link: Connection): Promise<void> {
    this.looking = true;
    try {
      for (let version = -1; version !== this.memory.version;) {
        version = this.memory.version;
        const entries = await this.asked(link, {});
        if (version === this.memory.version) (this.memory.begin(entries), (version = this.memory.version));
      }
    } catch (error) {
      // Then it is remembered as it was read.
      if (!(error instanceof TryllError)) throw error;
    } finally {
      this.looking = false;
    }
  }

  private async asked(link: Connection, options: RequestOptions): Promise<HistoryEntry[]> {
    const request = { type: "SaveHistoryRequest", agent_id: this.id } as const;
    const parts = await link.request(request, "SaveHistoryResponse", REQUEST_MS, options);
    return joined(parts.flatMap((part) => [...part.entries]));
  }

  private async give(link: Connection, entries: readonly HistoryEntry[], options: RequestOptions): Promise<void> {
    let append = false;
    for (const part of inParts(entries)) {
      const request = { type: "RestoreHistoryRequest", agent_id: this.id, entries: part, append } as const;
      await link.request(request, "Ack", REQUEST_MS, options);
      append = true;
    }
  }
}
