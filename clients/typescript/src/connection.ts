/**
 * One connection to a server: messages out, answers back to whoever asked.
 *
 * Answers find their request by its id, the frames of a turn their reply by the agent. Frames that nobody waits for are
 * normal: of kinds that a newer server knows, late, or about a turn that the server began by itself.
 */

import { FrameError, Unsendable } from "./codec/errors.js";
import { decode, encode } from "./codec/frames.js";
import type { Init } from "./codec/init.js";
import { TryllError } from "./errors.js";
import { call } from "./events.js";
import { PROTOCOL_VERSION } from "./generated/errors.js";
import type {
  DownloadProgress,
  ErrorResponse,
  MessageBody,
  SessionReady,
  WireTranscriptUpdate,
} from "./generated/messages.js";
import { unknownField } from "./needs.js";
import { PendingReplies } from "./pending.js";
import type { Dial, Receiver, Transport } from "./transport.js";
import type { Reply, TurnFrame } from "./turn.js";
import { again, Deferred, Silence, timed, unlessAborted } from "./waiting.js";

/** Frames that one answer may be split into. A catalog or a conversation of so many MiB is none. */
const MAX_PARTS = 64;
const OTHER_VERSION = 5004;

/** How far the server is with fetching a model, or with embedding. */
export type Progress = (progress: DownloadProgress) => unknown;

export interface RequestOptions {
  /** The longest silence, in milliseconds: progress begins it anew. */
  timeoutMs?: number;
  signal?: AbortSignal;
  onProgress?: Progress;
}

/** What a connection needs of a voice input. */
export interface VoiceListener {
  feed(message: WireTranscriptUpdate): void;
  complain(error: TryllError): void;
  lose(error: TryllError): void;
}

type Body<Name extends MessageBody["type"]> = Extract<MessageBody, { type: Name }>;

interface Pending {
  readonly expected: string;
  readonly parts: MessageBody[];
  readonly answered: Deferred<MessageBody[]>;
  readonly heard: (progress: DownloadProgress) => void;
  readonly then: (() => void) | undefined;
}

/** A connection whose `SessionReady` has come. Made by `open`. */
export class Connection implements Receiver {
  ready: SessionReady | null = null;
  /** Why it is no more; null while it lives. */
  lost: TryllError | null = null;
  readonly voices = new Map<bigint, VoiceListener>();
  readonly replies = new PendingReplies();
  private transport: Transport | null = null;
  private readonly begun = new Deferred<void>();
  private readonly pending = new Map<bigint, Pending>();
  /** What the server complained of, naming no request, in its last frame. */
  private reason: TryllError | null = null;

  private constructor(
    private readonly numbers: () => bigint,
    private readonly onLost: (error: TryllError) => void,
  ) {}

  /**
   * Connect, and wait for the server's first frame.
   *
   * @throws TryllError 1001, there is no server; 1003, it says nothing; 5004, it speaks another version; or its
   * reason.
   */
  static async open(
    dial: Dial,
    numbers: () => bigint,
    timeoutMs: number,
    onLost: (error: TryllError) => void,
    signal?: AbortSignal,
  ): Promise<Connection> {
    const made = new Connection(numbers, onLost);
    const late = new AbortController();
    const silent = new TryllError(1003, `The server did not begin a session in ${timeoutMs / 1000} s.`);
    const timer = setTimeout(() => late.abort(silent), timed(timeoutMs));
    const stop = signal === undefined ? late.signal : AbortSignal.any([late.signal, signal]);
    try {
      made.transport = await unlessAborted(dial(made, stop), stop);
      // It may have been refused while it was being made.
      if (made.lost !== null) made.transport.close();
      await unlessAborted(made.begun.promise, stop);
    } catch (error) {
      made.end(error instanceof TryllError ? error : new TryllError(1002));
      throw error;
    } finally {
      clearTimeout(timer);
    }
    return made;
  }

  /** What the server can do beyond the documented protocol. */
  get extensions(): readonly string[] {
    return this.ready?.extensions ?? [];
  }

  /**
   * @throws TryllError 5002, the server cannot do that.
   */
  need(extension: string, what: string): void {
    if (!this.extensions.includes(extension)) throw new TryllError(5002, `This server cannot ${what}.`);
  }

  /**
   * Ask, and wait for the answer, which may come in several parts. The message gets its id here. `then` is done
   * before any frame behind the answer is read.
   *
   * @throws TryllError the server said no; 1002, the connection is lost; 1003, there was no answer in time; 5003 or
   *     3007, no frame can carry the message, and none was sent; 5002, the server would pass over a field of it.
   */
  async request<Name extends MessageBody["type"]>(
    message: Init<MessageBody>,
    expected: Name,
    timeoutMs: number,
    options: RequestOptions = {},
    then?: () => void,
  ): Promise<Body<Name>[]> {
    options.signal?.throwIfAborted();
    const field = unknownField(message, this.extensions);
    if (field) throw new TryllError(5002, `This server does not know \`${field}\`.`);
    const number = this.numbers();
    const payload = encoded({ ...message, request_id: number } as Init<MessageBody>);
    if (this.lost !== null) throw again(this.lost);
    const ms = options.timeoutMs ?? timeoutMs;
    const answered = new Deferred<MessageBody[]>();
    const silence = new Silence(ms, () =>
      answered.reject(new TryllError(1003, `The server did not answer a \`${message.type}\` within ${ms / 1000} s.`)),
    );
    const heard = (progress: DownloadProgress): void => {
      silence.heard();
      call(options.onProgress, progress);
    };
    this.pending.set(number, { expected, parts: [], answered, heard, then });
    try {
      this.transport!.send(payload);
      return (await unlessAborted(answered.promise, options.signal)) as Body<Name>[];
    } finally {
      silence.end();
      this.pending.delete(number);
    }
  }

  /**
   * Send a message; the frames of its turn go to the reply, which hears of the connection's loss, too.
   *
   * @throws TryllError 1002, the connection is lost; 5003, no frame can carry the message.
   */
  beginTurn(agent: bigint, reply: Reply): void {
    const number = this.numbers();
    const payload = encoded({
      type: "SendMessageRequest",
      request_id: number,
      agent_id: agent,
      text: reply.message,
    });
    if (this.lost !== null) throw again(this.lost);
    this.replies.begin(agent, reply);
    reply.sent(number);
    this.transport!.send(payload);
  }

  /** Send something whose answer nobody waits for. */
  write(message: Init<MessageBody>): void {
    if (this.lost === null)
      this.transport?.send(encoded({ ...message, request_id: this.numbers() } as Init<MessageBody>));
  }

  /**
   * Send something that is never answered, when there is room for it.
   *
   * @throws TryllError 1002, the connection is lost.
   */
  async tell(message: Init<MessageBody>): Promise<void> {
    await this.transport?.drained();
    if (this.lost !== null || this.transport === null) throw again(this.lost ?? new TryllError(1002));
    this.transport.send(encoded(message));
  }

  /** End it. All who wait hear 1002. */
  close(): void {
    this.end(new TryllError(1002, "The connection was closed."));
  }

  // What the transport tells.

  payload(payload: Uint8Array): void {
    if (this.lost !== null) return;
    let message: MessageBody;
    try {
      message = decode(payload);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      // Of a kind that a newer server knows: it is passed over.
      if (error.code !== 5002) this.end(new TryllError(error.code, `The server broke the protocol: ${error.message}.`));
      return;
    }
    this.reason = null;
    if (this.ready === null) this.first(message);
    else if (isOfTurn(message)) this.replies.of(message)?.feed(message);
    else if (message.type === "WireTranscriptUpdate") this.voices.get(message.voice_input_id)?.feed(message);
    else this.answer(message);
  }

  ended(reason: TryllError): void {
    this.end(this.reason ?? reason);
  }

  private first(message: MessageBody): void {
    if (message.type === "ErrorResponse") {
      this.end(new TryllError(message.code, message.message));
    } else if (message.type !== "SessionReady") {
      this.end(new TryllError(5001, `The server began with a \`${message.type}\`.`));
    } else if (message.protocol_version !== PROTOCOL_VERSION) {
      const told = `The server speaks version ${message.protocol_version} of the protocol, and this client`;
      this.end(new TryllError(OTHER_VERSION, `${told} ${PROTOCOL_VERSION}.`));
    } else {
      this.ready = message;
      this.begun.resolve();
    }
  }

  private answer(message: MessageBody): void {
    if (message.type === "ErrorResponse") {
      this.refused(message);
      return;
    }
    const number = "request_id" in message ? message.request_id : 0n;
    const pending = this.pending.get(number);
    if (pending === undefined || pending.answered.settled) {
      this.unexpected(message);
    } else if (message.type === "DownloadProgress") {
      pending.heard(message);
    } else if (message.type !== pending.expected) {
      pending.answered.reject(new TryllError(5001, `The server answered with a \`${message.type}\`, not an answer.`));
    } else {
      pending.parts.push(message);
      if (!("more" in message) || !message.more) {
        pending.answered.resolve(pending.parts);
        pending.then?.();
      } else if (pending.parts.length >= MAX_PARTS) {
        pending.answered.reject(new TryllError(5001, `The answer has more than ${MAX_PARTS} parts.`));
      }
    }
  }

  private refused(message: ErrorResponse): void {
    const error = new TryllError(message.code, message.message);
    const about = message.request_id;
    const voice = this.voices.get(message.voice_input_id);
    if (message.code === OTHER_VERSION) this.end(error);
    else if (about && this.pending.has(about)) this.pending.get(about)!.answered.reject(error);
    else if (about) this.replies.asked(about)?.lose(error);
    else if (voice !== undefined) voice.complain(error);
    else {
      const reply = this.replies.expected(message.agent_id);
      if (reply !== undefined) reply.lose(error);
      else this.reason = error;
    }
  }

  private unexpected(message: MessageBody): void {
    // Whoever asked for it has given up.
    if (message.type === "CreateAgentResponse" && message.request_id) {
      this.write({ type: "DestroyAgentRequest", agent_id: message.agent_id });
    } else if (message.type === "CreateVoiceInputResponse" && message.request_id) {
      this.write({ type: "DestroyVoiceInputRequest", voice_input_id: message.voice_input_id });
    }
  }

  private end(error: TryllError): void {
    if (this.lost !== null) return;
    this.lost = error;
    this.begun.reject(error);
    for (const { answered } of this.pending.values()) answered.reject(again(error));
    this.replies.lose(error);
    for (const voice of [...this.voices.values()]) voice.lose(error);
    this.transport?.close();
    if (this.ready !== null) call(this.onLost, error);
  }
}

function isOfTurn(message: MessageBody): message is TurnFrame {
  switch (message.type) {
    case "AnswerText":
    case "NodeEvent":
    case "TtsAudioFormatFrame":
    case "TtsAudioFrame":
    case "TtsTimingFrame":
    case "TurnComplete":
      return true;
    default:
      return false;
  }
}

function encoded(message: Init<MessageBody>): Uint8Array {
  try {
    return encode(message);
  } catch (error) {
    if (error instanceof Unsendable) throw new TryllError(error.code, `${error.message}.`);
    throw error;
  }
}
