// The conversation with the server: one session, an agent for each character, and an ear.

import { Client, InferenceEngine, ModelStatus, TryllError, webSocket } from "../client/index.js";

// How often a closed door is tried.
const RETRY_MS = 2000;
const SAMPLE_RATE = 16000;

export class Session {
  // `heard` has: open(about), closed(error), status(text), and listeners(character), which hear all turns of it.
  constructor(url, wishes, heard) {
    this.url = url;
    this.wishes = wishes;
    this.heard = heard;
    this.agents = new Map();
    this.ear = null;
    this.engines = null;
  }

  // Connects, as often as it takes, and lets the characters in. Never fails: what is wrong is told.
  async open(characters) {
    for (;;) {
      let client = null;
      try {
        client = new Client(webSocket(this.url), {
          reconnect: { attempts: Infinity, firstMs: 200, longestMs: RETRY_MS },
          onLost: (error) => this.heard.closed(error),
          onConnected: (again) => again && this.heard.open(this.about),
        });
        await client.connect();
        await this.furnish(client, characters);
        this.client = client;
        this.heard.open(this.about);
        return;
      } catch (error) {
        client?.close();
        if (!(error instanceof TryllError)) throw error;
        this.heard.closed(error);
        await new Promise((done) => setTimeout(done, RETRY_MS));
      }
    }
  }

  async furnish(client, characters) {
    this.agents.clear();
    this.engines = chosen(await client.listModels(), this.wishes);
    const { real, ears, voices } = this.engines;
    const engine = real ? InferenceEngine.LlamaCpp : InferenceEngine.Mock;
    await client.configure({
      inference_engine: engine,
      embedding_engine: engine,
      stt_engine: ears ? InferenceEngine.SherpaOnnx : InferenceEngine.Mock,
      tts_engine: voices.length ? InferenceEngine.SherpaOnnx : InferenceEngine.Mock,
      game_name: "tavern",
    });
    for (const character of characters) {
      this.heard.status(`${character.name} comes in ...`);
      const { storages, agent } = await (await fetch(character.graph)).json();
      await client.bring(storages);
      const made = await client.createAgent(
        spoken(agent.graph, voiceFor(character, voices), client.extensions.includes("timings")),
        {
          defaultModel: this.wishes.model || agent.default_model_name,
        },
      );
      made.listen(this.heard.listeners(character));
      this.agents.set(character.id, made);
    }
  }

  // What runs the characters, for people.
  get about() {
    const { real, ears, voices } = this.engines;
    const brain = real ? this.wishes.model || "smollm2-135m" : "the mock engine, which mostly repeats";
    return `on ${brain}${ears ? `, hears with ${ears}` : ""}${voices.length ? `, speaks with ${voices[0]}` : ""}`;
  }

  say(character, text) {
    return this.agents.get(character.id).send(text);
  }

  async stop(character) {
    await this.agents.get(character.id).cancel();
  }

  // Begin to listen for a character. Gives what takes the sound, and what ends it.
  async listen(character, onUpdate) {
    this.ear ??= await this.client.createVoiceInput(this.engines.ears, { sampleRate: SAMPLE_RATE });
    const ear = this.ear;
    await ear.begin({ agent: this.agents.get(character.id), onUpdate });
    return {
      send: (pcm) => ear.send(pcm).catch(() => {}),
      end: () => ear.end(),
    };
  }
}

// The engines: real ones if their models are on the server's disk, unless the page's address wishes otherwise.
function chosen(models, wishes) {
  const here = models.filter(({ status }) => status !== ModelStatus.Absent && status !== ModelStatus.Downloading);
  const named = (type) => here.filter((model) => model.model_type === type).map((model) => model.name);
  const brains = [...named("language"), ...named("embedding")];
  const mock = wishes.engine === "mock";
  const wanted = [wishes.model || "smollm2-135m", "minilm-l6"];
  const real = wishes.engine === "real" || (!mock && wanted.every((name) => brains.includes(name)));
  const voices = named("tts").sort((one, other) => one.includes("espeak") - other.includes("espeak"));
  const pick = (wish, found) => (wish === "none" ? [] : wish ? [wish] : mock ? [] : found);
  return { real, ears: pick(wishes.ears, named("stt"))[0] ?? "", voices: pick(wishes.voice, voices) };
}

function voiceFor(character, voices) {
  return voices.find((name) => character.voices.test(name)) ?? voices[0] ?? "";
}

// The graph, with this voice in the nodes that speak; they also say when the mouth does what, if the server can.
function spoken(graph, voice, timings) {
  const nodes = graph.nodes.map((node) =>
    node.params.type === "SpeakParams" ? { ...node, params: { ...node.params, tts_model_name: voice, timings } } : node,
  );
  return { ...graph, nodes };
}
