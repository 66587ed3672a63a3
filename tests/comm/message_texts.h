// Messages that tell who sends what to whom when, and exchanges of them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "comm/world.h"

namespace shardrec::comm {

inline constexpr Operation kTest{.name = "test", .kind = 1};

inline std::string message_text(int channel, int round, int from, int to, size_t size) {
  std::string text = core::sentence(channel, "/", round, "/", from, "/", to, " ");
  text.resize(size, static_cast<char>('a' + (channel + 3 * round + 5 * from + 7 * to) % 26));
  return text;
}

inline size_t uneven_size(int round, int from, int to) {
  constexpr std::array<size_t, 6> kSizes = {0, 1, 63, 4097, 20, 30011};
  return kSizes[static_cast<size_t>(round + 3 * from + 5 * to) % kSizes.size()];
}

// One exchange's messages of one rank, kept alive by the channel.
struct Post {
  std::shared_ptr<std::vector<std::string>> texts = std::make_shared<std::vector<std::string>>();
  Ticket ticket;
};

inline Post post(Channel& channel, int index, int round, int rank, int world) {
  Post made;
  std::vector<ConstBytes> send;
  for (int to = 0; to < world; ++to) {
    made.texts->push_back(message_text(index, round, rank, to, uneven_size(round, rank, to)));
  }
  for (const std::string& text : *made.texts) send.push_back(bytes_of(text));
  made.ticket = channel.post(kTest, send, made.texts);
  return made;
}

inline void receive(Channel& channel, Ticket ticket, int index, int round, int rank, int world) {
  std::vector<ConstBytes> received(static_cast<size_t>(world));
  channel.receive(ticket, received);
  for (int from = 0; from < world; ++from) {
    ASSERT_EQ(text_of(received[static_cast<size_t>(from)]),
              message_text(index, round, from, rank, uneven_size(round, from, rank)));
  }
}

}  // namespace shardrec::comm
