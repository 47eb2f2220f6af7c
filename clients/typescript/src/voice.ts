/**
 * A voice input on a server, for whoever speaks into it. It outlives its connection: the next one has it again.
 *
 *     const voice = await client.createVoiceInput("whisper-base", { sampleRate: 16000 });
 *     await voice.begin({ agent, onText: show });
 *     microphone.onPiece = (pcm) => voice.send(pcm);
 *     const heard = await voice.end();
 *     const turn = await voice.reply?.result();
 *
 * One utterance at a time. An utterance that the connection is lost in is lost.
 */

import type { Agent } from "./agent.js";
import type { Connection, RequestOptions, VoiceListener } from "./connection.js";
import { TryllError } from "./errors.js";
import { call } from "./events.js";
import { TranscriptUpdateKind, type CreateVoiceInputRequest, type WireTranscriptUpdate } from "./generated/messages.js";
import type { Init } from "./codec/init.js";
import { REQUEST_MS, type Made } from "./replay.js";
import { Reply, type Conduct, type SendOptions } from "./turn.js";
import { again, Deferred, unlessAborted } from "./waiting.js";

/** The sound of one frame, in samples. */
const FRAME_SAMPLES = 32 * 1024;
/** How long the last words may take: a small machine writes down a minute. */
export const TRANSCRIPT_MS = 60_000;

const NO_ANSWER = 1003;
const NOT_LISTENING = 4104;
const TOO_LONG = 4105;
/** Errors from this on are about the voice input. Those before are about the agent, which was not told. */
const OF_VOICE = 4100;

export interface VoiceOptions extends RequestOptions {
  sampleRate?: number;
  channels?: number;
  vadThreshold?: number;
  vadMinSilenceMs?: number;
  vadSpeechPadMs?: number;
  hotwordsStoragePath?: string;
  hotwordsScore?: number;
}

export interface UtteranceOptions extends SendOptions {
  /** Who is told what was said, in a turn that the server begins: see `VoiceInput.reply`. */
  agent?: Agent;
  /** Whether a pause after speech ends the utterance. */
  handsFree?: boolean;
  /** The most sound that it may have, in milliseconds. */
  maxMs?: number;
  /** Whether speech ends a turn of the agent. Otherwise a busy one is not told: the reply fails with 3004. */
  bargeIn?: boolean;
  /** What is understood, as it comes. */
  onUpdate?: (update: WireTranscriptUpdate) => unknown;
}

/** What a voice input needs of the client that made it. */
export interface VoiceOwner {
  live(): Promise<Connection>;
  release(voice: VoiceInput): void;
}

class Utterance {
  reply: Reply | null = null;
  readonly transcript = new Deferred<string>();

  constructor(readonly options: UtteranceOptions) {}

  get over(): boolean {
    return this.transcript.settled;
  }

  fail(error: TryllError): void {
    if (!this.over) this.transcript.reject(error);
  }
}

/** Made by `Client.createVoiceInput`. */
export class VoiceInput implements VoiceListener, Made {
  /** What the server calls it; another number after each loss of the connection. */
  id = 0n;
  private home: Connection | null = null;
  private failure: TryllError | null = null;
  private utterance = new Utterance({});
  private replies: Reply[] = [];
  private destroyed = false;

  constructor(
    private readonly owner: VoiceOwner,
    private readonly request: Init<CreateVoiceInputRequest>,
  ) {
    this.utterance.transcript.resolve("");
  }

  // Utterances.

  /**
   * Listen from now on. The callbacks hear the agent's answer.
   *
   * @throws TryllError 3001, 3002, there is no such agent; 4103, the voice input is listening.
   */
  async begin(options: UtteranceOptions = {}): Promise<void> {
    const link = await this.live();
    const begun = new Utterance(options);
    const request = {
      type: "BeginUtteranceRequest",
      voice_input_id: this.id,
      agent_id: options.agent?.at(link) ?? 0n,
      auto_finish_on_silence: options.handsFree ?? false,
      max_utterance_ms: options.maxMs ?? 60_000,
      barge_in: options.bargeIn ?? true,
    } as const;
    try {
      // The last words of the one before come until then.
      await link.request(request, "Ack", REQUEST_MS, {}, () => (this.utterance = begun));
    } catch (error) {
      const refused = error instanceof TryllError && error.code !== NO_ANSWER;
      if (!refused && (this.utterance === begun || this.utterance.over)) {
        // Nobody knows of it: it must not stand in the way of the next.
        begun.fail(cancelled());
        link.write({ type: "CancelUtteranceRequest", voice_input_id: this.id });
      }
      throw error;
    }
  }

  /**
   * Let the server hear some sound, of the format that the voice input has. After the utterance, nobody listens.
   *
   * @throws TryllError 1002, the connection is lost.
   */
  async send(pcm: Int16Array): Promise<void> {
    const link = this.home;
    if (link === null || link.lost !== null) throw again(link?.lost ?? this.failure ?? new TryllError(1002));
    for (let at = 0; at < pcm.length; at += FRAME_SAMPLES) {
      const piece = pcm.subarray(at, at + FRAME_SAMPLES);
      await link.tell({ type: "AudioBufferFrame", voice_input_id: this.id, pcm: piece });
    }
  }

  /**
   * Take what was heard; "" if nothing was. An utterance that has ended by itself gives what it gave.
   *
   * @throws TryllError 4104, there is no utterance; 4105, it is too long; 1002, the connection was lost.
   */
  async end(options: RequestOptions = {}): Promise<string> {
    const utterance = this.utterance;
    if (!utterance.over) {
      try {
        const request = { type: "EndUtteranceRequest", voice_input_id: this.id } as const;
        await (await this.live()).request(request, "Ack", TRANSCRIPT_MS, options);
      } catch (error) {
        // It may have ended by itself just before.
        if (!(error instanceof TryllError) || error.code !== NOT_LISTENING || !utterance.over) throw error;
      }
    }
    return this.transcript(options);
  }

  /** Wait for the end of the utterance, and take what was heard. Throws as `end`. */
  transcript(options: RequestOptions = {}): Promise<string> {
    return unlessAborted(this.utterance.transcript.promise, options.signal);
  }

  /** Forget what was heard. Throws as `end`. */
  async cancel(options: RequestOptions = {}): Promise<void> {
    const utterance = this.utterance;
    const request = { type: "CancelUtteranceRequest", voice_input_id: this.id } as const;
    await (await this.live()).request(request, "Ack", REQUEST_MS, options);
    utterance.fail(cancelled());
  }

  /** Whether an utterance is going on. */
  get listening(): boolean {
    return !this.utterance.over;
  }

  /** The agent's answer to what was said last; null if it was not told, or not yet. */
  get reply(): Reply | null {
    return this.utterance.reply;
  }

  /** End it, and an utterance. */
  async destroy(options: RequestOptions = {}): Promise<void> {
    if (this.destroyed) return;
    this.destroyed = true;
    this.owner.release(this);
    const link = this.home;
    try {
      if (link?.lost === null) {
        // Last words may come until then, and the server answers them.
        const request = { type: "DestroyVoiceInputRequest", voice_input_id: this.id } as const;
        await link.request(request, "Ack", REQUEST_MS, options);
      }
    } catch (error) {
      // With its connection it is gone, too.
      if (link?.lost === null) throw error;
    } finally {
      this.utterance.fail(new TryllError(4102, "The voice input was destroyed."));
      link?.voices.delete(this.id);
    }
  }

  private async live(): Promise<Connection> {
    if (this.destroyed) throw new TryllError(4102);
    const link = await this.owner.live();
    if (this.home !== link) throw again(this.failure ?? new TryllError(1002));
    return link;
  }

  // For the client.

  async create(link: Connection, timeoutMs: number, options: RequestOptions = {}): Promise<void> {
    const [made] = await link.request(this.request, "CreateVoiceInputResponse", timeoutMs, options);
    if (this.destroyed) {
      link.write({ type: "DestroyVoiceInputRequest", voice_input_id: made!.voice_input_id });
      return;
    }
    this.id = made!.voice_input_id;
    this.home = link;
    this.failure = null;
    link.voices.set(this.id, this);
  }

  fail(error: TryllError): void {
    this.failure = error;
    this.home = null;
  }

  // For the connection.

  feed(message: WireTranscriptUpdate): void {
    const utterance = this.utterance;
    if (utterance.over) return;
    call(utterance.options.onUpdate, message);
    if (message.kind !== TranscriptUpdateKind.UtteranceFinal) return;
    const { agent } = utterance.options;
    if (message.text && agent !== undefined && this.home !== null) {
      utterance.reply = unasked(this.home, agent, message.text, utterance.options);
      this.replies = [...this.replies.filter((reply) => !reply.over), utterance.reply];
    }
    utterance.transcript.resolve(message.text);
  }

  complain(error: TryllError): void {
    const waiting = this.replies.filter((reply) => !reply.over);
    if (error.code === TOO_LONG) this.utterance.fail(error);
    // Those before it were said to the agent, or wait for that with it.
    else if (error.code < OF_VOICE) waiting.at(-1)?.lose(error);
  }

  lose(error: TryllError): void {
    this.utterance.fail(again(error));
  }
}

function cancelled(): TryllError {
  return new TryllError(NOT_LISTENING, "The utterance was cancelled.");
}

/** The reply of a turn that the server begins. There is nothing to be sent. */
function unasked(link: Connection, agent: Agent, text: string, options: SendOptions): Reply {
  const id = agent.id;
  const conduct: Conduct = {
    get listeners() {
      return agent.listeners;
    },
    giveUp: (reply) => agent.giveUp(reply),
    ended: (reply) => {
      link.replies.forget(id, reply);
      agent.heardOut(reply);
    },
  };
  const reply = new Reply(text, conduct, options);
  reply.sent(0n);
  link.replies.expect(id, reply);
  agent.expect(reply);
  return reply;
}
