#include "comm/rendezvous/protocol/handshake.h"

#include <sodium.h>

#include <algorithm>

#include "comm/rendezvous/protocol/limits.h"
#include "comm/rendezvous/protocol/wire.h"
#include "core/error.h"

namespace shardrec::comm::rendezvous {
namespace {

using core::fail;
using core::sentence;

static_assert(crypto_auth_hmacsha256_BYTES == kMacBytes);
static_assert(crypto_auth_hmacsha256_KEYBYTES == 32);

// Of libsodium only what needs no sodium_init() is used, which draws random numbers and ends the
// process where there are none.
constexpr std::string_view kMagic = "shardrec";
constexpr uint16_t kVersion = 1;

const unsigned char* chars(ConstBytes bytes) {
  return static_cast<const unsigned char*>(static_cast<const void*>(bytes.data()));
}
unsigned char* writable(std::span<std::byte> bytes) {
  return static_cast<unsigned char*>(static_cast<void*>(bytes.data()));
}

std::array<std::byte, kJobTagBytes> tag_of(std::string_view job) {
  std::array<std::byte, kJobTagBytes> tag;
  std::array<std::byte, crypto_hash_sha256_BYTES> hash;
  crypto_hash_sha256(writable(hash), chars(bytes_of(job)), job.size());
  std::copy_n(hash.begin(), tag.size(), tag.begin());
  return tag;
}

template <size_t kCount>
std::array<std::byte, kCount> as_array(const Bytes& bytes) {
  std::array<std::byte, kCount> array{};
  std::copy_n(bytes.begin(), std::min(kCount, bytes.size()), array.begin());
  return array;
}

// What the client signs: everything that the answer says, and the server's nonce.
Bytes client_statement(ConstBytes said, ConstBytes server_nonce) {
  Bytes statement;
  Writer writer(statement);
  writer.bytes(bytes_of("shardrec client:"));
  writer.bytes(server_nonce);
  writer.bytes(said);
  return statement;
}

// What the server signs: its code, its nonce and the client's whole answer.
Bytes server_statement(Code code, ConstBytes server_nonce, const Answer& answer) {
  Bytes statement;
  Writer writer(statement);
  writer.bytes(bytes_of("shardrec server:"));
  writer.u8(static_cast<uint8_t>(code));
  writer.bytes(server_nonce);
  writer.bytes(answer);
  return statement;
}

bool equal(ConstBytes a, ConstBytes b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

ConstBytes said_in(const Answer& answer) {
  return ConstBytes(answer).first(kAnswerBytes - kMacBytes);
}
ConstBytes nonce_in(const Challenge& challenge) { return ConstBytes(challenge).last(kNonceBytes); }

bool has_magic(Reader& reader) { return equal(reader.bytes(kMagic.size()), bytes_of(kMagic)); }

[[noreturn]] void refuse_other_protocol(std::string_view address) {
  fail(SHARDREC_INVALID_ARGUMENT,
       sentence("what listens at ", address,
                " is no rendezvous of shardrec; the token, or "
                "MASTER_ADDR and SHARDREC_PORT, must name where one listens"));
}

}  // namespace

Key::Key(std::string_view secret, std::string_view job) {
  Bytes label;
  Writer(label).bytes(bytes_of("shardrec rendezvous 1:"));
  Writer(label).bytes(bytes_of(job));
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, chars(bytes_of(secret)), secret.size());
  crypto_auth_hmacsha256_update(&state, chars(label), label.size());
  crypto_auth_hmacsha256_final(&state, bytes_.data());
  sodium_memzero(&state, sizeof state);
}

Key::~Key() { sodium_memzero(bytes_.data(), bytes_.size()); }

std::array<std::byte, kMacBytes> sign(const Key& key, ConstBytes message) {
  std::array<std::byte, kMacBytes> mac;
  crypto_auth_hmacsha256(writable(mac), chars(message), message.size(), key.bytes_.data());
  return mac;
}

Challenge make_challenge(std::string_view job, const Nonce& nonce) {
  Bytes bytes;
  Writer writer(bytes);
  writer.bytes(bytes_of(kMagic));
  writer.u16(kVersion);
  writer.bytes(tag_of(job));
  writer.bytes(nonce);
  return as_array<kChallengeBytes>(bytes);
}

Answer answer_challenge(const Key& key, std::string_view job, const Challenge& challenge, int rank,
                        const Nonce& nonce, std::string_view address) {
  Reader reader(challenge);
  if (!has_magic(reader)) refuse_other_protocol(address);
  const uint16_t version = reader.u16();
  if (version != kVersion) {
    fail(SHARDREC_UNSUPPORTED,
         sentence("the rendezvous at ", address, " speaks version ", version,
                  ", this library version ", kVersion, "; all ranks need the same release"));
  }
  if (!equal(reader.bytes(kJobTagBytes), tag_of(job))) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("the rendezvous at ", address, " is of another job than \"", job,
                  "\"; each job needs a port and a token of its own"));
  }
  Bytes said;
  Writer writer(said);
  writer.bytes(bytes_of(kMagic));
  writer.u16(kVersion);
  writer.u32(static_cast<uint32_t>(rank));
  writer.bytes(nonce);
  const auto mac = sign(key, client_statement(said, nonce_in(challenge)));
  writer.bytes(mac);
  return as_array<kAnswerBytes>(said);
}

std::optional<int> check_answer(const Key& key, const Nonce& nonce, const Answer& answer) {
  const auto mac = sign(key, client_statement(said_in(answer), nonce));
  if (!equal(mac, ConstBytes(answer).last(kMacBytes))) return std::nullopt;
  Reader reader(answer);
  if (!has_magic(reader) || reader.u16() != kVersion) return std::nullopt;
  const uint32_t rank = reader.u32();
  if (rank >= static_cast<uint32_t>(kMostRanks)) return std::nullopt;
  return static_cast<int>(rank);
}

Verdict make_verdict(const Key& key, const Nonce& nonce, const Answer& answer, Code code) {
  Bytes bytes;
  Writer writer(bytes);
  writer.bytes(bytes_of(kMagic));
  writer.u8(static_cast<uint8_t>(code));
  // Who does not know the secret gets no HMAC made with it.
  std::array<std::byte, kMacBytes> mac{};
  if (code == Code::kWelcome) mac = sign(key, server_statement(code, nonce, answer));
  writer.bytes(mac);
  return as_array<kVerdictBytes>(bytes);
}

void check_verdict(const Key& key, const Challenge& challenge, const Answer& answer,
                   const Verdict& verdict, std::string_view address) {
  Reader reader(verdict);
  if (!has_magic(reader)) refuse_other_protocol(address);
  const auto code = static_cast<Code>(reader.u8());
  const auto mac = sign(key, server_statement(Code::kWelcome, nonce_in(challenge), answer));
  if (code == Code::kWelcome && equal(mac, reader.bytes(kMacBytes))) return;
  fail(SHARDREC_INVALID_ARGUMENT,
       sentence("the rendezvous at ", address,
                code == Code::kWelcome ? " does not know this rank's secret"
                                       : " refused this rank's secret",
                "; all ranks of a job must bring the token, or the SHARDREC_SECRET, of the same "
                "rendezvous"));
}

}  // namespace shardrec::comm::rendezvous
