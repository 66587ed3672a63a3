// What peers send between processes, made up: envelopes, messages and group states of two peers that
// hold to nothing. Whatever they are, this rank gets its exchanges or an error, ends in time and
// leaks nothing; what the readers accept is within its bounds, and is what would be written.
//
// No thread, no network: what is asked for is there at once, made from the input.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "comm/collective/collectives.h"
#include "comm/remote/envelope.h"
#include "comm/remote/group_state.h"
#include "comm/remote/link.h"
#include "core/error.h"
#include "fuzz/input.h"

namespace {

using namespace shardrec::comm;
using namespace shardrec::comm::remote;
using shardrec::core::Error;
using shardrec::fuzz::Input;

constexpr int kRanks = 3;
constexpr Operation kStep{.name = "step", .kind = 1};

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

void fill(Input& input, std::span<std::byte> out) {
  for (std::byte& byte : out) byte = std::byte{input.byte()};
}

struct Ready final : Request {
  explicit Ready(Outcome its_outcome) : outcome(its_outcome) {}
  Result wait(double /*seconds*/) override { return {.outcome = outcome, .text = "made up"}; }
  Outcome outcome;
};

// Remembers what this rank sends in an exchange, so that most envelopes of its peers can be nearly
// right.
class MadeUpCarrier final : public Carrier {
 public:
  explicit MadeUpCarrier(Input& input) : input_(input) {}

  std::unique_ptr<Request> send(int /*peer*/, uint32_t tag, ConstBytes data) override {
    if (tag % 2 == 0) {
      check(data.size() == kEnvelopeBytes, "an envelope has its length");
      std::copy(data.begin(), data.end(), own_.begin());
    }
    return std::make_unique<Ready>(Outcome::kDone);
  }

  std::unique_ptr<Request> receive(int /*peer*/, uint32_t tag, std::span<std::byte> data) override {
    return std::make_unique<Answer>(*this, tag % 2 == 0, data);
  }

  void cancel() noexcept override { cancelled_ = true; }

 private:
  // Made when it is asked for, after this rank has sent its own.
  struct Answer final : Request {
    Answer(MadeUpCarrier& its_carrier, bool envelope, std::span<std::byte> into)
        : carrier(its_carrier), is_envelope(envelope), data(into) {}
    Result wait(double /*seconds*/) override { return carrier.answer(is_envelope, data); }
    MadeUpCarrier& carrier;
    bool is_envelope;
    std::span<std::byte> data;
  };

  Result answer(bool is_envelope, std::span<std::byte> data) {
    if (cancelled_) return {.outcome = Outcome::kCancelled};
    const uint8_t how = input_.byte();
    if (how % 16 == 15) return {.outcome = Outcome::kFailed, .peer = how, .text = "made up"};
    if (how % 16 == 14) return {.outcome = Outcome::kTimeout};
    if (!is_envelope) {
      if (!data.empty()) data.front() = data.back() = std::byte{how};
      return {};
    }
    std::copy(own_.begin(), own_.end(), data.begin());
    if (how % 16 > 8) return {};
    if (how % 16 == 8) {
      fill(input_, data);
    } else {
      for (int i = 0; i < how % 8; ++i) data[input_.byte() * 2U] ^= std::byte{input_.byte()};
    }
    // Messages of up to 1 MiB: there is no memory for what a peer might claim.
    for (size_t i = 42; i < 48; ++i) data[i] = std::byte{0};
    data[42] = std::byte{how} & std::byte{0x0F};
    return {};
  }

  Input& input_;
  std::array<std::byte, kEnvelopeBytes> own_{};
  bool cancelled_ = false;
};

class MadeUpStateBroadcast final : public StateBroadcast {
 public:
  void announce(ConstBytes group_state) noexcept override {
    check(read_group_state(group_state).has_value(), "what is announced can be read");
  }
  void listen(Listener listener) override { listener_ = std::move(listener); }
  void tell(Input& input) {
    std::array<std::byte, kGroupStateBytes> bytes;
    const size_t size = input.byte() * 4U;
    fill(input, {bytes.data(), size});
    if (input.byte() % 4 != 0 && size >= 8) {
      constexpr uint8_t kBegin[] = {'S', 'H', 'R', 'B', 1};
      std::memcpy(bytes.data(), kBegin, sizeof kBegin);
      bytes[5] &= std::byte{7};
    }
    if (listener_.heard) listener_.heard(1 + input.byte() % 3, {bytes.data(), size});
  }
  void lose(Input& input) {
    if (listener_.lost) listener_.lost(input.byte() % 4, "made up");
  }
  void lose_all() {
    for (int rank = 1; rank < kRanks && listener_.lost; ++rank) listener_.lost(rank, "over");
  }

 private:
  Listener listener_;
};

void check_envelope(Input input) {
  std::array<std::byte, kEnvelopeBytes> bytes;
  fill(input, bytes);
  Envelope envelope;
  if (read_envelope(bytes, envelope).empty()) {
    check(envelope.bytes <= kMostBytes && envelope.name.size() <= kMostName,
          "an envelope is within its bounds");
    std::array<std::byte, kEnvelopeBytes> again;
    write_envelope(envelope, {}, again);
    check(std::memcmp(bytes.data(), again.data(), 56 + envelope.name.size()) == 0,
          "an envelope is what would be written");
  }
}

void check_group_state(ConstBytes bytes) {
  const auto group_state = read_group_state(bytes);
  if (!group_state) return;
  check(group_state->count <= kMostProgress && group_state->failure.failed_rank >= 0 &&
            group_state->failure.observer >= 0 &&
            static_cast<int>(group_state->failure.cause) < kCauses,
        "a group state is within its bounds");
  const EncodedGroupState again = write_group_state(*group_state);
  check(again.size == bytes.size(), "a group state is what would be written");
}

void run(Input& input) {
  const auto state_broadcast = std::make_shared<MadeUpStateBroadcast>();
  std::shared_ptr<Communicator> comm =
      make_communicator({.rank = 0, .size = kRanks, .ranks_per_node = 1, .ranks_in_process = 1},
                        std::make_shared<MadeUpCarrier>(input), state_broadcast);
  comm->set_deadlines({.step = 0.001, .setup = 0.001, .warn = 0.0005});
  std::shared_ptr<Communicator> part;
  std::vector<std::shared_ptr<Channel>> channels = {comm->open_channel(Purpose::kInput)};
  const auto text = std::make_shared<std::vector<std::byte>>(1000);
  for (int call = 0; call < 64 && !input.empty(); ++call) {
    try {
      Communicator& used = part != nullptr && call % 2 == 1 ? *part : *comm;
      switch (input.byte() % 8) {
        case 0:
          state_broadcast->tell(input);
          break;
        case 1:
          state_broadcast->lose(input);
          break;
        case 2:
          part = comm->split(0, 0);
          break;
        case 3:
          channels.push_back(comm->open_channel(Purpose::kDense));
          break;
        case 4:
          if (input.byte() % 8 == 0) used.leave();
          break;
        case 5: {
          std::vector<float> data(input.byte() * 40U, 1.0F);
          Collectives(used.open_channel(Purpose::kDense), used.rank(), used.size())
              .all_reduce<float>(kStep, Reduction::kSum, data);
          break;
        }
        default: {
          Channel& channel = *channels[input.byte() % channels.size()];
          const std::vector<ConstBytes> send(kRanks, *text);
          std::vector<ConstBytes> received(kRanks);
          const Ticket ticket = channel.post(kStep, send, text);
          channel.receive(ticket, received);
          channel.release(ticket);
          channel.reclaim(ticket);
          break;
        }
      }
    } catch (const Error& error) {
      check(!error.sentence().empty(), "an error has a sentence");
    }
  }
  state_broadcast->lose_all();  // a rank that has left waits a moment for its peers to leave too
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  check_envelope(Input(bytes));
  check_group_state(std::as_bytes(bytes));
  Input input(bytes);
  run(input);
  return 0;
}
