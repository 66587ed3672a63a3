// A rank in a process of its own.
//   rendezvous_rank serve SILENCE SIZE    starts the server, prints its token, joins as rank 0
//   rendezvous_rank TOKEN RANK SIZE       joins
// It prints "joined", then "lost RANK" for each rank that is lost, until its standard input ends:
// then it says goodbye. A failure is printed, and the exit status 1.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "comm/rendezvous/rendezvous.h"

namespace {

using namespace shardrec::comm::rendezvous;

void say(const std::string& line) {
  const std::string whole = line + "\n";
  [[maybe_unused]] const ssize_t put = write(STDOUT_FILENO, whole.data(), whole.size());
}

void run(const std::string& what, const std::string& second, const std::string& third) {
  std::shared_ptr<Server> server;
  Token token;
  int rank = 0;
  if (what == "serve") {
    server = std::make_shared<Server>(
        ServerOptions{.silence_seconds = std::strtod(second.c_str(), nullptr)});
    token = server->token();
    say(token.text());
  } else {
    token = parse_token(what);
    rank = std::atoi(second.c_str());
  }
  Meeting meeting = join(token, rank, std::atoi(third.c_str()), {.seconds = 30});
  meeting.server = server;
  meeting.client->listen(
      {.heard = [](int, shardrec::comm::ConstBytes) {},
       .lost = [](int peer, const std::string&) { say("lost " + std::to_string(peer)); }});
  say("joined");
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  try {
    run(arguments[1], arguments[2], arguments[3]);
  } catch (const std::exception& error) {
    say(error.what());
    return 1;
  }
  return 0;
}
