// Bytes for the rendezvous: streams of frames, answers of unauthenticated connections, tokens, and ranks that have
// proved who they are and then send, join, break off and fall silent as they like. Nothing may
// crash or grow without bound; what is accepted is exactly what the library writes; what the server
// sends, a rank can read.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "comm/rendezvous/protocol/handshake.h"
#include "comm/rendezvous/protocol/messages.h"
#include "comm/rendezvous/protocol/token.h"
#include "comm/rendezvous/server/job.h"
#include "core/error.h"
#include "fuzz/input.h"

namespace {

using namespace shardrec::comm::rendezvous;
using shardrec::comm::ConstBytes;
using shardrec::core::Error;
using shardrec::fuzz::Input;

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

bool same(ConstBytes a, ConstBytes b) { return std::ranges::equal(a, b); }

template <class Message>
void read_and_write(const Frame& frame) {
  const Bytes again = framed(read<Message>(frame.payload));
  check(same(ConstBytes(again).subspan(8), frame.payload), "a message has one form");
}

// False for kinds that are none.
bool read_any(const Frame& frame) {
  static const std::map<FrameKind, void (*)(const Frame&)> kReaders = {
      {Join::kKind, read_and_write<Join>},         {Set::kKind, read_and_write<Set>},
      {Get::kKind, read_and_write<Get>},           {Forget::kKind, read_and_write<Forget>},
      {Announce::kKind, read_and_write<Announce>}, {Goodbye::kKind, read_and_write<Goodbye>},
      {Accepted::kKind, read_and_write<Accepted>}, {Waiting::kKind, read_and_write<Waiting>},
      {Formed::kKind, read_and_write<Formed>},     {Refused::kKind, read_and_write<Refused>},
      {Reply::kKind, read_and_write<Reply>},       {GroupState::kKind, read_and_write<GroupState>},
      {Lost::kKind, read_and_write<Lost>},         {Left::kKind, read_and_write<Left>},
      {End::kKind, read_and_write<End>},           {Beat::kKind, read_and_write<Beat>},
  };
  const auto reader = kReaders.find(frame.kind);
  if (reader == kReaders.end()) return false;
  reader->second(frame);
  return true;
}

void streams(std::span<const uint8_t> data) {
  const ConstBytes bytes = std::as_bytes(data);
  FrameDecoder decoder;
  try {
    for (size_t at = 0; at < bytes.size(); at += 5) {
      decoder.append(bytes.subspan(at, std::min<size_t>(5, bytes.size() - at)));
      while (const auto frame = decoder.next()) {
        check(frame->payload.size() <= kMostPayloadBytes, "a frame is bounded");
        try {
          read_any(*frame);
        } catch (const Error& error) {
          check(error.status() == SHARDREC_CORRUPT_DATA, "a bad message is corrupt data");
        }
      }
    }
  } catch (const Error& error) {
    check(error.status() == SHARDREC_CORRUPT_DATA, "a bad frame is corrupt data");
  }
}

void unauthenticated(std::span<const uint8_t> data) {
  static const Key kKey("a-secret-of-the-fuzzer", "job");
  Answer answer{};
  for (size_t i = 0; i < std::min(answer.size(), data.size()); ++i) answer[i] = std::byte{data[i]};
  check(!check_answer(kKey, Nonce{}, answer), "nobody guesses an HMAC");
}

void tokens(std::span<const uint8_t> data) {
  std::string text = "shardrec1:";
  for (const uint8_t byte : data) text += static_cast<char>(byte);
  for (const std::string& one : {text, text.substr(10)}) {
    try {
      const Token token = parse_token(one);
      check(parse_token(token.text()).text() == token.text(), "a token reads as it was written");
    } catch (const Error& error) {
      check(!error.sentence().empty(), "a refused token has a sentence");
    }
  }
}

// The connections to ranks, which read what they are sent.
class Ranks final : public RankConnections {
 public:
  void send(int rank, ConstBytes frame) override {
    check(open.contains(rank), "only ranks that are in are told anything");
    FrameDecoder decoder;
    decoder.append(frame);
    const auto read = decoder.next();
    check(read && read_any(*read) && !decoder.next(), "what the server sends can be read");
  }
  void close(int rank) override { open.erase(rank); }
  std::set<int> open;
};

void ranks(std::span<const uint8_t> data) {
  Ranks connections;
  Job job(connections, milliseconds(1000));
  Input input(data);
  Job::Time now{0};
  while (!input.empty()) {
    const int rank = input.below(4);
    switch (input.below(8)) {
      case 0:
      case 1:
      case 2: {
        Join join{.rank = rank, .size = input.one_in(8) ? input.below(6) : 3};
        join.process = static_cast<uint64_t>(input.below(2));
        join.ranks_on_host = input.below(3);
        if (join.size < 1) break;
        const bool was_in = !connections.open.insert(rank).second;
        if (job.join(join, now) && !was_in) connections.open.erase(rank);
        break;
      }
      case 3:
        if (connections.open.erase(rank) > 0) job.broken(rank, "the fuzzer broke it");
        break;
      case 4:
        now += milliseconds(10 * input.byte());
        job.beat(now, input.byte());
        break;
      default: {
        Bytes payload;
        for (int left = input.below(40); left > 0; --left)
          payload.push_back(std::byte{input.byte()});
        const auto kind =
            input.of({FrameKind::kSet, FrameKind::kGet, FrameKind::kForget, FrameKind::kAnnounce,
                      FrameKind::kBeat, FrameKind::kGoodbye, static_cast<FrameKind>(input.byte())});
        if (!connections.open.contains(rank)) break;
        try {
          job.hear(rank, {kind, payload}, now);
        } catch (const Error& error) {
          check(error.status() == SHARDREC_CORRUPT_DATA, "a rank gone wrong is corrupt data");
          if (connections.open.erase(rank) > 0) job.broken(rank, "it sent that");
        }
      }
    }
    check(job.present() == static_cast<int>(connections.open.size()), "who is in has a connection");
  }
  job.end();
  check(job.present() == 0 && connections.open.empty(), "nobody is in after the end");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  streams(bytes);
  unauthenticated(bytes);
  tokens(bytes);
  ranks(bytes);
  return 0;
}
