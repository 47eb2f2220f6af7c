/**
 * The client's end of the Tryll wire.
 *
 *     const client = await Client.connect("ws://127.0.0.1:9101");
 *     const agent = await client.createAgent(graph, { defaultModel: "smollm2-135m" });
 *     const turn = await agent.ask("Hello", { onText: (piece) => show(piece) });
 *
 * - Several things may be asked at once; the turns of one agent come one after the other.
 * - What the server refuses throws `TryllError` with its number and its sentence. A turn that fails throws
 *   `TurnFailed`.
 * - Every wait has a limit. All of them are limits of silence: as long as the server shows progress, it is waited for.
 * - When the connection is lost, whatever waits hears 1002 and is not sent again: it may have been done. What is asked
 *   next waits for another connection, which has the session again, with its conversations if the server takes them.
 */

import { Agent, type AgentOptions } from "./agent.js";
import type { Init } from "./codec/init.js";
import { Connection, type Progress, type RequestOptions } from "./connection.js";
import { FINAL, PASSING, TryllError } from "./errors.js";
import { call } from "./events.js";
import { PROTOCOL_VERSION } from "./generated/errors.js";
import {
  ModelStatus,
  StringStorageKind,
  type CreateEmbeddedStringStorageRequest,
  type CreateEmbeddedStringStorageResponse,
  type CreateStringStorageRequest,
  type GraphDescription,
  type HealthResponse,
  type MessageBody,
  type ModelInfo,
  type NodeParams,
} from "./generated/messages.js";
import { answerTo, MODEL_MS, REQUEST_MS, SessionReplay, type Config } from "./replay.js";
import { webSocket, type Dial } from "./transport.js";
import { VoiceInput, type VoiceOptions } from "./voice.js";
import { again, pause } from "./waiting.js";

export const CONNECT_MS = 30_000;
/** How often it is looked whether a download that somebody else began is done. */
const LOOK_MS = 1000;

/** How hard a lost connection is tried to be made again. */
export interface Reconnect {
  attempts?: number;
  /** The pause before the second attempt; each later one is twice as long. */
  firstMs?: number;
  longestMs?: number;
}

/** The engines, and so on: the fields of `ConfigureSessionRequest`. All engines are Mock unless given. */
export type SessionConfig = Omit<Config, "type" | "request_id" | "protocol_version">;

export interface ClientOptions {
  config?: SessionConfig;
  /** false: a lost connection stays lost. */
  reconnect?: Reconnect | false;
  /** How long the server may take to begin a session. */
  connectMs?: number;
  /** Ends the client, as `close` does. */
  signal?: AbortSignal;
  /** A session is there, configured, with its agents. `again`: in place of a lost one. */
  onConnected?: (again: boolean) => unknown;
  /**
   * The connection is lost. Another one is tried from now on, in the background, unless it is lost `finally`. That is
   * also told when it was given up; whoever asks for something then tries anew, unless that is in vain.
   */
  onLost?: (error: TryllError, finally_: boolean) => unknown;
}

export type StorageOptions = RequestOptions &
  Partial<Pick<Init<CreateStringStorageRequest>, "file_path" | "kind" | "keys">>;
/** A storage that is to be made. */
export type StorageRequest = Init<CreateStringStorageRequest> | Init<CreateEmbeddedStringStorageRequest>;
export type EmbeddedOptions = RequestOptions & {
  [
    Field in Exclude<keyof CreateEmbeddedStringStorageRequest, "type" | "request_id" | "name" | "strings">
  ]?: CreateEmbeddedStringStorageRequest[Field];
};

/** A session on a server. */
export class Client {
  private readonly ledger: SessionReplay;
  private number = 0n;
  private link: Connection | null = null;
  /** The one that is being configured: nobody else has it yet. */
  private coming: Connection | null = null;
  private connecting: Promise<Connection> | null = null;
  private readonly closing = new AbortController();
  private final: TryllError | null = null;

  /** Nothing is connected yet. */
  constructor(
    private readonly dial: Dial,
    private readonly options: ClientOptions = {},
  ) {
    this.ledger = new SessionReplay(versioned(options.config ?? {}));
    if (options.signal?.aborted) this.close();
    options.signal?.addEventListener("abort", () => this.close(), { once: true, signal: this.closing.signal });
  }

  /**
   * Connect to a server's WebSocket and configure the session. `trunkline-tryll/node` has one for TCP.
   *
   * @throws TryllError 1001, 1003, there is no server; 5004, it speaks another version; or what it says.
   */
  static async connect(url: string, options: ClientOptions = {}): Promise<Client> {
    return new Client(webSocket(url), options).connect();
  }

  // The session.

  /** Connect and configure, once. Later calls see to it that the connection is there. */
  async connect(): Promise<this> {
    await this.live();
    return this;
  }

  /** End the session: the server lets go of all that it had. All who wait hear 1002. */
  close(): void {
    this.final = new TryllError(1002, "This client is closed.");
    this.closing.abort(this.final);
    this.coming?.close();
    this.link?.close();
  }

  get connected(): boolean {
    return this.link !== null && this.link.lost === null;
  }

  /** What the server calls the session; 0 without a connection. */
  get sessionId(): bigint {
    return this.connected ? this.link!.ready!.session_id : 0n;
  }

  /** What the server can do beyond the documented protocol. */
  get extensions(): readonly string[] {
    return this.link?.extensions ?? [];
  }

  /** Configure anew: holds for agents and storages that are made from now on. */
  async configure(config: SessionConfig, options: RequestOptions = {}): Promise<void> {
    const request = versioned(config);
    await this.one(request, "ConfigureSessionResponse", REQUEST_MS, options);
    this.ledger.configured(request);
  }

  /**
   * How the server is.
   *
   * @throws TryllError 5002, it cannot say.
   */
  async health(options: RequestOptions = {}): Promise<HealthResponse> {
    (await this.live()).need("health", "say how it is");
    return this.one({ type: "HealthRequest" }, "HealthResponse", REQUEST_MS, options);
  }

  // Agents and ears.

  /**
   * Make an agent of a graph.
   *
   * @throws TryllError 3003, 3007 to 3011, the graph cannot work; 6xxx, a model cannot be had.
   */
  async createAgent(graph: Init<GraphDescription>, options: AgentOptions = {}): Promise<Agent> {
    const link = await this.live();
    const agent = new Agent(this, {
      type: "CreateAgentRequest",
      graph,
      default_model_name: options.defaultModel ?? "",
      enable_diagnostics: options.diagnostics ?? false,
      max_steps_per_turn: options.maxSteps ?? 0,
    });
    await agent.create(link, this.ledger.makingMs, options);
    this.ledger.created(agent);
    return agent;
  }

  /**
   * Make a voice input: a model that hears what one microphone sends.
   *
   * @throws TryllError 3009, 3010, the hotwords; 4100, the model; 4101, the format.
   */
  async createVoiceInput(model = "", options: VoiceOptions = {}): Promise<VoiceInput> {
    const link = await this.live();
    const voice = new VoiceInput(this, {
      type: "CreateVoiceInputRequest",
      model_name: model,
      sample_rate: options.sampleRate,
      channels: options.channels,
      vad_threshold: options.vadThreshold,
      vad_min_silence_ms: options.vadMinSilenceMs,
      vad_speech_pad_ms: options.vadSpeechPadMs,
      hotwords_storage_path: options.hotwordsStoragePath,
      hotwords_score: options.hotwordsScore,
    });
    await voice.create(link, MODEL_MS, options);
    this.ledger.created(voice);
    return voice;
  }

  // Storages.

  /**
   * Name some strings: a list, an object of keys and texts, or a file on the server (`file_path`).
   *
   * @throws TryllError 7xxx, or 3009 and 3010 for a file.
   */
  async createStorage(
    name: string,
    strings: readonly string[] | Readonly<Record<string, string>> = [],
    { file_path = "", kind, keys = [], ...options }: StorageOptions = {},
  ): Promise<void> {
    const mapped = Array.isArray(strings) ? null : Object.entries(strings as Record<string, string>);
    const allKeys = mapped?.map(([key]) => key) ?? keys;
    const request = {
      type: "CreateStringStorageRequest",
      name,
      strings: mapped?.map(([, text]) => text) ?? (strings as readonly string[]),
      file_path,
      kind: kind ?? kindOfFile(file_path) ?? (allKeys.length ? StringStorageKind.Map : StringStorageKind.List),
      keys: allKeys,
    } as const;
    await this.one(request, "CreateStringStorageResponse", REQUEST_MS, options);
    this.ledger.stored(`string ${name}`, request);
  }

  /** Forget some strings. */
  async destroyStorage(name: string, options: RequestOptions = {}): Promise<void> {
    const request = { type: "DestroyStringStorageRequest", name } as const;
    await this.one(request, "Ack", REQUEST_MS, options);
    this.ledger.dropped(`string ${name}`, request);
  }

  /**
   * Name some strings that are found by their meaning: given here, as records with fields (`records_json`), or by a
   * file on the server (`config_path`).
   *
   * @throws TryllError 8xxx, 6xxx, or 3009 and 3010 for a file; 5002, the server takes no records, or keeps no memories.
   */
  async createEmbeddedStorage(
    name: string,
    strings: readonly string[] = [],
    { timeoutMs, signal, onProgress, ...fields }: EmbeddedOptions = {},
  ): Promise<CreateEmbeddedStringStorageResponse> {
    const request = { type: "CreateEmbeddedStringStorageRequest", name, strings, ...fields } as const;
    const options = given({ timeoutMs, signal, onProgress });
    const made = await this.one(request, "CreateEmbeddedStringStorageResponse", MODEL_MS, options);
    this.ledger.stored(`embedded ${name}`, request);
    return made;
  }

  /** Forget them. */
  async destroyEmbeddedStorage(name: string, options: RequestOptions = {}): Promise<void> {
    const request = { type: "DestroyEmbeddedStringStorageRequest", name } as const;
    await this.one(request, "Ack", REQUEST_MS, options);
    this.ledger.dropped(`embedded ${name}`, request);
  }

  /**
   * Make the storages that a graph brings along, as `trunkline graph export` writes them, one after the other.
   *
   * @throws TryllError as `createStorage` and `createEmbeddedStorage`.
   */
  async bring(storages: readonly StorageRequest[], options: RequestOptions = {}): Promise<void> {
    for (const request of storages) {
      const kind = request.type === "CreateStringStorageRequest" ? "string" : "embedded";
      await this.one(request, answerTo(request), MODEL_MS, options);
      this.ledger.stored(`${kind} ${request.name ?? ""}`, request);
    }
  }

  // Models.

  /** The catalog. */
  async listModels(options: RequestOptions = {}): Promise<ModelInfo[]> {
    const parts = await (
      await this.live()
    ).request({ type: "ListModelsRequest" }, "ListModelsResponse", REQUEST_MS, options);
    return parts.flatMap((part) => [...part.models]);
  }

  /**
   * Let the server fetch a model.
   *
   * @throws TryllError 6001 to 6004.
   */
  async downloadModel(name: string, options: RequestOptions = {}): Promise<void> {
    const request = { type: "DownloadModelRequest", model_name: name } as const;
    const done = await this.one(request, "DownloadComplete", MODEL_MS, options);
    if (!done.success) throw new TryllError(6001, done.error_message);
  }

  /** Let the server load a model, and keep it loaded. */
  async loadModel(name: string, options: RequestOptions = {}): Promise<void> {
    await this.one({ type: "LoadModelRequest", model_name: name }, "LoadModelResponse", MODEL_MS, options);
  }

  /** Keep a model loaded no longer. */
  async unloadModel(name: string, options: RequestOptions = {}): Promise<void> {
    await this.one({ type: "UnloadModelRequest", model_name: name }, "Ack", REQUEST_MS, options);
  }

  /** Remove what a download has brought. */
  async deleteModel(name: string, options: RequestOptions = {}): Promise<void> {
    await this.one({ type: "DeleteModelRequest", model_name: name }, "Ack", REQUEST_MS, options);
  }

  /**
   * See to it that a model is there, and loaded: fetch it, or wait while another client does.
   *
   * @throws TryllError 6xxx, it cannot be had.
   */
  async ensureModel(name: string, options: RequestOptions & { load?: boolean } = {}): Promise<ModelInfo> {
    let model = await this.model(name, options);
    while (model.status === ModelStatus.Absent || model.status === ModelStatus.Downloading) {
      try {
        await this.downloadModel(name, options);
      } catch (error) {
        if (!(error instanceof TryllError) || error.code !== 6004) throw error;
        // That client's progress is told to it alone.
        await pause(LOOK_MS, options.signal);
        model = await this.model(name, options);
        continue;
      }
      model = await this.model(name, options);
      break;
    }
    if ((options.load ?? true) && model.status !== ModelStatus.Loaded) {
      await this.loadModel(name, options);
      model = await this.model(name, options);
    }
    return model;
  }

  private async model(name: string, options: RequestOptions): Promise<ModelInfo> {
    const found = (await this.listModels(options)).find((model) => model.name === name);
    if (found === undefined) throw new TryllError(6002, `The server has no model \`${name}\`.`);
    return found;
  }

  // For its agents.

  /**
   * The connection; a new one, where everything is there again, if it was lost.
   *
   * @throws TryllError as `connect`.
   */
  async live(): Promise<Connection> {
    if (this.link !== null && this.link.lost === null) return this.link;
    this.connecting ??= this.opened().finally(() => (this.connecting = null));
    return this.connecting;
  }

  changed(agent: Agent, node: string, params: Init<NodeParams>): void {
    this.ledger.changed(agent, node, params);
  }

  release(made: Agent | VoiceInput): void {
    this.ledger.released(made);
  }

  private async opened(): Promise<Connection> {
    const lost = this.link?.lost ?? null;
    this.judge(lost);
    if (this.final !== null) throw again(this.final);
    if (lost !== null && this.options.reconnect === false) throw again(lost);
    const { attempts = 6, firstMs = 100, longestMs = 5000 } = this.options.reconnect || {};
    for (let attempt = 1, wait = firstMs; ; attempt++, wait = Math.min(2 * wait, longestMs)) {
      try {
        return await this.open();
      } catch (error) {
        if (this.final !== null) throw again(this.final);
        const passing = error instanceof TryllError && PASSING.includes(error.code);
        if (lost === null || !passing || attempt >= attempts) throw error;
      }
      await pause(wait, this.closing.signal);
    }
  }

  /** A connection, configured, with the session's storages and agents. */
  private async open(): Promise<Connection> {
    const ms = this.options.connectMs ?? CONNECT_MS;
    const lost = (error: TryllError): void => {
      if (this.link === link && link !== null) this.lost(error);
    };
    let link: Connection | null = null;
    try {
      link = await Connection.open(this.dial, () => ++this.number, ms, lost, this.closing.signal);
      this.coming = link;
      await this.ledger.replay(link);
      // Together with the last answer, or since: whoever is told of a session is to be told of its end, too.
      if (link.lost !== null) throw again(link.lost);
      const before = this.link !== null;
      this.link = link;
      call(this.options.onConnected, before);
      return link;
    } catch (error) {
      this.judge(link?.lost ?? (error instanceof TryllError ? error : null));
      link?.close();
      throw error;
    } finally {
      this.coming = null;
    }
  }

  /** The session is gone: a new one is tried in the background. Whoever asks for something waits for that, too. */
  private lost(error: TryllError): void {
    this.judge(error);
    const over = this.final !== null || this.options.reconnect === false;
    this.tellLost(error, over);
    if (!over) this.live().catch((why: TryllError) => this.tellLost(why, true));
  }

  /** Whoever has closed the client has lost nothing. */
  private tellLost(error: TryllError, over: boolean): void {
    if (!this.closing.signal.aborted) call((tell) => tell?.(error, over), this.options.onLost);
  }

  /** After some errors there is no new connection. What we could not send ourselves, which is 5003 too, ends none. */
  private judge(error: TryllError | null): void {
    if (error !== null && this.final === null && FINAL.includes(error.code)) this.final = error;
  }

  private async one<Name extends MessageBody["type"]>(
    message: Init<MessageBody>,
    expected: Name,
    timeoutMs: number,
    options: RequestOptions,
  ): Promise<Extract<MessageBody, { type: Name }>> {
    const parts = await (await this.live()).request(message, expected, timeoutMs, options);
    return parts.at(-1)!;
  }
}

/** The configuration, for the protocol that we speak. */
function versioned(config: SessionConfig): Config {
  return { type: "ConfigureSessionRequest", ...config, protocol_version: PROTOCOL_VERSION };
}

/** The kind that a file's name tells, where nobody says another; undefined if it tells none. */
function kindOfFile(path: string): number | undefined {
  const name = path.toLowerCase();
  if (name.endsWith(".mm.json")) return StringStorageKind.Multimap;
  if (name.endsWith(".json")) return StringStorageKind.Map;
  return name.endsWith(".txt") ? StringStorageKind.List : undefined;
}

function given(options: {
  timeoutMs: number | undefined;
  signal: AbortSignal | undefined;
  onProgress: Progress | undefined;
}): RequestOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
