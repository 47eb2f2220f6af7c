/** Small things for whoever waits. */

import { TryllError } from "./errors.js";

/** The longest time that timers know: 24 days. One that is given more ends at once. */
const LONGEST_MS = 2 ** 31 - 1;

/** A time, also for ever, as timers take it. */
export function timed(ms: number): number {
  return Math.min(ms, LONGEST_MS);
}

/** A promise whose end is told from outside. Nobody has to listen to its failure. */
export class Deferred<T> {
  readonly promise: Promise<T>;
  resolve!: (value: T) => void;
  reject!: (reason: unknown) => void;
  settled = false;

  constructor() {
    this.promise = new Promise<T>((resolve, reject) => {
      this.resolve = (value) => {
        this.settled = true;
        resolve(value);
      };
      this.reject = (reason) => {
        this.settled = true;
        reject(reason);
      };
    });
    this.promise.catch(() => {});
  }
}

/** A limit of silence: it is over when nothing was heard for so long. */
export class Silence {
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly ms: number,
    private readonly over: () => void,
  ) {
    this.heard();
  }

  /** Something was heard: the time begins anew. */
  heard(): void {
    this.end();
    this.timer = setTimeout(this.over, timed(this.ms));
  }

  end(): void {
    clearTimeout(this.timer);
  }
}

/** Wait for something, but no longer than until the signal. Throws the signal's reason then. */
export async function unlessAborted<T>(waiting: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return waiting;
  // Whoever does not wait does not want to know how it ends.
  waiting.catch(() => {});
  signal.throwIfAborted();
  const aborted = new Deferred<never>();
  const abort = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([waiting, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** A pause, which a signal ends. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    await unlessAborted(new Promise<void>((done) => (timer = setTimeout(done, timed(ms)))), signal);
  } finally {
    clearTimeout(timer);
  }
}

/** The error that a lost connection is, for whoever waits now. Each gets one of its own, with its own stack. */
export function again(error: TryllError): TryllError {
  return new TryllError(error.code, error.message);
}
