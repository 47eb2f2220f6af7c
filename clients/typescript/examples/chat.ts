/**
 * The keeper of a gate, in a terminal: answers in pieces, and opens the gate.
 *
 *     node dist/examples/chat.js                      starts a server of its own, with the mock engine
 *     node dist/examples/chat.js 127.0.0.1:9100       on a server that runs
 *     node dist/examples/chat.js ws://127.0.0.1:9101
 *     node dist/examples/chat.js --real               with a small language model, which is fetched on first use
 */

import { createInterface } from "node:readline";

import { InferenceEngine, TryllError, TurnFailed, type GraphDescription, type Init } from "trunkline-tryll";
import { connect, ManagedServer } from "trunkline-tryll/node";

const GRAPH: Init<GraphDescription> = {
  start_node: "tools",
  nodes: [
    {
      name: "tools",
      params: {
        type: "ToolCallParams",
        system_prompt: "Read the message and call the one tool that it asks for.",
        tools: [{ name: "gate", description: "Opens the gate, to let somebody in or through." }],
        notify_client: true,
        sampling: { temperature: 0 },
        tool_called_exit: "agree",
        no_tool_called_exit: "answer",
      },
    },
    {
      name: "agree",
      params: {
        type: "CannedResponseParams",
        inline_strings: ["As you wish, traveller.", "Very well. Mind the step."],
      },
    },
    {
      name: "answer",
      params: {
        type: "GenerateParams",
        system_prompt: "You are Berta, the keeper of a gate. Answer in one short sentence.",
        stream: true,
        sampling: { max_tokens: 60 },
      },
    },
  ],
};

const real = process.argv.includes("--real");
const address = process.argv.slice(2).find((word) => !word.startsWith("--"));
const engine = real ? InferenceEngine.LlamaCpp : InferenceEngine.Mock;

async function main(): Promise<void> {
  const server = address === undefined ? await ManagedServer.start() : null;
  try {
    const client = await connect(address ?? server!.address, {
      config: { inference_engine: engine, allow_auto_model_downloading: true, game_name: "chat" },
    });
    try {
      const berta = await client.createAgent(GRAPH, {
        defaultModel: "smollm2-135m",
        onProgress: ({ model_name, percent }) => console.error(`${model_name}: ${percent.toFixed(0)} %`),
      });
      if (!real)
        console.log("This is the mock engine: it says back what it hears, and opens the gate at the word `gate`.");
      console.log("Say something; an empty line ends the conversation.");
      const lines = createInterface({ input: process.stdin });
      process.stdout.write("> ");
      for await (const line of lines) {
        if (!line.trim()) break;
        try {
          const reply = berta.send(line, {
            onText: (piece) => process.stdout.write(piece),
            onToolCall: (call) =>
              console.log(call.name === "gate" ? "* The gate opens." : `* No such thing: ${call.name}`),
          });
          await reply.result();
          console.log();
        } catch (error) {
          // The conversation goes on.
          if (!(error instanceof TurnFailed)) throw error;
          console.log(`(${error.message})`);
        }
        process.stdout.write("> ");
      }
      lines.close();
    } finally {
      client.close();
    }
  } finally {
    await server?.stop();
  }
}

try {
  await main();
} catch (error) {
  if (!(error instanceof TryllError)) throw error;
  console.error(`[${error.code}] ${error.message}\n${error.advice}`);
  process.exitCode = 1;
}
