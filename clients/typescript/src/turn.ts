/** One turn as whoever drives an agent sees it: callbacks and an iterator while it lasts, a result when it is over. */

import { TryllError, TurnFailed } from "./errors.js";
import { call, jsonObject, told, type IntentClassified, type Told, type ToolCall } from "./events.js";
import {
  TtsMarkKind,
  TurnStatus,
  type AnswerText,
  type NodeEvent,
  type TtsAudioFormatFrame,
  type TtsAudioFrame,
  type TtsTimingFrame,
  type TurnComplete,
} from "./generated/messages.js";
import { again, Silence } from "./waiting.js";

/** The longest answer that is kept, in characters. No model says so much; a server that does is broken. */
export const MAX_ANSWER = 16 * 1024 * 1024;
/** The most events of one turn. */
export const MAX_EVENTS = 10_000;
/** The most sound of one turn, in samples: more than twenty minutes of a usual voice. */
export const MAX_SAMPLES = 32 * 1024 * 1024;
/** The most marks in the sound of one turn: some thirty for each second of `MAX_SAMPLES`. */
export const MAX_MARKS = 50_000;
/** How long a server may be silent in a turn: a small machine reads a long prompt. */
export const TURN_MS = 120_000;

/** A piece of the answer. One that `replaces` takes the place of all that came before it. */
export interface TextPiece {
  readonly kind: "text";
  readonly text: string;
  readonly replaces: boolean;
}

/** Some of the answer, aloud: samples of all channels in turns. */
export interface Sound {
  readonly kind: "sound";
  readonly pcm: Int16Array;
  readonly sampleRate: number;
  readonly channels: number;
}

/** A word, or what the mouth shows (`viseme`), from one time to another. Times count from the turn's first sample. */
export interface Mark {
  readonly kind: "word" | "viseme";
  readonly text: string;
  readonly startMs: number;
  readonly endMs: number;
}

/** When what is spoken. Comes before the sound that it is about, if the node has `timings`. */
export interface Timing {
  readonly kind: "timing";
  readonly marks: readonly Mark[];
}

/** What a turn consists of, in the order in which it came. */
export type TurnEvent = TextPiece | Sound | Timing | Told;

/** How a turn went. */
export interface Turn {
  readonly text: string;
  readonly status: TurnStatus;
  readonly cancelled: boolean;
  readonly tokensGenerated: number;
  readonly tokensPrompt: number;
  readonly tokensCached: number;
  /** Tools, intents and other events, in their order. */
  readonly events: readonly Told[];
  /** All that was spoken; null if nothing was. */
  readonly sound: Sound | null;
  /** The diagnostics; empty unless the agent was made to give some. */
  readonly debug: Readonly<Record<string, unknown>>;
  readonly debugInfo: string;
  /** From the request to the first piece of text, and of sound; null if there was none. */
  readonly firstTextMs: number | null;
  readonly firstSoundMs: number | null;
}

/** Who hears what, as it comes. They are called in between frames, and must not wait for anything. */
export interface TurnListeners {
  /** A piece of the answer, and all of it so far. */
  onText?: (piece: string, whole: string) => unknown;
  onToolCall?: (call: ToolCall) => unknown;
  onIntent?: (intent: IntentClassified) => unknown;
  /** An event of any other type. */
  onEvent?: (event: Told) => unknown;
  onSound?: (sound: Sound) => unknown;
  onTiming?: (timing: Timing) => unknown;
  /** The end, however it came: the turn, or the error of one that nobody knows the end of. The last of all calls. */
  onDone?: (turn: Turn | null, error: unknown) => unknown;
}

export interface SendOptions extends TurnListeners {
  /** Ends the turn: the server is told to stop, and whoever waits hears the signal's reason. */
  signal?: AbortSignal;
  /** The longest silence, in milliseconds. */
  timeoutMs?: number;
}

export type TurnFrame = AnswerText | NodeEvent | TtsAudioFormatFrame | TtsTimingFrame | TtsAudioFrame | TurnComplete;

/** What a reply needs of the agent that it is a reply of. */
export interface Conduct {
  /** Who hears all turns of the agent. */
  readonly listeners: TurnListeners;
  /** Nobody reads on: let the server stop, if it can. */
  giveUp(reply: Reply): void;
  /** No more frames come: the next turn may begin. */
  ended(reply: Reply): void;
}

/**
 * The answer to one message. It goes on whether somebody reads it or not.
 *
 *     for await (const piece of reply) process.stdout.write(piece);
 *     console.log((await reply.result()).tokensGenerated);
 */
export class Reply implements AsyncIterable<string> {
  requestId = 0n;
  private readonly told: TurnEvent[] = [];
  private readonly waiting = new Set<() => void>();
  private whole = "";
  private events = 0;
  private samples = 0;
  private timed = 0;
  private form: TtsAudioFormatFrame | null = null;
  private readonly began: number;
  private firstText: number | null = null;
  private firstSound: number | null = null;
  private turn: Turn | null = null;
  private error: unknown = null;
  /** What the reader hears before the turn is over: the signal's reason, a silence, an answer that is too long. */
  private left: unknown = null;
  private silence: Silence | null = null;
  private readonly abort = (): void => this.leave(this.options.signal!.reason);

  constructor(
    readonly message: string,
    private readonly conduct: Conduct,
    private readonly options: SendOptions = {},
  ) {
    this.began = performance.now();
    if (options.signal?.aborted) this.left = options.signal.reason;
    else options.signal?.addEventListener("abort", this.abort, { once: true });
  }

  /** Why nobody reads on; null while somebody may. */
  get leftFor(): unknown {
    return this.left;
  }

  /** The answer, as far as it has come. */
  get text(): string {
    return this.whole;
  }

  /** Whether no more frames come. */
  get over(): boolean {
    return this.turn !== null || this.error !== null;
  }

  /** How the turn has ended; null if it has not, or nobody knows. */
  get status(): TurnStatus | null {
    return this.turn?.status ?? null;
  }

  /**
   * Wait for the end.
   *
   * @throws TurnFailed the turn failed.
   * @throws TryllError 1002, the connection was lost (the message is not sent again); 1003, the server was silent; or
   *     what it said.
   */
  async result(): Promise<Turn> {
    for (;;) {
      if (this.left !== null) throw this.left;
      if (this.error !== null) throw this.error;
      if (this.turn !== null) {
        if (this.turn.status === TurnStatus.Error) throw new TurnFailed(this.turn);
        return this.turn;
      }
      await this.news();
    }
  }

  /** The pieces of the answer. Throws as `result`. */
  async *[Symbol.asyncIterator](): AsyncIterator<string> {
    for await (const event of this.everything()) {
      if (event.kind === "text") yield event.text;
    }
  }

  /** Text, tools, intents and sound, from the beginning of the turn. Throws as `result`. */
  async *everything(): AsyncGenerator<TurnEvent> {
    for (let at = 0; ; at++) {
      while (at >= this.told.length) {
        if (this.over || this.left !== null) {
          await this.result();
          return;
        }
        await this.news();
      }
      yield this.told[at]!;
    }
  }

  /** Stop the turn. What was said until then is the result, whose `cancelled` is true. */
  stop(): void {
    if (!this.over) this.conduct.giveUp(this);
  }

  /** Wait until no more frames come, however it ends. */
  async whenOver(): Promise<void> {
    while (!this.over) await this.news();
  }

  private news(): Promise<void> {
    return new Promise((done) => this.waiting.add(done));
  }

  private tell(): void {
    for (const done of this.waiting) done();
    this.waiting.clear();
  }

  /** Read no further. The agent is busy until the server has stopped. */
  private leave(reason: unknown): void {
    if (this.over || this.left !== null) return;
    this.left = reason ?? new TryllError(1003);
    this.conduct.giveUp(this);
    this.tell();
  }

  /** The message is on its way. */
  sent(requestId: bigint): void {
    const ms = this.options.timeoutMs ?? TURN_MS;
    this.requestId = requestId;
    this.silence = new Silence(ms, () =>
      this.leave(new TryllError(1003, `The server was silent for ${ms / 1000} s in the middle of a turn.`)),
    );
  }

  /** Take a frame of the turn. */
  feed(message: TurnFrame): void {
    if (this.over) return;
    this.silence?.heard();
    if (message.type === "TurnComplete") this.complete(message);
    else if (this.left !== null) return;
    else if (message.type === "AnswerText") this.add(message);
    else if (message.type === "NodeEvent") this.event(told(message));
    else if (message.type === "TtsAudioFormatFrame") this.form = message;
    else if (message.type === "TtsTimingFrame") this.time(message);
    else this.hear(message.pcm);
    if (
      this.whole.length > MAX_ANSWER ||
      this.events > MAX_EVENTS ||
      this.timed > MAX_MARKS ||
      this.samples > MAX_SAMPLES
    ) {
      this.told.length = 0;
      this.leave(new TryllError(4001, "The answer is too long to be kept."));
    }
  }

  /** No more frames come, and it was not the end. */
  lose(error: unknown): void {
    if (this.over) return;
    this.error = error instanceof TryllError ? again(error) : error;
    this.end();
  }

  private end(): void {
    this.silence?.end();
    this.options.signal?.removeEventListener("abort", this.abort);
    this.tell();
    this.conduct.ended(this);
    this.each(({ onDone }) => onDone?.(this.turn, this.error));
  }

  /** Let those of this turn hear something, and then those of all turns. */
  private each(tell: (listeners: TurnListeners) => unknown): void {
    call(tell, this.options);
    call(tell, this.conduct.listeners);
  }

  private push(event: TurnEvent): void {
    this.told.push(event);
    this.tell();
  }

  private add({ text, is_delta: isDelta }: AnswerText): void {
    const replaces = !isDelta && !text.startsWith(this.whole);
    const piece = isDelta || replaces ? text : text.slice(this.whole.length);
    if (!piece && !replaces) return;
    this.firstText ??= performance.now() - this.began;
    this.whole = replaces ? piece : this.whole + piece;
    this.push({ kind: "text", text: piece, replaces });
    this.each(({ onText }) => onText?.(piece, this.whole));
  }

  private event(event: Told): void {
    this.events++;
    this.push(event);
    this.each((listeners) => {
      if (event.kind === "tool_call") listeners.onToolCall?.(event);
      else if (event.kind === "intent") listeners.onIntent?.(event);
      else listeners.onEvent?.(event);
    });
  }

  private hear(pcm: Int16Array): void {
    // Without a format it is no sound.
    if (!pcm.length || !this.form?.sample_rate || !this.form.channels) return;
    this.firstSound ??= performance.now() - this.began;
    this.samples += pcm.length;
    const sound: Sound = { kind: "sound", pcm, sampleRate: this.form.sample_rate, channels: this.form.channels };
    this.push(sound);
    this.each(({ onSound }) => onSound?.(sound));
  }

  private time({ marks }: TtsTimingFrame): void {
    this.timed += marks.length;
    const timing: Timing = {
      kind: "timing",
      marks: marks.map(({ kind, text, start_ms: startMs, end_ms: endMs }) => ({
        kind: kind === TtsMarkKind.Viseme ? "viseme" : "word",
        text,
        startMs,
        endMs,
      })),
    };
    this.push(timing);
    this.each(({ onTiming }) => onTiming?.(timing));
  }

  private complete(message: TurnComplete): void {
    this.turn = {
      text: this.whole,
      status: message.status,
      cancelled: message.status === TurnStatus.Cancelled,
      tokensGenerated: message.tokens_generated,
      tokensPrompt: message.tokens_prompt,
      tokensCached: message.tokens_cached,
      events: this.told.filter((event): event is Told => !["text", "sound", "timing"].includes(event.kind)),
      sound: this.sound(),
      debug: jsonObject(message.debug_info) ?? {},
      debugInfo: message.debug_info,
      firstTextMs: this.firstText,
      firstSoundMs: this.firstSound,
    };
    this.end();
  }

  private sound(): Sound | null {
    const pieces = this.told.filter((event): event is Sound => event.kind === "sound");
    if (!pieces.length || this.form === null) return null;
    const pcm = new Int16Array(this.samples);
    let at = 0;
    for (const piece of pieces) {
      pcm.set(piece.pcm, at);
      at += piece.pcm.length;
    }
    return { kind: "sound", pcm, sampleRate: this.form.sample_rate, channels: this.form.channels };
  }
}
