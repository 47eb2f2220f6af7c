/** Servers that are not there, or not what they should be; and what only a server of one's own says. Needs no other. */

import assert from "node:assert/strict";
import { createServer as createHttpServer } from "node:http";
import { createServer, type AddressInfo } from "node:net";
import { test } from "node:test";

import {
  Client,
  decode,
  encode,
  FrameError,
  Framer,
  frame,
  MAX_FRAME,
  TryllError,
  Unsendable,
  type ClientOptions,
  type GraphDescription,
  type Init,
  type Mark,
  type MessageBody,
  type NodeParams,
} from "trunkline-tryll";
import { connect, ManagedServer } from "trunkline-tryll/node";

import { fake, type Place } from "./support.js";

const READY = { type: "SessionReady", protocol_version: 2, session_id: 1 } as const;

async function refused(code: number, work: Promise<unknown>): Promise<TryllError> {
  const error = await work.then(
    () => assert.fail(`it was not refused with ${code}`),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof TryllError, String(error));
  assert.equal(error.code, code, error.message);
  return error;
}

function request(asked: MessageBody): bigint {
  return "request_id" in asked ? asked.request_id : 0n;
}

async function refusedAt(place: Place, code: number, options: ClientOptions = {}): Promise<TryllError> {
  try {
    return await refused(code, connect(`127.0.0.1:${place.port}`, options));
  } finally {
    place.close();
  }
}

test("nobody there is 1001, by TCP and by WebSocket", async () => {
  const free = createServer().listen(0, "127.0.0.1");
  await new Promise((done) => free.once("listening", done));
  const { port } = free.address() as AddressInfo;
  await new Promise((done) => free.close(done));
  assert.match((await refused(1001, connect(`127.0.0.1:${port}`))).message, /ECONNREFUSED/);
  assert.match((await refused(1001, connect(`ws://127.0.0.1:${port}`))).message, /ECONNREFUSED/);
});

test("a WebSocket that cannot be made says why", async () => {
  assert.match((await refused(1001, connect("ws://:none"))).message, /at ws:\/\/:none: Invalid URL\.$/);
  const pages = createHttpServer((_, response) => response.writeHead(403).end()).listen(0, "127.0.0.1");
  await new Promise((done) => pages.once("listening", done));
  const { port } = pages.address() as AddressInfo;
  assert.match((await refused(1001, connect(`ws://127.0.0.1:${port}`))).message, /HTTP status 403\.$/);
  pages.close();
});

test("where there is no WebSocket, it is said what to do", async () => {
  const own = Object.getOwnPropertyDescriptor(globalThis, "WebSocket");
  Reflect.deleteProperty(globalThis, "WebSocket");
  try {
    assert.match((await refused(1001, Client.connect("ws://127.0.0.1:9101"))).message, /node 22.*trunkline-tryll\/node/);
  } finally {
    if (own !== undefined) Object.defineProperty(globalThis, "WebSocket", own);
  }
});

test("a server that says nothing is 1003, and a signal does not wait for that", async () => {
  await refusedAt(await fake(null), 1003, { connectMs: 50 });
  const place = await fake(null);
  const stop = new AbortController();
  const waiting = connect(`127.0.0.1:${place.port}`, { signal: stop.signal });
  stop.abort();
  await refused(1002, waiting);
  place.close();
});

test("a client that is closed while its session is being configured is closed, and calls nobody", async () => {
  const heard: string[] = [];
  const stop = new AbortController();
  const place = await fake(READY, (asked) => {
    stop.abort();
    return [{ type: "ConfigureSessionResponse", request_id: request(asked) }];
  });
  const told = await refusedAt(place, 1002, {
    signal: stop.signal,
    onConnected: () => heard.push("connected"),
    onLost: () => heard.push("lost"),
  });
  assert.equal(told.message, "This client is closed.");
  assert.deepEqual(heard, []);
});

test("of a lost connection it is heard once, and once more when it was given up; of one's own end never", async () => {
  const begun = (asked: MessageBody): Init<MessageBody>[] => [
    { type: "ConfigureSessionResponse", request_id: request(asked) },
  ];
  for (const reconnect of [{ attempts: 2, firstMs: 1 }, false] as const) {
    const place = await fake(READY, begun);
    const heard: unknown[] = [];
    await new Promise<void>((done) => {
      const onLost = (error: TryllError, over: boolean): void => {
        heard.push(error.code, over);
        if (over) done();
      };
      void connect(`127.0.0.1:${place.port}`, { reconnect, onLost }).then(() => place.close());
    });
    assert.deepEqual(heard, reconnect ? [1002, false, 1001, true] : [1002, true]);
  }
  const place = await fake(READY, begun);
  const heard: number[] = [];
  const client = await connect(`127.0.0.1:${place.port}`, { onLost: ({ code }) => heard.push(code) });
  client.close();
  place.close();
  assert.deepEqual(heard, []);
});

test("a signal that is over already keeps a client from connecting, and a server from being started", async () => {
  const signal = AbortSignal.abort(new Error("not today"));
  await refusedAt(await fake(READY), 1002, { signal });
  await assert.rejects(ManagedServer.start({ program: process.execPath, args: ["-e", "", "--"], signal }), /not today/);
});

test("a connection that ends with the answer to the configuration was none", async () => {
  const place = await fake(READY, (asked) => {
    const configured = frame(encode({ type: "ConfigureSessionResponse", request_id: request(asked) }));
    return [Buffer.concat([configured, frame(new Uint8Array(3))])];
  });
  const heard: string[] = [];
  await refusedAt(place, 5001, { onConnected: () => heard.push("connected") });
  assert.deepEqual(heard, []);
});

test("what a listener throws later is reported, and harms nobody", async () => {
  const place = await fake(READY, (asked) => [{ type: "ConfigureSessionResponse", request_id: request(asked) }]);
  const usual = console.error;
  const said = new Promise<unknown[]>((done) => (console.error = (...words: unknown[]) => done(words)));
  try {
    const onConnected = (): Promise<never> => Promise.reject(new Error("too late"));
    const client = await connect(`127.0.0.1:${place.port}`, { onConnected });
    const [what, error] = await said;
    assert.equal(what, "a listener of the Tryll client failed");
    assert.equal((error as Error).message, "too late");
    client.close();
  } finally {
    console.error = usual;
    place.close();
  }
});

test("a server of another version, or with a reason, or with anything else first is refused", async () => {
  await refusedAt(await fake({ ...READY, protocol_version: 3 }), 5004);
  const told = await refusedAt(await fake({ type: "ErrorResponse", code: 2001, message: "Closing." }), 2001);
  assert.equal(told.message, "Closing.");
  await refusedAt(await fake({ type: "Ack" }), 5001);
  await refusedAt(await fake(frame(new Uint8Array(3))), 5001);
  await refusedAt(await fake(frame(new Uint8Array(0))), 5001);
});

test("a frame of the greatest size is read, and one byte more is 5003", async () => {
  const heads = [MAX_FRAME, MAX_FRAME + 1].map((size) => Uint8Array.of(size, size >> 8, size >> 16, size >> 24));
  const taken: number[] = [];
  new Framer().feed(Buffer.concat([heads[0]!, new Uint8Array(MAX_FRAME)]), (payload) => taken.push(payload.length));
  assert.deepEqual(taken, [MAX_FRAME]);
  assert.throws(
    () => new Framer().feed(heads[1]!, () => {}),
    (error) => error instanceof FrameError && error.code === 5003,
  );
  const error = await refusedAt(await fake(heads[1]!), 5003);
  assert.match(error.message, /1048577/);
});

test("frames come in any pieces", () => {
  const payloads = [encode({ type: "Ack", request_id: 1 }), encode({ type: "Ack", request_id: 2n }), new Uint8Array(0)];
  const stream = Buffer.concat(payloads.map(frame));
  for (const size of [1, 3, 7, stream.length]) {
    const framer = new Framer();
    const found: Uint8Array[] = [];
    for (let at = 0; at < stream.length; at += size)
      framer.feed(stream.subarray(at, at + size), (payload) => found.push(payload));
    assert.deepEqual(
      found.map((each) => Buffer.from(each).toString("hex")),
      payloads.map((each) => Buffer.from(each).toString("hex")),
    );
  }
});

test("what no field can hold is not sent", () => {
  const wrong: Init<MessageBody>[] = [
    { type: "Ack", request_id: -1 },
    { type: "Ack", request_id: 2n ** 64n },
    { type: "Ack", request_id: 1.5 },
    { type: "SendMessageRequest", text: 7 as unknown as string },
    { type: "CreateVoiceInputRequest", channels: 65536 },
    { type: "Nobody" } as unknown as Init<MessageBody>,
  ];
  for (const message of wrong)
    assert.throws(
      () => encode(message),
      Unsendable,
      JSON.stringify(message, (_, value) => String(value)),
    );
  assert.deepEqual(decode(encode({ type: "Ack", request_id: 2n ** 64n - 1n })), {
    type: "Ack",
    request_id: 2n ** 64n - 1n,
  });
  const fits = encode({ type: "SendMessageRequest", text: "" }).length;
  encode({ type: "SendMessageRequest", text: "x".repeat(MAX_FRAME - fits) });
  assert.throws(
    () => encode({ type: "SendMessageRequest", text: "x".repeat(MAX_FRAME) }),
    (error) => error instanceof Unsendable && error.code === 5003,
  );
});

/** What a server says that has one agent, whose turns are these frames. */
function script(...turn: Init<MessageBody>[]): (asked: MessageBody) => Init<MessageBody>[] {
  return (asked) => {
    if (asked.type === "ConfigureSessionRequest")
      return [{ type: "ConfigureSessionResponse", request_id: asked.request_id }];
    if (asked.type === "CreateAgentRequest")
      return [{ type: "CreateAgentResponse", request_id: asked.request_id, agent_id: 7 }];
    if (asked.type !== "SendMessageRequest") return [];
    return turn.map(
      (each) => ("request_id" in each ? { ...each, request_id: asked.request_id } : each) as Init<MessageBody>,
    );
  };
}

test("sound comes with its format, and an answer so far adds what is new", async () => {
  const answer = { type: "AnswerText", request_id: 0, agent_id: 7 } as const;
  const place = await fake(
    READY,
    script(
      { type: "TtsAudioFrame", agent_id: 7, pcm: Int16Array.of(9) },
      {
        type: "TtsTimingFrame",
        agent_id: 7,
        marks: [
          { text: "Good", end_ms: 90 },
          { kind: 1, text: "kk", start_ms: 5, end_ms: 40 },
        ],
      },
      { type: "TtsAudioFormatFrame", agent_id: 7, sample_rate: 8000 },
      { ...answer, text: "Good ", is_delta: false },
      { ...answer, text: "Good day", is_delta: false },
      { type: "TtsAudioFrame", agent_id: 7, pcm: Int16Array.of(1, -2) },
      { ...answer, text: "Bad day", is_delta: false, is_final: true },
      { type: "TtsAudioFrame", agent_id: 7, pcm: Int16Array.of(3) },
      {
        type: "NodeEvent",
        agent_id: 7,
        node_name: "n",
        event_type: "rain",
        kv_pairs: [{ key: "mm", value: "3" }],
      },
      {
        type: "NodeEvent",
        agent_id: 7,
        node_name: "n",
        event_type: "tool_call",
        kv_pairs: [
          { key: "tool_name", value: "t" },
          { key: "arguments_json", value: "[" },
        ],
      },
      { type: "TurnComplete", request_id: 0, agent_id: 7, tokens_generated: 3 },
    ),
  );
  const client = await connect(`127.0.0.1:${place.port}`);
  const agent = await client.createAgent({});
  const reply = agent.send("?");
  const pieces: [string, boolean][] = [];
  const marks: Mark[] = [];
  for await (const event of reply.everything()) {
    if (event.kind === "text") pieces.push([event.text, event.replaces]);
    else if (event.kind === "timing") marks.push(...event.marks);
  }
  assert.deepEqual(marks, [
    { kind: "word", text: "Good", startMs: 0, endMs: 90 },
    { kind: "viseme", text: "kk", startMs: 5, endMs: 40 },
  ]);
  const turn = await reply.result();
  assert.deepEqual(pieces, [
    ["Good ", false],
    ["day", false],
    ["Bad day", true],
  ]);
  assert.equal(turn.text, "Bad day");
  assert.deepEqual(turn.sound, { kind: "sound", pcm: Int16Array.of(1, -2, 3), sampleRate: 8000, channels: 1 });
  const [rain, call] = turn.events;
  assert.ok(rain?.kind === "event" && rain.type === "rain" && rain.pairs.get("mm") === "3");
  assert.ok(call?.kind === "tool_call" && call.arguments === null && call.argumentsJson === "[");
  client.close();
  place.close();
});

test("a server that falls silent in a turn is 1003", async () => {
  const place = await fake(READY, script());
  const client = await connect(`127.0.0.1:${place.port}`);
  const agent = await client.createAgent({});
  await refused(1003, agent.ask("?", { timeoutMs: 50 }));
  await refused(3004, agent.ask("again", { timeoutMs: 50 }));
  client.close();
  place.close();
});

test("whoever sets no limit waits, and is not refused at once", async () => {
  const answers = script();
  let tell!: () => void;
  const sent = new Promise<void>((done) => (tell = done));
  const place = await fake(READY, (asked) => {
    if (asked.type === "SendMessageRequest") tell();
    return answers(asked);
  });
  const client = await connect(`127.0.0.1:${place.port}`, { connectMs: Infinity });
  const agent = await client.createAgent({}, { timeoutMs: Infinity });
  const stop = new AbortController();
  const stopped = new Error("enough");
  const waiting = agent.ask("?", { timeoutMs: Infinity, signal: stop.signal });
  await Promise.race([sent, waiting]);
  stop.abort(stopped);
  await assert.rejects(waiting, stopped);
  client.close();
  place.close();
});

test("a server is not asked for what it would pass over", async () => {
  const place = await fake(READY, script());
  const client = await connect(`127.0.0.1:${place.port}`);
  const graph = (params: Init<NodeParams>): Init<GraphDescription> => ({ nodes: [{ name: "node", params }] });
  const asked: [string, Promise<unknown>][] = [
    ["stop", client.createAgent(graph({ type: "GenerateParams", sampling: { stop: ["END"] } }))],
    ["lora", client.createAgent(graph({ type: "GenerateParams", sampling: { lora: [{}] } }))],
    ["timings", client.createAgent(graph({ type: "SpeakParams", timings: true }))],
    ["records_json", client.createEmbeddedStorage("a", [], { records_json: "{}" })],
    ["memory_path", client.createEmbeddedStorage("a", [], { memory_path: "a" })],
    ["memory_path", client.bring([{ type: "CreateEmbeddedStringStorageRequest", memory_path: "a" }])],
  ];
  for (const [field, work] of asked) assert.match((await refused(5002, work)).message, new RegExp(`\`${field}\``));
  const plain = await client.createAgent(graph({ type: "SpeakParams", timings: false, pronunciations: "" }));
  const error = await refused(5002, plain.change("node", { type: "SpeakParams", pronunciations: "words" }));
  assert.match(error.message, /`pronunciations`/);
  const cannot: [string, Promise<unknown>][] = [
    ["give a conversation", plain.history()],
    ["take a conversation", plain.restore([])],
    ["say how it is", client.health()],
  ];
  for (const [what, work] of cannot)
    assert.equal((await refused(5002, work)).message, `This server cannot ${what}.`);
  client.close();
  place.close();
});

test("a program that cannot be started, or that ends, is 1001 with what it said", async () => {
  await refused(1001, ManagedServer.start({ program: "/nowhere/tryll-server" }));
  const dying = ["-e", "console.error('no such model'); process.exit(3)", "--"];
  assert.match(
    (await refused(1001, ManagedServer.start({ program: process.execPath, args: dying }))).message,
    /no such model/,
  );
  const silent = ["-e", "console.error('still reading'); setInterval(() => {}, 1000)", "--"];
  const late = await refused(1003, ManagedServer.start({ program: process.execPath, args: silent, startMs: 5000 }));
  assert.match(late.message, /last words: still reading/);
});

test("a server of one's own ends with its input, or is ended", async () => {
  const ready = 'console.log(\'{"type":"ready","host":"127.0.0.1","port":9,"ws_port":8,"metrics_port":7}\');';
  const obedient = await ManagedServer.start({
    program: process.execPath,
    args: ["-e", `${ready} process.stdin.resume()`, "--"],
    ws: true,
  });
  assert.equal(obedient.address, "127.0.0.1:9");
  assert.equal(obedient.wsUrl, "ws://127.0.0.1:8");
  assert.equal(obedient.metricsPort, 7);
  assert.ok(obedient.running);
  await obedient.stop();
  assert.ok(!obedient.running);
  const deaf = `process.on('SIGTERM', () => process.exit()); setInterval(() => {}, 1000); ${ready}`;
  const stubborn = await ManagedServer.start({ program: process.execPath, args: ["-e", deaf, "--"], stopMs: 50 });
  await stubborn.stop();
  assert.ok(!stubborn.running);
});
