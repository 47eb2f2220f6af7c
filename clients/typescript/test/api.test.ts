/**
 * The whole client against a real server, at the address in TRYLL (`HOST:PORT`, or `ws://HOST:PORT`), on mock engines.
 */

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  StringStorageKind,
  TryllError,
  TurnFailed,
  TurnStatus,
  type Agent,
  type Client,
  type ClientOptions,
  type GraphDescription,
  type Init,
  type NodeParams,
  type Sound,
} from "trunkline-tryll";
import { connect } from "trunkline-tryll/node";

import { Road } from "./support.js";

const ADDRESS = process.env["TRYLL"]!;

async function withClient(
  work: (client: Client) => Promise<void>,
  options: ClientOptions = {},
  address = ADDRESS,
): Promise<void> {
  const client = await connect(address, options);
  try {
    await work(client);
  } finally {
    client.close();
  }
}

function graph(...nodes: [string, Init<NodeParams>][]): Init<GraphDescription> {
  return { start_node: nodes[0]![0], nodes: nodes.map(([name, params]) => ({ name, params })) };
}

const ECHO = graph(["say", { type: "GenerateParams", stream: true }]);

function echo(client: Client, model = "any"): Promise<Agent> {
  return client.createAgent(ECHO, { defaultModel: model });
}

/** The error that a promise ends with; its number is expected. */
async function refused(code: number, work: Promise<unknown>): Promise<TryllError> {
  const error = await work.then(
    () => assert.fail(`it was not refused with ${code}`),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof TryllError, String(error));
  assert.equal(error.code, code, error.message);
  return error;
}

/** Loud pieces of 100 ms: the mock recognizer hears a word in each. */
function loud(words: number): Int16Array {
  return new Int16Array(1600 * words).map((_, index) => (index % 2 ? 8000 : -8000));
}

test("a session is configured, and says what the server can do", () =>
  withClient(async (client) => {
    assert.ok(client.connected);
    assert.ok(client.sessionId > 0n);
    assert.ok(client.extensions.includes("cancel"));
    assert.equal((await client.health()).status, "ready");
    assert.ok((await client.listModels()).some((model) => model.name === "smollm2-135m"));
    await client.configure({ game_name: "test" });
    await refused(6002, client.ensureModel("there-is-none"));
  }));

test("an answer comes by callbacks, by the iterator and as a result", () =>
  withClient(async (client) => {
    const agent = await echo(client);
    const pieces: string[] = [];
    const wholes: string[] = [];
    const all: string[] = [];
    agent.listen({ onText: (piece) => all.push(piece) });
    const reply = agent.send("one two three", {
      onText: (piece, whole) => {
        pieces.push(piece);
        wholes.push(whole);
      },
    });
    const read: string[] = [];
    for await (const piece of reply) read.push(piece);
    const turn = await reply.result();
    assert.equal(turn.text, "You said: one two three");
    assert.equal(turn.status, TurnStatus.Success);
    assert.equal(turn.tokensGenerated, 5);
    assert.ok(turn.firstTextMs !== null);
    assert.ok(pieces.length > 1);
    assert.deepEqual(pieces, read);
    assert.deepEqual(pieces, all);
    assert.equal(wholes.at(-1), turn.text);
  }));

test("a listener that throws harms nobody else", async (context) => {
  context.mock.method(console, "error", () => {});
  await withClient(async (client) => {
    const agent = await echo(client);
    const turn = await agent.ask("still here", {
      onText: () => {
        throw new Error("of the listener's own");
      },
    });
    assert.equal(turn.text, "You said: still here");
  });
});

test("messages to one agent are answered one after the other, and agents side by side", () =>
  withClient(async (client) => {
    const [one, other] = [await echo(client), await echo(client)];
    const turns = await Promise.all([one.ask("first"), one.ask("second"), other.ask("beside")]);
    assert.deepEqual(
      turns.map((turn) => turn.text),
      ["You said: first", "You said: second", "You said: beside"],
    );
    assert.deepEqual(
      (await one.history()).map((entry) => entry.text),
      ["first", "You said: first", "second", "You said: second"],
    );
  }));

test("a model calls a tool, and an intent is told", () =>
  withClient(async (client) => {
    const guard = await client.createAgent(
      graph(
        [
          "tools",
          {
            type: "ToolCallParams",
            notify_client: true,
            tools: [
              {
                name: "door",
                description: "Moves the door.",
                parameters: [{ name: "how", type: "string" }],
              },
            ],
            tool_called_exit: "done",
          },
        ],
        ["done", { type: "CannedResponseParams", inline_strings: ["Very well."] }],
      ),
      { defaultModel: "any" },
    );
    const heard: string[] = [];
    const turn = await guard.ask("open the door", { onToolCall: (call) => heard.push(call.name) });
    assert.deepEqual(heard, ["door"]);
    assert.equal(turn.text, "Very well.");
    const [call] = turn.events;
    assert.ok(call?.kind === "tool_call");
    assert.deepEqual(call.arguments, { how: "open the door" });

    const records = {
      fields: [{ name: "intent", type: "string", optional: true }],
      records: [{ text: "bring me a beer", metadata: { intent: "drink" } }],
    };
    const made = await client.createEmbeddedStorage("wishes", [], {
      embedding_model: "any",
      records_json: JSON.stringify(records),
    });
    assert.equal(made.record_count, 1);
    const inn = await client.createAgent(
      graph([
        "wish",
        {
          type: "ClassifyIntentParams",
          embedded_string_storage: "wishes",
          metadata_field: "intent",
          notify_client: true,
        },
      ]),
    );
    const intents: string[] = [];
    await inn.ask("bring me a beer", { onIntent: (intent) => intents.push(intent.intent) });
    assert.deepEqual(intents, ["drink"]);
    await client.destroyEmbeddedStorage("wishes");
  }));

test("storages are made, used, refused twice, and forgotten", () =>
  withClient(async (client) => {
    await client.createStorage("lines", ["Only this."]);
    const error = await refused(7002, client.createStorage("lines", ["Another."]));
    assert.equal(error.codeName, "StringStorageAlreadyExists");
    assert.ok(error.advice);
    const agent = await client.createAgent(graph(["say", { type: "CannedResponseParams", string_storage: "lines" }]));
    assert.equal((await agent.ask("?")).text, "Only this.");
    await client.createStorage("map", { b: "second", a: "first" });
    await client.createStorage("many", ["x", "y"], { keys: ["k", "k"], kind: StringStorageKind.Multimap });
    for (const name of ["lines", "map", "many"]) await client.destroyStorage(name);
  }));

test("a node is changed between turns", () =>
  withClient(async (client) => {
    await client.createStorage("one", ["One."]);
    await client.createStorage("two", ["Two."]);
    const agent = await client.createAgent(graph(["say", { type: "CannedResponseParams", string_storage: "one" }]));
    await agent.changeSome("say", { string_storage: "two" });
    assert.equal((await agent.ask("?")).text, "Two.");
    await refused(3005, agent.changeSome("nobody", {}));
    await refused(3006, agent.changeSome("say", { default_exit: "say" }));
  }));

test("a turn is stopped, by its signal and by its agent", () =>
  withClient(async (client) => {
    const agent = await echo(client, "mock-slow");
    const long = "word ".repeat(2000);
    const stop = new AbortController();
    const reply = agent.send(long, { signal: stop.signal, onText: () => stop.abort() });
    await assert.rejects(reply.result(), { name: "AbortError" });
    await reply.whenOver();
    assert.equal(reply.status, TurnStatus.Cancelled);
    const second = agent.send(long, { onText: () => void agent.cancel() });
    const turn = await second.result();
    assert.ok(turn.cancelled);
    assert.ok(turn.text.length < long.length);
    const never = agent.send("never sent", { signal: AbortSignal.abort() });
    await assert.rejects(never.result(), { name: "AbortError" });
    assert.equal((await agent.ask("after it")).text, "You said: after it");
    await assert.rejects(client.listModels({ signal: AbortSignal.abort() }), { name: "AbortError" });
  }));

test("a conversation is saved, and gone on with by another agent", () =>
  withClient(async (client) => {
    const agent = await echo(client);
    await agent.ask("remember me");
    const saved = await agent.history();
    const other = await echo(client);
    await other.restore(saved);
    assert.deepEqual(await other.history(), saved);
  }));

test("what cannot be is refused with its number and a sentence", () =>
  withClient(async (client) => {
    await refused(3003, client.createAgent({}));
    const exit = { type: "GenerateParams", default_exit: "nowhere" } as const;
    const error = await refused(3008, client.createAgent(graph(["say", exit]), { defaultModel: "any" }));
    assert.match(error.message, /nowhere/);
    assert.equal(error.codeName, "InvalidExitTarget");
    const agent = await echo(client);
    await refused(5003, agent.ask("x".repeat(1 << 20)));
    await refused(3007, client.createAgent(graph(["say", { type: "GenerateParams", sampling: { top_k: 2 ** 40 } }])));
    await agent.destroy();
    await refused(3002, agent.ask("gone"));
  }));

test("a turn that fails throws what was said, and why", () =>
  withClient(async (client) => {
    const loop = { type: "InstructionParams", instruction: "again", default_exit: "loop" } as const;
    const agent = await client.createAgent(graph(["loop", loop]), { diagnostics: true });
    const error = await refused(4003, agent.ask("round and round"));
    assert.ok(error instanceof TurnFailed);
    assert.equal(error.turn.status, TurnStatus.Error);
    assert.ok(Array.isArray(error.turn.debug["nodes"]));
  }));

test("what is spoken is written down, told to an agent, and answered", () =>
  withClient(async (client) => {
    const agent = await echo(client);
    const voice = await client.createVoiceInput("any", { sampleRate: 16000 });
    const kinds: number[] = [];
    const pieces: string[] = [];
    await voice.begin({ agent, onUpdate: ({ kind }) => kinds.push(kind), onText: (piece) => pieces.push(piece) });
    assert.ok(voice.listening);
    await refused(4103, voice.begin());
    await voice.send(loud(5));
    assert.equal(await voice.end(), "w1 w2 w3 w4 w5");
    assert.ok(kinds.length > 1);
    const turn = await voice.reply!.result();
    assert.equal(turn.text, "You said: w1 w2 w3 w4 w5");
    assert.equal(pieces.join(""), turn.text);

    await voice.begin();
    await voice.send(loud(2));
    await voice.cancel();
    await refused(4104, voice.end());
    await voice.begin({ handsFree: true });
    await voice.send(loud(1));
    await voice.send(new Int16Array(16000));
    assert.equal(await voice.transcript(), "w1");
    await voice.destroy();
    await refused(4102, voice.begin());
  }));

test("without an engine for speech a node that speaks is mute", () =>
  withClient(async (client) => {
    const agent = await client.createAgent(
      graph(
        ["say", { type: "CannedResponseParams", inline_strings: ["Hush."], default_exit: "aloud" }],
        ["aloud", { type: "SpeakParams" }],
      ),
    );
    const sounds: Sound[] = [];
    const turn = await agent.ask("?", { onSound: (sound) => sounds.push(sound) });
    assert.deepEqual(sounds, []);
    assert.equal(turn.sound, null);
  }));

test("after a lost connection everything is there again", async () => {
  const url = new URL(ADDRESS.includes("://") ? ADDRESS : `tcp://${ADDRESS}`);
  const road = await Road.to(Number(url.port));
  const near = ADDRESS.includes("://") ? `ws://127.0.0.1:${road.port}` : `127.0.0.1:${road.port}`;
  const heard: string[] = [];
  let back!: () => void;
  const isBack = new Promise<void>((done) => (back = done));
  const options: ClientOptions = {
    reconnect: { attempts: 50, firstMs: 10, longestMs: 50 },
    onLost: (error) => heard.push(`lost ${error.code}`),
    onConnected: (again) => {
      heard.push(again ? "again" : "first");
      if (again) back();
    },
  };
  try {
    await withClient(
      async (client) => {
        await client.createStorage("lines", ["From a storage."]);
        const canned = await client.createAgent(
          graph(["say", { type: "CannedResponseParams", string_storage: "lines" }]),
        );
        const slow = await echo(client, "mock-slow");
        const agent = await echo(client);
        await agent.ask("before");
        await client.createStorage("two", ["Changed."]);
        await canned.changeSome("say", { string_storage: "two" });
        const voice = await client.createVoiceInput();
        await voice.begin();
        const session = client.sessionId;
        const waiting = slow.send("word ".repeat(2000), { onText: () => road.block(true) });
        await refused(1002, waiting.result());
        await refused(1002, voice.transcript());
        road.block(false);
        await isBack;
        assert.notEqual(client.sessionId, session);
        assert.equal((await canned.ask("?")).text, "Changed.");
        assert.equal((await agent.ask("after")).text, "You said: after");
        assert.deepEqual(
          (await agent.history()).map((entry) => entry.text),
          ["before", "You said: before", "after", "You said: after"],
        );
        await voice.begin({ agent });
        await voice.send(loud(1));
        assert.equal(await voice.end(), "w1");
        assert.deepEqual(heard, ["first", "lost 1002", "again"]);
      },
      options,
      near,
    );
  } finally {
    road.close();
  }
});

test("a client that is closed says so, to all who wait and who come", async () => {
  const client = await connect(ADDRESS);
  const agent = await echo(client, "mock-slow");
  const reply = agent.send("word ".repeat(2000), { onText: () => client.close() });
  await refused(1002, reply.result());
  await refused(1002, client.listModels());
  assert.ok(!client.connected);
});
