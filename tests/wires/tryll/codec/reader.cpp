// Reads frames from standard input, verifies each and prints what a turn's frames hold; then writes some of its own.
//
// One line for each frame: its tag and, for the frames of a turn, the fields, texts in hexadecimal.
// After the input, one line for each frame that it writes, in hexadecimal, with its length in front.

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "messages_generated.h"

namespace {

std::string hex(const uint8_t *data, size_t size) {
  std::string out;
  char digits[3];
  for (size_t at = 0; at < size; ++at) {
    std::snprintf(digits, sizeof digits, "%02x", data[at]);
    out += digits;
  }
  return out.empty() ? "-" : out;
}

std::string text(const flatbuffers::String *value) {
  return value ? hex(value->Data(), value->size()) : "null";
}

void print(const Tryll::Message &message) {
  std::printf("%u", static_cast<unsigned>(message.body_type()));
  if (auto send = message.body_as_SendMessageRequest()) {
    std::printf(" %llu %llu %s", (unsigned long long)send->request_id(), (unsigned long long)send->agent_id(),
                text(send->text()).c_str());
  } else if (auto answer = message.body_as_AnswerText()) {
    std::printf(" %llu %llu %s %d %d", (unsigned long long)answer->request_id(),
                (unsigned long long)answer->agent_id(), text(answer->text()).c_str(), answer->is_delta(),
                answer->is_final());
  } else if (auto done = message.body_as_TurnComplete()) {
    std::printf(" %llu %llu %d %s %d %d %d", (unsigned long long)done->request_id(),
                (unsigned long long)done->agent_id(), static_cast<int>(done->status()),
                text(done->debug_info()).c_str(), done->tokens_generated(), done->tokens_prompt(),
                done->tokens_cached());
  } else if (auto event = message.body_as_NodeEvent()) {
    std::printf(" %llu %s %s", (unsigned long long)event->agent_id(), text(event->node_name()).c_str(),
                text(event->event_type()).c_str());
    for (auto pair : *event->kv_pairs()) {
      std::printf(" %s %s", text(pair->key()).c_str(), text(pair->value()).c_str());
    }
  }
  std::printf("\n");
}

void write(flatbuffers::FlatBufferBuilder &builder, Tryll::MessageBody tag, flatbuffers::Offset<void> body) {
  builder.Finish(Tryll::CreateMessage(builder, tag, body));
  uint32_t size = builder.GetSize();
  uint8_t length[4] = {uint8_t(size), uint8_t(size >> 8), uint8_t(size >> 16), uint8_t(size >> 24)};
  std::printf("%s%s\n", hex(length, 4).c_str(), hex(builder.GetBufferPointer(), size).c_str());
  builder.Clear();
}

}  // namespace

int main() {
  uint8_t length[4];
  while (std::fread(length, 1, 4, stdin) == 4) {
    size_t size = length[0] | length[1] << 8 | length[2] << 16 | size_t(length[3]) << 24;
    // A buffer of its own, so that alignment counts from the beginning of the payload.
    std::vector<uint64_t> buffer(size / 8 + 1);
    auto payload = reinterpret_cast<uint8_t *>(buffer.data());
    if (std::fread(payload, 1, size, stdin) != size) return 2;
    flatbuffers::Verifier verifier(payload, size);
    if (!Tryll::VerifyMessageBuffer(verifier)) {
      std::printf("refused\n");
      continue;
    }
    print(*Tryll::GetMessage(payload));
  }
  std::printf("own\n");
  flatbuffers::FlatBufferBuilder builder;
  for (const char *said : {"", "a", "abcdefg", "gr\xc3\xbc\xc3\x9f dich"}) {
    auto send = Tryll::CreateSendMessageRequestDirect(builder, 1, 18446744073709551615ULL, said);
    write(builder, Tryll::MessageBody_SendMessageRequest, send.Union());
    auto answer = Tryll::CreateAnswerTextDirect(builder, 1, 2, said, true, false);
    write(builder, Tryll::MessageBody_AnswerText, answer.Union());
    auto done = Tryll::CreateTurnCompleteDirect(builder, 1, 2, Tryll::TurnStatus_Cancelled, said, 3);
    write(builder, Tryll::MessageBody_TurnComplete, done.Union());
    std::vector<flatbuffers::Offset<Tryll::NodeEventKeyValue>> pairs{
        Tryll::CreateNodeEventKeyValueDirect(builder, "key", said), Tryll::CreateNodeEventKeyValueDirect(builder, said)};
    auto event = Tryll::CreateNodeEventDirect(builder, 2, "node", said, &pairs);
    write(builder, Tryll::MessageBody_NodeEvent, event.Union());
  }
  return 0;
}
