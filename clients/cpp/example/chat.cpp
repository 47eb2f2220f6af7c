// Talks with Berta, who keeps a gate: chat [HOST:PORT] [MODEL]
//
// Without HOST:PORT it starts a server of its own, which ends with it; `trunkline` must be in PATH then. Without MODEL
// she runs on the mock engine, which repeats what you say, and opens the gate when you say `open_gate`. The smallest
// model, `smollm2-135m`, neither stays Berta nor opens the gate only when it should: see "Which model" in
// docs/how-to/serve-local-models-to-a-game.md.

#include "../tryll.hpp"

#include <cstdio>
#include <cstdlib>
#include <iostream>

int main(int count, char **arguments) {
  tryll::ManagedServer server;
  tryll::Options options;
  std::string address, model;
  for (int each = 1; each < count; ++each) {
    const std::string word = arguments[each];
    // A model of a hub has a colon, too: ORG/REPO:FILE.
    (word.find(':') != std::string::npos && word.find('/') == std::string::npos ? address : model) = word;
  }
  if (!address.empty()) {
    options.host = address.substr(0, address.rfind(':'));
    options.port = static_cast<std::uint16_t>(std::atoi(address.c_str() + address.rfind(':') + 1));
  } else {
    if (const auto error = server.start()) return std::fprintf(stderr, "%s\n", error.message.c_str()), 1;
    options.host = server.host();
    options.port = server.port();
  }
  if (!model.empty()) {
    options.config.inference_engine = tryll::InferenceEngine::LlamaCpp;
    options.config.allow_auto_model_downloading = true;
  }

  tryll::Client client(options);
  if (const auto connected = client.connect().wait(); !connected)
    return std::fprintf(stderr, "%s\n", connected.error.message.c_str()), 1;

  // First a model decides whether to use a tool. If it does not, the next node answers.
  tryll::ToolCallParams tools;
  tools.tools = {{"open_gate", "Opens the gate.", {}}};
  tools.notify_client = true;
  tools.no_tool_called_exit = "answer";
  tryll::GenerateParams answer;
  answer.system_prompt = "You are Berta, the keeper of a gate. Answer in one sentence.";
  answer.stream = true;
  tryll::GraphDescription graph{{{"tools", tools}, {"answer", answer}}, "tools"};

  tryll::AgentOptions agent_options;
  agent_options.default_model = model.empty() ? "mock" : model;
  agent_options.progress = [](const tryll::DownloadProgress &progress) {
    std::fprintf(stderr, "%s: %.0f %%\n", progress.model_name.c_str(), static_cast<double>(progress.percent));
  };
  const auto berta = client.create_agent(graph, agent_options).wait();
  if (!berta) return std::fprintf(stderr, "%s\n%s\n", berta.error.message.c_str(), berta.error.advice()), 1;

  tryll::TurnCallbacks hear;
  hear.text = [](const std::string &piece) { std::fputs(piece.c_str(), stdout), std::fflush(stdout); };
  hear.tool_call = [](const tryll::ToolCall &call) {
    if (call.name == "open_gate") std::fputs("* The gate opens.", stdout);
  };
  std::string line;
  while (std::fputs("> ", stdout), std::fflush(stdout), std::getline(std::cin, line)) {
    const auto turn = berta->send(line, hear);
    // A game draws here, once for each frame, and calls `client.update()`.
    while (!turn.done()) client.wait(1.0 / 60);
    if (!turn.result()) std::fprintf(stderr, "%s\n", turn.result().error.message.c_str());
    std::fputs("\n", stdout);
  }
  return 0;
}
