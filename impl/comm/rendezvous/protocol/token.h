// What a rank needs to know to find its group, as text that travels over the host's own channel:
//   shardrec1:HOST:PORT:JOB:SECRET
// HOST is a name or an address, IPv6 in brackets; JOB and SECRET are of letters, digits and -._~ .
// Sentences about tokens never show one: it holds the secret.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shardrec::comm::rendezvous {

struct Token {
  std::string host{};
  uint16_t port = 0;
  std::string job{};
  std::string secret{};

  std::string text() const;
  // "127.0.0.1:4711", for sentences.
  std::string address() const;
};

// Throws INVALID_ARGUMENT; UNSUPPORTED for a token of a later version.
Token parse_token(std::string_view text);

bool is_host(std::string_view host) noexcept;
bool is_job(std::string_view job) noexcept;
bool is_secret(std::string_view secret) noexcept;
// Check a part of a token; throw INVALID_ARGUMENT where it is malformed, naming it as `name`.
void check_host(std::string_view host, std::string_view name);
void check_job(std::string_view job, std::string_view name);
void check_secret(std::string_view secret, std::string_view name);

// In [0, 65535] or none: throws INVALID_ARGUMENT. least: 0 or 1.
uint16_t parse_port(std::string_view text, int least, std::string_view name);

// 128 bits of the system's random source, as 32 letters and digits.
std::string random_name();

}  // namespace shardrec::comm::rendezvous
