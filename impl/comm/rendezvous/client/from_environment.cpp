#include <charconv>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string_view>
#include <thread>

#include "comm/clock.h"
#include "comm/rendezvous/client/rendezvous.h"
#include "comm/rendezvous/client/token_file.h"

namespace shardrec::comm::rendezvous {
namespace {

using core::fail;
using core::sentence;

// A group that ended a moment ago may still be in the way of the next one.
constexpr double kNextGroupSeconds = 30;
constexpr std::chrono::milliseconds kFilePause{50};

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

// Also what only rank 0 reads, or what something else stands in for: a mistake shows on every rank,
// and not only where it matters first.
void check_all(const Variables& variables, bool by_file) {
  if (const auto address = variables.find("SHARDREC_BIND")) {
    check_host(*address, "the environment variable SHARDREC_BIND");
  }
  if (const auto job = variables.find("SHARDREC_JOB")) {
    check_job(*job, "the environment variable SHARDREC_JOB");
  }
  if (const auto secret = variables.find("SHARDREC_SECRET")) {
    check_secret(*secret, "the environment variable SHARDREC_SECRET");
  }
  if (const auto port = variables.find("SHARDREC_PORT")) {
    parse_port(*port, by_file ? 0 : 1, "the environment variable SHARDREC_PORT");
  }
  variables.find_number("SHARDREC_ALLOW_PLAIN_TCP", 0, 1);
}

// What rank 0 listens with where the others learn of it by a file.
ServerOptions server_options_by_file(const Variables& variables) {
  Token token{.host = variables.find("MASTER_ADDR").value_or("127.0.0.1"),
              .job = variables.find("SHARDREC_JOB").value_or(""),
              .secret = variables.find("SHARDREC_SECRET").value_or(random_name())};
  check_host(token.host, "the environment variable MASTER_ADDR");
  if (const auto port = variables.find("SHARDREC_PORT")) {
    token.port = parse_port(*port, 0, "the environment variable SHARDREC_PORT");
  }
  return server_options(variables, token);
}

// A file that is there already may be of a group that has ended: for a while another one may take
// its place.
Meeting join_by_file(const Variables& variables, const std::string& path, int rank, int size,
                     JoinOptions options) {
  const auto job = variables.find("SHARDREC_JOB");
  const double seconds = options.seconds;
  const Clock::time_point deadline = after(Clock::now(), seconds);
  std::string old;
  std::exception_ptr ended;  // what became of the group of `old`
  Clock::time_point give_up = Clock::time_point::max();
  std::string why = "there is no such file";
  for (;;) {
    const auto token = read_token_file(path);
    if (token && job && token->job != *job) {
      why = sentence("it is of the job \"", token->job, "\", this one is \"", *job, "\"");
    } else if (token && token->text() != old) {
      try {
        options.seconds = seconds_until(deadline, Clock::now());
        return join(*token, rank, size, options);
      } catch (const ServerGone& gone) {
        why = gone.sentence();
        ended = std::current_exception();
      } catch (const GroupComplete& complete) {
        why = complete.sentence();
        ended = std::current_exception();
      }
      old = token->text();
      give_up = after(Clock::now(), options.belief.seconds_until_start);
    }
    if (ended && Clock::now() >= give_up && give_up < deadline) std::rethrow_exception(ended);
    if (Clock::now() >= deadline) {
      fail(SHARDREC_TIMEOUT,
           sentence("rank ", rank, " found no token of its rank 0 in \"", path, "\" within ",
                    static_cast<int64_t>(seconds * 1000), " ms: ", why),
           {.rank = 0, .operation = "join"});
    }
    std::this_thread::sleep_for(kFilePause);
  }
}

Meeting meet_by_file(const Variables& variables, const std::string& path, int rank, int size,
                     const JoinOptions& options) {
  if (rank != 0) return join_by_file(variables, path, rank, size, options);
  auto server = std::make_shared<Server>(server_options_by_file(variables));
  const TokenFile file(path, server->token());  // until all have come
  Meeting meeting = join(server->token(), rank, size, options);
  meeting.server = std::move(server);
  return meeting;
}

}  // namespace

Meeting from_environment(const EnvironmentOptions& how, const Variable& variable) {
  const Variables variables(variable);
  const int size = variables.number("WORLD_SIZE", 1, kMostRanks, "the number of ranks");
  const int rank = variables.number("RANK", 0, size - 1, "the number of this rank, from 0");
  JoinOptions options{.seconds = how.seconds,
                      .ranks_on_host = ranks_on_host(variables, size),
                      .seconds_for_next_group = kNextGroupSeconds,
                      .belief = {.seconds_until_start = how.seconds_until_rank_zero}};
  const auto token_text = variables.find("SHARDREC_TOKEN");
  const auto path = variables.find("SHARDREC_TOKEN_FILE");
  check_all(variables, path.has_value());
  if (token_text || path) {
    options.seconds_for_next_group = 0;
    options.belief.has_started = true;
    return token_text ? join(parse_token(*token_text), rank, size, options)
                      : meet_by_file(variables, *path, rank, size, options);
  }
  const Token token = token_of(variables);
  std::shared_ptr<Server> server;
  if (rank == 0) {
    server = std::make_shared<Server>(server_options(variables, token));
    options.belief.has_started = true;
  }
  Meeting meeting = join(token, rank, size, options);
  meeting.server = std::move(server);
  return meeting;
}

Meeting from_environment(const EnvironmentOptions& options) {
  return from_environment(options, [](const char* name) { return std::getenv(name); });
}

}  // namespace shardrec::comm::rendezvous
