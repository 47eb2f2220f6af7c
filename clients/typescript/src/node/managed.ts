/** A server that ends with the game that started it. */

import { spawn, type ChildProcess } from "node:child_process";
import { devNull } from "node:os";
import { createInterface } from "node:readline";

import { TryllError } from "../errors.js";
import { call, jsonObject } from "../events.js";
import { Deferred, pause, timed, unlessAborted } from "../waiting.js";

export interface ManagedServerOptions {
  /** The program; a bundle's is `tryll-server`. */
  program?: string;
  /**
   * What comes before our own arguments. Of `trunkline`, which is the program unless given: `tryll serve`, and a
   * `--config` that keeps out what the user has configured for servers of their own.
   */
  args?: readonly string[];
  /** Whether it listens for WebSockets, too. */
  ws?: boolean;
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  /** How long it may take until it is ready. */
  startMs?: number;
  /** How long it may take to end by itself. */
  stopMs?: number;
  signal?: AbortSignal;
  /** Lines that it writes to its standard error. Unless given, they are passed over. */
  onLog?: (line: string) => unknown;
}

/** A machine that is busy with something else starts Python slowly. */
const START_MS = 60_000;
const STOP_MS = 10_000;
/** How long it may take after SIGTERM, and after SIGKILL. */
const TERMINATE_MS = 5000;
const KILL_MS = 5000;
/** The last lines of its log, for whoever wants to know why it did not start. */
const KEPT_LINES = 20;

/** What it says when it is ready. */
interface Ready {
  host: string;
  port: number;
  ws_port?: number | null;
  metrics_port?: number | null;
}

/** A running server. */
export class ManagedServer {
  private constructor(
    private readonly child: ChildProcess,
    private readonly gone: Promise<unknown>,
    private readonly stopMs: number,
    readonly host: string,
    readonly port: number,
    /** The port of its WebSockets; 0 without. */
    readonly wsPort: number,
    /** The port of its figures; 0 without. */
    readonly metricsPort: number,
  ) {}

  /**
   * Start a server at a free port of this machine. It ends when this program does, however that ends.
   *
   * @throws TryllError 1001, it cannot be started; 1003, it is not ready in time.
   */
  static async start(options: ManagedServerOptions = {}): Promise<ManagedServer> {
    options.signal?.throwIfAborted();
    const program = options.program ?? "trunkline";
    const before = options.args ?? (options.program === undefined ? ["tryll", "serve", "--config", devNull] : []);
    const ours = ["--listen", "127.0.0.1:0", "--exit-with-stdin", "--json"];
    const more = options.ws ? ["--ws", "127.0.0.1:0"] : [];
    const child = spawn(program, [...before, ...ours, ...more], {
      stdio: ["pipe", "pipe", "pipe"],
      env: options.env,
      cwd: options.cwd,
    });
    const gone = new Deferred<void>();
    child.once("exit", () => gone.resolve());
    const failed = new Deferred<never>();
    child.once("error", (error) => {
      gone.resolve();
      failed.reject(new TryllError(1001, `\`${program}\` cannot be started: ${error.message}.`));
    });
    // It may be gone when its input is closed.
    child.stdin!.on("error", () => {});
    const log = lastLines(child, options.onLog);
    // Not before all that it said is read.
    child.once("close", () => {
      failed.reject(new TryllError(1001, `\`${program}\` ended before it was ready.${lastWords(log)}`));
    });
    const ms = options.startMs ?? START_MS;
    const late = AbortSignal.timeout(timed(ms));
    const stop = options.signal === undefined ? late : AbortSignal.any([late, options.signal]);
    try {
      const ready = await unlessAborted(Promise.race([readyLine(child), failed.promise]), stop);
      const { host, port, ws_port: ws, metrics_port: figures } = ready as unknown as Ready;
      return new ManagedServer(child, gone.promise, options.stopMs ?? STOP_MS, host, port, ws ?? 0, figures ?? 0);
    } catch (error) {
      await ended(child, gone.promise, 0);
      if (error === late.reason)
        throw new TryllError(1003, `\`${program}\` was not ready within ${ms / 1000} s.${lastWords(log)}`);
      throw error;
    }
  }

  /** Its address for TCP. */
  get address(): string {
    return joined(this.host, this.port);
  }

  /** Its address for WebSockets; "" if it listens for none. */
  get wsUrl(): string {
    return this.wsPort ? `ws://${joined(this.host, this.wsPort)}` : "";
  }

  get running(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** End it, in bounded time: its input is closed; if that is not enough, it is terminated, then killed. */
  async stop(): Promise<void> {
    await ended(this.child, this.gone, this.stopMs);
  }
}

function joined(host: string, port: number): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** The line by which it says that it is ready. Never settles if it says nothing of the kind. */
function readyLine(child: ChildProcess): Promise<Record<string, unknown>> {
  return new Promise((resolve) => {
    createInterface({ input: child.stdout! }).on("line", (line) => {
      const found = jsonObject(line);
      if (found?.["type"] === "ready") resolve(found);
    });
  });
}

function lastLines(child: ChildProcess, onLog: ManagedServerOptions["onLog"]): string[] {
  const kept: string[] = [];
  createInterface({ input: child.stderr! }).on("line", (line) => {
    kept.push(line);
    if (kept.length > KEPT_LINES) kept.shift();
    call(onLog, line);
  });
  return kept;
}

/** For the end of an error. */
function lastWords(log: readonly string[]): string {
  return log.length ? ` Its last words: ${log.join("\n")}` : "";
}

async function ended(child: ChildProcess, gone: Promise<unknown>, patienceMs: number): Promise<void> {
  child.stdin?.end();
  if (await within(gone, patienceMs)) return;
  child.kill("SIGTERM");
  if (await within(gone, TERMINATE_MS)) return;
  child.kill("SIGKILL");
  await within(gone, KILL_MS);
}

async function within(gone: Promise<unknown>, ms: number): Promise<boolean> {
  const late = new AbortController();
  try {
    return await Promise.race([gone.then(() => true), pause(ms, late.signal).then(() => false)]);
  } finally {
    late.abort();
  }
}
