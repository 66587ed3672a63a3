#include "comm/rendezvous/protocol/token.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "comm/rendezvous/protocol/handshake.h"
#include "comm/rendezvous/protocol/limits.h"
#include "core/error.h"

namespace shardrec::comm::rendezvous {
namespace {

using core::fail;
using core::sentence;

constexpr std::string_view kPrefix = "shardrec1:";
constexpr std::string_view kFamily = "shardrec";
constexpr const char* kForm =
    "a token as shardrec_rendezvous_token gives it (shardrec1:HOST:PORT:JOB:SECRET) is accepted";

bool is_letter_or_digit(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9');
}

bool is_of(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char letter) {
    return is_letter_or_digit(letter) || others.find(letter) != std::string_view::npos;
  });
}

[[noreturn]] void refuse_token(std::string_view what) {
  fail(SHARDREC_INVALID_ARGUMENT, sentence("the token ", what, "; ", kForm));
}

constexpr std::string_view kSigns = "-._~";

bool is_word(std::string_view word, size_t least, size_t most) {
  return word.size() >= least && word.size() <= most && is_of(word, kSigns);
}

[[noreturn]] void refuse_word(std::string_view word, size_t least, size_t most,
                              std::string_view name) {
  fail(SHARDREC_INVALID_ARGUMENT,
       sentence(name, " has ", word.size(), " characters",
                is_of(word, kSigns) ? "" : ", some of them others than letters, digits and -._~",
                "; ", least, " to ", most, " letters, digits and -._~ are accepted"));
}

}  // namespace

bool is_host(std::string_view host) noexcept {
  return !host.empty() && host.size() <= 255 && is_of(host, "-._:%");
}
bool is_job(std::string_view job) noexcept { return is_word(job, 1, kMostJobBytes); }
bool is_secret(std::string_view secret) noexcept {
  return is_word(secret, kLeastSecretBytes, kMostSecretBytes);
}

void check_host(std::string_view host, std::string_view name) {
  if (is_host(host)) return;
  fail(SHARDREC_INVALID_ARGUMENT,
       sentence(name, host.empty() ? " is empty" : " is no address",
                "; a host's name, an IPv4 or an IPv6 address is accepted"));
}

void check_job(std::string_view job, std::string_view name) {
  if (!is_job(job)) refuse_word(job, 1, kMostJobBytes, name);
}

void check_secret(std::string_view secret, std::string_view name) {
  if (!is_secret(secret)) refuse_word(secret, kLeastSecretBytes, kMostSecretBytes, name);
}

uint16_t parse_port(std::string_view text, int least, std::string_view name) {
  int port = -1;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), port);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() || port < least ||
      port > 65535) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence(name, " is no port; an integer from ", least, " to 65535 is accepted"));
  }
  return static_cast<uint16_t>(port);
}

std::string Token::address() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return ipv6 ? sentence("[", host, "]:", port) : sentence(host, ":", port);
}

std::string Token::text() const { return sentence(kPrefix, address(), ":", job, ":", secret); }

Token parse_token(std::string_view text) {
  if (text.size() > kMostTokenBytes) refuse_token(sentence("has ", text.size(), " bytes"));
  if (!text.starts_with(kPrefix)) {
    const size_t colon = text.find(':');
    const bool later = text.starts_with(kFamily) && colon != std::string_view::npos &&
                       colon > kFamily.size() &&
                       std::all_of(text.begin() + kFamily.size(),
                                   text.begin() + static_cast<std::ptrdiff_t>(colon),
                                   [](char letter) { return letter >= '0' && letter <= '9'; });
    if (later) {
      fail(SHARDREC_UNSUPPORTED,
           "the token is of another version of the rendezvous; tokens that begin with shardrec1: "
           "are accepted");
    }
    refuse_token(text.empty() ? "is empty" : "does not begin with shardrec1:");
  }
  text.remove_prefix(kPrefix.size());
  Token token;
  if (text.starts_with('[')) {
    const size_t close = text.find("]:");
    if (close == std::string_view::npos) refuse_token("has a bracket without its end");
    token.host = text.substr(1, close - 1);
    text.remove_prefix(close + 2);
  } else {
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos) refuse_token("ends after its host");
    token.host = text.substr(0, colon);
    text.remove_prefix(colon + 1);
  }
  check_host(token.host, "the token's host");
  std::vector<std::string_view> words;
  for (size_t colon = 0; colon != std::string_view::npos;) {
    colon = text.find(':');
    words.push_back(text.substr(0, colon));
    if (colon != std::string_view::npos) text.remove_prefix(colon + 1);
  }
  if (words.size() != 3) refuse_token(sentence("has ", words.size() + 2, " parts in place of 5"));
  token.port = parse_port(words[0], 1, "the token's second part");
  check_job(words[1], "the token's job");
  check_secret(words[2], "the token's secret");
  token.job = words[1];
  token.secret = words[2];
  return token;
}

std::string random_name() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string name;
  for (const std::byte byte : random_bytes<16>()) {
    name += kDigits[std::to_integer<size_t>(byte >> 4)];
    name += kDigits[std::to_integer<size_t>(byte & std::byte{15})];
  }
  return name;
}

}  // namespace shardrec::comm::rendezvous
