// How two ends prove to each other that they know the job's secret, before anything else that they
// send is looked at. Three messages of fixed length:
//   server -> client  challenge: magic, version, which job, the server's nonce
//   client -> server  answer:    magic, version, rank, the client's nonce, HMAC over all of it
//   server -> client  verdict:   a code, HMAC over it and both nonces
// The HMAC-SHA256 keys are made from the secret and the job's name; the nonces are fresh, so that
// recorded bytes prove nothing. The secret itself never travels. What follows is neither encrypted
// nor authenticated by itself.
//
// Nothing here knows of sockets. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "comm/communicator.h"
#include "core/random.h"

namespace shardrec::comm::rendezvous {

inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kMacBytes = 32;
inline constexpr size_t kJobTagBytes = 8;
inline constexpr size_t kChallengeBytes = 8 + 2 + kJobTagBytes + kNonceBytes;
inline constexpr size_t kAnswerBytes = 8 + 2 + 4 + kNonceBytes + kMacBytes;
inline constexpr size_t kVerdictBytes = 8 + 1 + kMacBytes;

using Nonce = std::array<std::byte, kNonceBytes>;
using Challenge = std::array<std::byte, kChallengeBytes>;
using Answer = std::array<std::byte, kAnswerBytes>;
using Verdict = std::array<std::byte, kVerdictBytes>;

// From the system's random source. Throws IO_ERROR.
template <size_t kCount>
std::array<std::byte, kCount> random_bytes() {
  std::array<std::byte, kCount> bytes;
  core::fill_random(bytes);
  return bytes;
}

// What both ends know; wiped from memory when it is destroyed.
class Key {
 public:
  Key(std::string_view secret, std::string_view job);
  ~Key();
  Key(const Key&) = default;
  Key& operator=(const Key&) = default;

 private:
  friend std::array<std::byte, kMacBytes> sign(const Key&, ConstBytes);
  std::array<unsigned char, 32> bytes_{};
};
std::array<std::byte, kMacBytes> sign(const Key& key, ConstBytes message);

enum class Code : uint8_t { kWelcome = 1, kWrongSecret = 2 };

// The server's side.
Challenge make_challenge(std::string_view job, const Nonce& nonce);
// The rank that the client speaks for; empty when it does not know the secret.
std::optional<int> check_answer(const Key& key, const Nonce& nonce, const Answer& answer);
// After check_answer(). kWrongSecret proves nothing.
Verdict make_verdict(const Key& key, const Nonce& nonce, const Answer& answer, Code code);

// The client's side: each throws where the other end is not the server of the job.
// INVALID_ARGUMENT: no rendezvous, another job, another secret; UNSUPPORTED: another version.
// `address` is for the sentence.
Answer answer_challenge(const Key& key, std::string_view job, const Challenge& challenge, int rank,
                        const Nonce& nonce, std::string_view address);
void check_verdict(const Key& key, const Challenge& challenge, const Answer& answer,
                   const Verdict& verdict, std::string_view address);

}  // namespace shardrec::comm::rendezvous
