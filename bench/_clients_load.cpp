// The C++ client under load, for bench/clients.py: _clients_load PORT CONNECTIONS
//
// Does as a game does: one thread, which updates each connection once for each frame that it would draw. Answers each line
// of its input, a number of turns, with a line when each connection has had so many.

#include "../clients/cpp/tryll.hpp"

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <thread>

namespace {

const std::string text = "Who lives in the old mill by the river, and who has the key to it?";
const std::string answer = "You said: " + text;
constexpr auto one_frame = std::chrono::microseconds(1000000 / 60);

template <class T> T good(const tryll::Result<T> &result) {
  if (!result) {
    std::fprintf(stderr, "%d %s\n", result.error.code, result.error.message.c_str());
    std::exit(1);
  }
  return *result;
}

struct Player {
  explicit Player(std::uint16_t port) : client(options_for(port)) {
    good(client.connect().wait());
    tryll::GenerateParams say;
    say.model_name = "mock";
    say.stream = true;
    agent = good(client.create_agent({{{"say", say}}, "say"}).wait());
  }

  void play(int turns) {
    left = turns;
    heard.clear();
    tryll::TurnCallbacks hear;
    hear.text = [this](const std::string &piece) { heard += piece; };
    hear.done = [this](const tryll::Result<tryll::TurnResult> &result) {
      good(result);
      if (heard != answer) std::exit(2);
      if (--left) play(left);
    };
    agent.send(text, std::move(hear));
  }

  static tryll::Options options_for(std::uint16_t port) {
    tryll::Options options;
    options.port = port;
    return options;
  }

  tryll::Client client;
  tryll::Agent agent;
  std::string heard;
  int left = 0;
};

}  // namespace

int main(int, char **arguments) {
  std::vector<std::unique_ptr<Player>> players;
  for (int number = std::atoi(arguments[2]); number > 0; --number)
    players.push_back(std::make_unique<Player>(static_cast<std::uint16_t>(std::atoi(arguments[1]))));
  int turns = 0;
  while (std::cin >> turns) {
    for (auto &player : players) player->play(turns);
    for (bool playing = true; playing;) {
      std::this_thread::sleep_for(one_frame);
      playing = false;
      for (auto &player : players) {
        player->client.update();
        playing = playing || player->left;
      }
    }
    std::puts("done");
    std::fflush(stdout);
  }
  return 0;
}
