// The whole API, used. `api PORT` needs a server with the Mock engines; the other modes are each for a server that a test
// makes: tests/clients/test_cpp.py says what it does. Exits with 1, and says where, when something is not as promised.

#include "../tryll.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <thread>

namespace {

#define CHECK(condition)                                                          \
  do {                                                                            \
    if (!(condition)) {                                                           \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                               \
    }                                                                             \
  } while (false)

template <class T> T good(const tryll::Result<T> &result, int line) {
  if (!result) {
    std::fprintf(stderr, "line %d: %d %s\n", line, result.error.code, result.error.message.c_str());
    std::exit(1);
  }
  return result.value;
}
#define GOOD(pending) good((pending).wait(), __LINE__)
#define CODE(pending) ((pending).wait().error.code)

tryll::Options options_for(const char *port) {
  tryll::Options options;
  options.port = static_cast<std::uint16_t>(std::atoi(port));
  return options;
}

tryll::GraphDescription echo() {
  tryll::GenerateParams say;
  say.stream = true;
  return {{{"say", say}}, "say"};
}

tryll::AgentOptions on(const char *model) {
  tryll::AgentOptions options;
  options.default_model = model;
  return options;
}

/// A second of a tone, for each second.
std::vector<std::int16_t> tone(int milliseconds) {
  std::vector<std::int16_t> samples;
  for (int at = 0; at < 16 * milliseconds; ++at)
    samples.push_back(static_cast<std::int16_t>(8000 * std::sin(2 * 3.14159265 * 440 * at / 16000)));
  return samples;
}

// ---- Against a real server ----

void session(tryll::Client &client) {
  CHECK(CODE(client.health()) == tryll::Code::ConnectionDropped);
  CHECK(client.update() == 0);
  int connected = 0;
  client.on_connected = [&connected](bool again) { connected += again ? 100 : 1; };
  GOOD(client.connect());
  GOOD(client.connect());
  CHECK(connected == 1 && client.connection() == tryll::Connection::Ready);
  CHECK(client.session_id() != 0);
  CHECK(client.has_extension("history") && !client.has_extension("wings"));
  CHECK(GOOD(client.health()).status == "ready");
  tryll::ConfigureSessionRequest config;
  config.game_name = "test";
  GOOD(client.configure(config));
  const auto answer = GOOD(client.ask(tryll::HealthRequest{}));
  CHECK(std::get_if<tryll::HealthResponse>(&answer));
  CHECK(CODE(client.ask(tryll::AudioBufferFrame{})) == tryll::Code::InvalidParamValue);
}

void storages(tryll::Client &client) {
  GOOD(client.create_storage("list", {"a", "b"}));
  CHECK(CODE(client.create_storage("list", {"a"})) == tryll::Code::StringStorageAlreadyExists);
  tryll::StorageOptions keyed;
  keyed.keys = {"x", "y"};
  GOOD(client.create_storage("map", {"1", "2"}, keyed));
  GOOD(client.destroy_storage("list"));
  GOOD(client.create_storage("list", {"a"}));
  tryll::EmbeddedStorageOptions embedded;
  embedded.embedding_model = "any";
  CHECK(GOOD(client.create_embedded_storage("lore", {"the mill", "the well"}, embedded)).record_count == 2);
  GOOD(client.destroy_embedded_storage("lore"));
  embedded.records_json = R"({"records": [{"text": "the mill"}], "fields": []})";
  const auto records = client.create_embedded_storage("records", {}, embedded).wait();
  CHECK(records || *records.error.name());
  const auto file = client.create_storage("file", {}, {{}, {}, "../outside.txt"}).wait();
  CHECK(file.error.code == tryll::Code::StorageOutsideRoot);
  CHECK(!std::strcmp(file.error.name(), "StorageOutsideRoot") && *file.error.advice());
}

void models(tryll::Client &client) {
  const auto all = GOOD(client.list_models());
  CHECK(!all.empty() && !all.front().name.empty());
  CHECK(CODE(client.ensure_model("nobody-has-this")) == tryll::Code::DownloadNotAvailable);
  CHECK(CODE(client.download_model("nobody-has-this")) == tryll::Code::DownloadNotAvailable);
  CHECK(client.load_model("nobody-has-this").wait().error);
  CHECK(client.delete_model("nobody-has-this").wait().error);
  client.unload_model("nobody-has-this").wait();
}

void turns(tryll::Client &client) {
  const auto agent = GOOD(client.create_agent(echo(), on("any")));
  std::string pieces, order;
  int heard = 0;
  tryll::TurnCallbacks all;
  all.done = [&heard](const tryll::Result<tryll::TurnResult> &result) { heard += result.ok(); };
  agent.listen(all);
  tryll::TurnCallbacks hear;
  hear.text = [&](const std::string &piece) { pieces += piece, order += 't'; };
  hear.done = [&](const tryll::Result<tryll::TurnResult> &result) { order += result ? 'd' : 'e'; };
  const auto result = GOOD(agent.send("Gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80", hear));
  CHECK(result.text == "You said: Gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80" && result.succeeded());
  CHECK(pieces == result.text && order == "ttttd" && heard == 1);
  CHECK(result.tokens_generated == 4);
  CHECK(CODE(agent.send("\xff")) == tryll::Code::InvalidParamValue);
  CHECK(CODE(agent.send(std::string(2 << 20, 'x'))) == tryll::Code::FrameTooLarge);
  // As a game does it: nothing waits.
  const auto polled = agent.send("once more");
  bool called = false;
  polled.then([&called](const tryll::Result<tryll::TurnResult> &found) { called = found.ok(); });
  while (!polled.done()) client.wait(0.05);
  CHECK(called && polled.result()->text == "You said: once more");
  // From within a callback, also with waiting.
  std::string inner;
  tryll::TurnCallbacks nested;
  nested.done = [&](const tryll::Result<tryll::TurnResult> &) { inner = GOOD(agent.send("inner")).text; };
  GOOD(agent.send("outer", nested));
  CHECK(inner == "You said: inner");
  // Several at once.
  std::vector<tryll::Pending<tryll::TurnResult>> many;
  std::vector<tryll::Agent> agents;
  for (int number = 0; number < 8; ++number) agents.push_back(GOOD(client.create_agent(echo(), on("any"))));
  for (const auto &each : agents) many.push_back(each.send(std::to_string(each.id())));
  for (std::size_t number = 0; number < many.size(); ++number)
    CHECK(GOOD(many[number]).text == "You said: " + std::to_string(agents[number].id()));
  for (const auto &each : agents) GOOD(each.destroy());
}

/// Words that `mock-slow` takes ten seconds to say: nobody is late who cancels that.
std::string long_story() {
  std::string words;
  for (int number = 0; number < 500; ++number) words += " word";
  return words;
}

void agents(tryll::Client &client) {
  tryll::GenerateParams nowhere;
  nowhere.default_exit = "nowhere";
  CHECK(CODE(client.create_agent({{{"say", nowhere}}, "say"}, on("any"))) == tryll::Code::InvalidExitTarget);
  const auto agent = GOOD(client.create_agent(echo(), on("mock-slow")));
  const auto first = agent.send(std::string(4000, ' ') + "a very long story " + std::string(2000, 'x') + long_story());
  CHECK(CODE(agent.send("me, too")) == tryll::Code::AgentBusy);
  CHECK(!first.done());
  GOOD(agent.cancel());
  CHECK(GOOD(first).cancelled());
  GOOD(agent.restore({{"user", "I am Ada."}, {"assistant", "Hello Ada."}}));
  auto history = GOOD(agent.history());
  CHECK(history.size() == 2 && history[1].text == "Hello Ada.");
  GOOD(agent.restore({{"user", "And Bob?"}, {"assistant", "Yes."}}, true));
  CHECK(GOOD(agent.history()).size() == 4);
  tryll::GenerateParams changed;
  changed.system_prompt = "Be brief.";
  changed.stream = true;
  GOOD(agent.change("say", changed));
  CHECK(CODE(agent.change("shout", changed)) == tryll::Code::UnknownNode);
  changed.model_name = "other";
  CHECK(CODE(agent.change("say", changed)) == tryll::Code::ParamNotMutable);
  const auto interrupted = agent.send("and on" + long_story());
  GOOD(agent.destroy());
  CHECK(GOOD(interrupted).cancelled());
  CHECK(CODE(agent.send("still there?")) == tryll::Code::AgentAlreadyDestroyed);
  CHECK(CODE(agent.destroy()) == tryll::Code::AgentAlreadyDestroyed);
  CHECK(CODE(tryll::Agent().send("nobody")) == tryll::Code::InvalidAgentId);
}

void events(tryll::Client &client) {
  tryll::ToolCallParams tools;
  tools.tools = {{"open_gate", "Opens the gate.", {{"which", "string", "The gate."}}}};
  tools.notify_client = true;
  tools.no_tool_called_exit = "intent";
  tryll::ClassifyIntentLLMParams intent;
  intent.intents_ids = "greeting\nfarewell";
  intent.intents_prompt = "greeting: the visitor says hello\nfarewell: the visitor says goodbye";
  intent.notify_client = true;
  intent.found_exit = "say";
  intent.not_found_exit = "say";
  tryll::GenerateParams say;
  const tryll::GraphDescription graph{{{"tools", tools}, {"intent", intent}, {"say", say}}, "tools"};
  const auto agent = GOOD(client.create_agent(graph, on("any")));
  std::vector<tryll::ToolCall> calls;
  std::vector<tryll::NodeEvent> others;
  tryll::TurnCallbacks hear;
  hear.tool_call = [&](const tryll::ToolCall &call) { calls.push_back(call); };
  hear.event = [&](const tryll::NodeEvent &event) { others.push_back(event); };
  GOOD(agent.send("open_gate, \"please\"", hear));
  CHECK(calls.size() == 1 && calls[0].node == "tools" && calls[0].name == "open_gate");
  CHECK(calls[0].argument("which") == "open_gate, \"please\"" && calls[0].argument("why").empty());
  CHECK(others.empty());
  GOOD(agent.send("I say hello", hear));
  CHECK(calls.size() == 1 && others.size() == 1 && others[0].event_type == "intent_classified");
}

void voices(tryll::Client &client) {
  tryll::CreateVoiceInputRequest request;
  request.model_name = "any";
  request.vad_min_silence_ms = 200;
  const auto voice = GOOD(client.create_voice_input(request));
  const auto sound = tone(200), quiet = std::vector<std::int16_t>(16 * 400);
  CHECK(CODE(voice.end()) == tryll::Code::NoActiveUtterance);
  std::vector<int> kinds;
  voice.listen([&kinds](const tryll::WireTranscriptUpdate &update) { kinds.push_back(update.kind); });
  GOOD(voice.begin());
  CHECK(CODE(voice.begin()) == tryll::Code::UtteranceInProgress);
  CHECK(!voice.send(sound.data(), sound.size()));
  CHECK(GOOD(voice.end()) == "w1 w2" && GOOD(voice.end()) == "w1 w2");
  CHECK(!kinds.empty() && kinds.back() == tryll::TranscriptUpdateKind::UtteranceFinal);
  tryll::UtteranceOptions options;
  options.hands_free = true;
  GOOD(voice.begin(options));
  CHECK(!voice.send(sound.data(), sound.size()) && !voice.send(quiet.data(), quiet.size()));
  CHECK(GOOD(voice.transcript()) == "w1 w2");
  GOOD(voice.begin());
  GOOD(voice.cancel());
  CHECK(CODE(voice.transcript()) == tryll::Code::NoActiveUtterance);
  // What was said is answered, and nobody has sent it.
  options.hands_free = false;
  options.agent = GOOD(client.create_agent(echo(), on("any")));
  std::string pieces, whole;
  tryll::TurnCallbacks hear;
  hear.text = [&](const std::string &piece) { pieces += piece; };
  hear.done = [&](const tryll::Result<tryll::TurnResult> &result) { whole = result->text; };
  options.agent.listen(hear);
  for (int number = 0; number < 2; ++number) {
    pieces.clear(), whole.clear();
    GOOD(voice.begin(options));
    CHECK(!voice.send(sound.data(), sound.size()));
    CHECK(GOOD(voice.end()) == "w1 w2");
    while (whole.empty()) client.wait(0.05);
    CHECK(whole == "You said: w1 w2" && pieces == whole);
  }
  // More than one frame carries.
  const auto minute = tone(5000);
  GOOD(voice.begin());
  CHECK(!voice.send(minute.data(), minute.size()));
  const auto text = GOOD(voice.end());
  CHECK(text.size() > 3 && text.compare(text.size() - 3, 3, "w50") == 0);
  GOOD(voice.destroy());
  CHECK(CODE(voice.begin()) == tryll::Code::VoiceInputNotFound);
}

int api(const char *port) {
  bool called = false;
  {
    tryll::Client client(options_for(port));
    session(client);
    storages(client);
    models(client);
    turns(client);
    agents(client);
    events(client);
    voices(client);
    const auto agent = GOOD(client.create_agent(echo(), on("mock-slow")));
    const auto pending = agent.send("one two three four five six seven eight");
    int lost = 0;
    client.on_lost = [&lost](const tryll::Error &, bool) { ++lost; };
    client.close();
    CHECK(pending.done() && pending.result().error.code == tryll::Code::ConnectionDropped && !lost);
    CHECK(CODE(client.health()) == tryll::Code::ConnectionDropped);
    GOOD(client.connect());
    CHECK(CODE(agent.send("hello")) == tryll::Code::ConnectionDropped);
    const auto other = GOOD(client.create_agent(echo(), on("mock-slow")));
    tryll::TurnCallbacks hear;
    hear.done = [&called](const tryll::Result<tryll::TurnResult> &) { called = true; };
    other.send("nobody hears the end of this", hear).then([&called](const auto &) { called = true; });
  }
  CHECK(!called);
  return 0;
}

// ---- Against a server of a test's own ----

/// Says what connecting comes to.
int connect(const char *port) {
  auto options = options_for(port);
  options.connect_seconds = 5;
  tryll::Client client(options);
  const auto result = client.connect().wait();
  std::printf("%d %s\n", result.error.code, result.error.message.c_str());
  return 0;
}

/// Loses the connection again and again, and has a session again each time.
int lost(const char *port, int times) {
  auto options = options_for(port);
  options.config.game_name = "kept";
  options.reconnect.first_seconds = 0.01;
  options.reconnect.longest_seconds = 0.05;
  options.reconnect.attempts = 40;
  tryll::Client client(options);
  tryll::Agent agent;
  int made = 0, losses = 0;
  bool over = false;
  client.on_lost = [&](const tryll::Error &error, bool finally) {
    CHECK(error.code == tryll::Code::ConnectionDropped || finally);
    ++losses;
    over = finally;
  };
  client.on_connected = [&](bool again) {
    CHECK(again == (made > 0));
    if (again) CHECK(CODE(agent.send("to the old one")) == tryll::Code::ConnectionDropped);
    agent = GOOD(client.create_agent(echo()));
    ++made;
  };
  GOOD(client.connect());
  while (made <= times) {
    // The server hangs up in the middle of the turn, or of what comes before it.
    const auto result = agent.send("hello").wait();
    CHECK(result.error.code == tryll::Code::ConnectionDropped);
    while (client.connection() != tryll::Connection::Ready && !over) client.wait(0.05);
    CHECK(!over);
  }
  CHECK(losses == times);
  std::printf("%d\n", losses);
  std::fflush(stdout);
  // Tells the server that it may go, for good.
  client.health();
  while (!over) client.wait(0.05);
  CHECK(client.connection() == tryll::Connection::Idle);
  CHECK(CODE(client.health()) == tryll::Code::ConnectionFailed);
  CHECK(CODE(client.connect()) == tryll::Code::ConnectionFailed);
  return 0;
}

/// A turn with sound, a replaced answer, and an event of a type that is new.
int spoken(const char *port) {
  tryll::Client client(options_for(port));
  GOOD(client.connect());
  const auto agent = GOOD(client.create_agent(echo()));
  std::string heard;
  tryll::TurnCallbacks hear;
  hear.text = [&](const std::string &piece) { heard += "text " + piece + "\n"; };
  hear.replaced = [&](const std::string &text) { heard += "replaced " + text + "\n"; };
  hear.event = [&](const tryll::NodeEvent &event) { heard += "event " + event.event_type + "\n"; };
  hear.tool_call = [&](const tryll::ToolCall &call) {
    heard += "tool " + call.name;
    for (const auto &argument : call.arguments) heard += " " + argument.first + "=" + argument.second;
    heard += "\n";
  };
  hear.sound = [&](const tryll::Sound &sound) {
    heard += "sound " + std::to_string(sound.sample_rate) + " " + std::to_string(sound.channels);
    for (const auto sample : sound.samples) heard += " " + std::to_string(sample);
    heard += "\n";
  };
  hear.timing = [&](const tryll::TtsTimingFrame &) { heard += "timing\n"; };
  const auto result = GOOD(agent.send("hello", hear));
  std::printf("%sdone %s %d\n", heard.c_str(), result.text.c_str(), result.status);
  return 0;
}

/// A server that does not know all that it is asked for.
int unknown(const char *port) {
  tryll::Client client(options_for(port));
  GOOD(client.connect());
  const auto tell = [](const tryll::Error &error) { std::printf("%d %s\n", error.code, error.message.c_str()); };
  tryll::GenerateParams say;
  say.sampling.emplace().stop = {"END"};
  tell(client.create_agent({{{"say", say}}, "say"}).wait().error);
  say.sampling->stop.clear();
  say.sampling->lora.emplace_back();
  tell(client.create_agent({{{"say", say}}, "say"}).wait().error);
  const auto agent = GOOD(client.create_agent(echo()));
  tell(agent.cancel().wait().error);
  tell(agent.history().wait().error);
  tell(agent.restore({}).wait().error);
  tell(client.health().wait().error);
  tryll::SpeakParams speak;
  speak.timings = true;
  tell(agent.change("say", speak).wait().error);
  speak.timings = false;
  speak.pronunciations = "words";
  tell(agent.change("say", speak).wait().error);
  tryll::EmbeddedStorageOptions storage;
  storage.records_json = "{}";
  tell(client.create_embedded_storage("a", {}, storage).wait().error);
  storage = {};
  storage.memory_path = "a";
  tell(client.create_embedded_storage("a", {}, storage).wait().error);
  speak.pronunciations = "";
  GOOD(agent.change("say", speak));
  return 0;
}

/// Models that are fetched, with progress.
int fetched(const char *port) {
  tryll::Client client(options_for(port));
  GOOD(client.connect());
  const auto told = [](const tryll::DownloadProgress &progress) {
    std::printf("%s %.0f\n", progress.model_name.c_str(), static_cast<double>(progress.percent));
  };
  GOOD(client.ensure_model("absent", told));
  GOOD(client.ensure_model("absent", told));
  CHECK(CODE(client.download_model("broken", told)) == tryll::Code::DownloadFailed);
  GOOD(client.ensure_model("busy", told));
  tryll::AgentOptions options;
  options.progress = told;
  GOOD(client.create_agent(echo(), options));
  return 0;
}

/// A server that is silent, and then too late.
int late(const char *port) {
  auto options = options_for(port);
  // Of each two the second is answered, and must be in time on a busy machine.
  options.model_seconds = 2;
  options.turn_seconds = 2;
  tryll::Client client(options);
  GOOD(client.connect());
  CHECK(CODE(client.create_agent(echo())) == tryll::Code::Timeout);
  // The server answers the first with that.
  const auto agent = GOOD(client.create_agent(echo()));
  CHECK(CODE(agent.send("hello")) == tryll::Code::Timeout);
  // What comes of the old turn harms no new one.
  CHECK(GOOD(agent.send("again")).text == "again");
  GOOD(client.health());
  return 0;
}

/// What the server sends is not read for a while, and nothing is lost.
int slow(const char *port) {
  tryll::Client client(options_for(port));
  GOOD(client.connect());
  const auto agent = GOOD(client.create_agent(echo()));
  std::size_t bytes = 0, updates = 0;
  tryll::TurnCallbacks hear;
  hear.text = [&](const std::string &piece) { bytes += piece.size(); };
  const auto pending = agent.send(std::string(500000, 'x'), hear);
  while (!pending.done()) updates += client.wait(0.01) > 0;
  CHECK(GOOD(pending).text.size() == bytes);
  std::printf("%zu\n", bytes);
  return 0;
}

/// How often the threads of this process have slept, but for the one that asks. Linux knows.
long sleeps_of_others() {
  long all = 0;
  const auto count = [](const std::filesystem::path &status) {
    std::ifstream lines(status);
    for (std::string line; std::getline(lines, line);)
      if (line.rfind("voluntary_ctxt_switches:", 0) == 0) return std::atol(line.c_str() + line.find(':') + 1);
    return 0L;
  };
  for (const auto &thread : std::filesystem::directory_iterator("/proc/self/task")) all += count(thread.path() / "status");
  return all - count("/proc/thread-self/status");
}

/// Looks for each frame that it would draw, or waits, or does both: says how its turns ended, and how often that woke a thread.
int playing(const std::string &way, const char *port) {
  using Clock = std::chrono::steady_clock;
  constexpr int turns = 100;
  // A game that is kept from its processor for a quarter of a second has a thread of the client read, and that one looks
  // at the clock as often. Only turns that nothing held up tell what a piece wakes, and not those right behind others.
  constexpr std::chrono::milliseconds quick{50};
  auto options = options_for(port);
  options.reconnect.attempts = 0;
  tryll::Client client(options);
  tryll::Agent agent;
  int left = turns;
  long counted = 0, slept = 0, asleep = 0;
  bool over = false, calm = false;
  Clock::time_point began;
  std::function<void()> talk;
  talk = [&] {
    asleep = sleeps_of_others();
    began = Clock::now();
    agent.send("one two three").then([&](const tryll::Result<tryll::TurnResult> &result) {
      if (!result) return;
      CHECK(result.value.text == "one two three ");
      const bool was_calm = calm;
      calm = Clock::now() < began + quick;
      if (was_calm && calm) {
        ++counted;
        slept += sleeps_of_others() - asleep;
      }
      --left;
      talk();
    });
  };
  client.on_connected = [&](bool) {
    client.create_agent(echo()).then([&](const tryll::Result<tryll::Agent> &made) {
      agent = good(made, __LINE__);
      talk();
    });
  };
  client.on_lost = [&](const tryll::Error &error, bool) {
    std::printf("%d turns, %s, then %d %s\n", turns - left, 2 * slept <= counted ? "few woke a thread" : "most woke a thread",
                error.code, error.message.c_str());
    over = true;
  };
  client.connect().then([](const tryll::Result<tryll::Nothing> &connected) { good(connected, __LINE__); });
  while (!over) {
    if (way == "waiting") {
      client.wait(1);
      continue;
    }
    if (way == "looking") {
      client.update();
    } else {
      client.wait(0);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
  }
  return 0;
}

// ---- The server of a game ----

tryll::ServerOptions server_options(int count, char **words) {
  tryll::ServerOptions options;
  options.program = words[0];
  options.arguments.assign(words + 1, words + count);
  options.ws = true;
  options.more_arguments = {"--metrics", "127.0.0.1:0"};
  if (const char *log = std::getenv("SERVER_LOG")) options.log_file = log;
  return options;
}

int managed(int count, char **words) {
  tryll::ManagedServer server;
  CHECK(!server.running());
  for (int times = 0; times < 2; ++times) {
    const auto error = server.start(server_options(count, words));
    if (error) {
      std::printf("%d %s\n", error.code, error.message.c_str());
      CHECK(!server.running() && server.port() == 0);
      return 0;
    }
    CHECK(server.running() && server.port() != 0 && server.id() != 0);
    CHECK(server.ws_port() != 0 && server.ws_port() != server.port());
    CHECK(server.metrics_port() != 0 && server.metrics_port() != server.ws_port());
    tryll::Options options;
    options.host = server.host();
    options.port = server.port();
    tryll::Client client(options);
    GOOD(client.connect());
    CHECK(GOOD(client.health()).status == "ready");
    server.stop();
    CHECK(!server.running() && server.port() == 0 && server.ws_port() == 0 && server.metrics_port() == 0);
    server.stop();
  }
  std::printf("stopped\n");
  return 0;
}

/// Starts a server, says which, and waits to be killed.
int killed(int count, char **words) {
  tryll::ManagedServer server;
  CHECK(!server.start(server_options(count, words)));
  std::printf("%ld\n", server.id());
  std::fflush(stdout);
  return std::getchar() == EOF ? 0 : 1;
}

}  // namespace

int main(int count, char **arguments) {
  if (count < 3) return 2;
  const std::string mode = arguments[1];
  if (mode == "managed") return managed(count - 2, arguments + 2);
  if (mode == "killed") return killed(count - 2, arguments + 2);
  if (mode == "lost") return lost(arguments[2], count > 3 ? std::atoi(arguments[3]) : 1);
  if (mode == "looking" || mode == "waiting" || mode == "glancing") return playing(mode, arguments[2]);
  const std::map<std::string, int (*)(const char *)> modes = {
      {"api", api}, {"connect", connect}, {"spoken", spoken}, {"fetched", fetched}, {"unknown", unknown}, {"late", late}, {"slow", slow}};
  const auto found = modes.find(mode);
  return found == modes.end() ? 2 : found->second(arguments[2]);
}
