#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "comm/rendezvous/rendezvous.h"

namespace shardrec::comm::rendezvous {
namespace {

using core::fail;
using core::sentence;

// A group that ended a moment ago may still be in the way of the next one.
constexpr double kNextGroupSeconds = 30;

class Variables {
 public:
  explicit Variables(const std::function<const char*(const char*)>& read) : read_(read) {}

  // Empty counts as not set.
  std::optional<std::string> find(const char* name) const {
    const char* value = read_(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return std::string(value);
  }

  std::string text(const char* name, std::string_view meaning) const {
    if (auto value = find(name)) return *std::move(value);
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("the environment variable ", name, " is not set; it must hold ", meaning));
  }

  std::optional<int> find_number(const char* name, int least, int most) const {
    const auto value = find(name);
    if (!value) return std::nullopt;
    int number = 0;
    const char* end = value->data() + value->size();
    const auto parsed = std::from_chars(value->data(), end, number);
    if (parsed.ec != std::errc() || parsed.ptr != end || number < least || number > most) {
      fail(SHARDREC_INVALID_ARGUMENT,
           sentence("the environment variable ", name, " is \"", *value, "\"; an integer from ",
                    least, " to ", most, " is accepted"));
    }
    return number;
  }

  int number(const char* name, int least, int most, std::string_view meaning) const {
    text(name, meaning);
    return *find_number(name, least, most);
  }

 private:
  const std::function<const char*(const char*)>& read_;
};

int ranks_on_host(const Variables& variables, int size) {
  const auto ranks = variables.find_number("LOCAL_WORLD_SIZE", 1, size);
  const auto local_rank = variables.find_number("LOCAL_RANK", 0, ranks.value_or(size) - 1);
  static_cast<void>(local_rank);  // only checked
  return ranks.value_or(0);
}

ServerOptions server_options(const Variables& variables, const Token& token) {
  return {
      .address = variables.find("SHARDREC_BIND").value_or(token.host),
      .port = token.port,
      .advertised = token.host,
      .job = token.job,
      .secret = token.secret,
      .allow_plain_tcp = variables.find_number("SHARDREC_ALLOW_PLAIN_TCP", 0, 1).value_or(0) == 1};
}

Token token_of(const Variables& variables) {
  Token token;
  token.host = variables.text("MASTER_ADDR", "the name or address of rank 0's host");
  check_host(token.host, "the environment variable MASTER_ADDR");
  const std::string port = variables.text(
      "SHARDREC_PORT",
      "a free port of rank 0's host, other than MASTER_PORT, which a launcher may hold");
  token.port = parse_port(port, 1, "the environment variable SHARDREC_PORT");
  token.secret =
      variables.text("SHARDREC_SECRET",
                     "a secret of 16 to 128 letters, digits and -._~, the same on all ranks (or "
                     "SHARDREC_TOKEN the token of a rendezvous)");
  check_secret(token.secret, "the environment variable SHARDREC_SECRET");
  token.job = variables.find("SHARDREC_JOB").value_or("default");
  check_job(token.job, "the environment variable SHARDREC_JOB");
  return token;
}

}  // namespace

Meeting from_environment(double seconds, const std::function<const char*(const char*)>& variable) {
  const Variables variables(variable);
  const int size = variables.number("WORLD_SIZE", 1, kMostRanks, "the number of ranks");
  const int rank = variables.number("RANK", 0, size - 1, "the number of this rank, from 0");
  JoinOptions options{.seconds = seconds,
                      .ranks_on_host = ranks_on_host(variables, size),
                      .seconds_for_next_group = kNextGroupSeconds};
  if (const auto token = variables.find("SHARDREC_TOKEN")) {
    options.seconds_for_next_group = 0;
    options.has_started = true;
    return join(parse_token(*token), rank, size, options);
  }
  const Token token = token_of(variables);
  std::shared_ptr<Server> server;
  if (rank == 0) {
    server = std::make_shared<Server>(server_options(variables, token));
  }
  Meeting meeting = join(token, rank, size, options);
  meeting.server = std::move(server);
  return meeting;
}

Meeting from_environment(double seconds) {
  return from_environment(seconds, [](const char* name) { return std::getenv(name); });
}

}  // namespace shardrec::comm::rendezvous
