// A rank in a process of its own, or a server.
//   rendezvous_rank serve SILENCE SIZE    starts the server, prints its token, joins as rank 0
//   rendezvous_rank TOKEN RANK SIZE       joins
//   rendezvous_rank no-random 0 RANKS     starts a server and prints its token; when RANKS have joined
//                                         takes getrandom() away, then files too, and prints what
//                                         random_name() and a new server come to: "ok" or a status
// It prints "joined", then "lost RANK" for each rank that is lost, until its standard input ends:
// then it says goodbye. A failure is printed, and the exit status 1.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include "comm/rendezvous/client/rendezvous.h"
#include "comm/rendezvous/server/server_loop.h"
#include "support/eventually.h"

namespace {

using namespace shardrec::comm::rendezvous;

void say(const std::string& line) {
  const std::string whole = line + "\n";
  [[maybe_unused]] const ssize_t put = write(STDOUT_FILENO, whole.data(), whole.size());
}

// From now on the system call fails with this error, on every thread.
void deny(std::initializer_list<unsigned> calls, unsigned error) {
  for (const unsigned call : calls) {
    std::array<sock_filter, 4> filter = {
        sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{.len = filter.size(), .filter = filter.data()};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
      throw std::runtime_error("no filter");
    }
  }
}

template <class Call>
void say_what_comes_of(Call call) {
  try {
    call();
    say("ok");
  } catch (const shardrec::core::Error& error) {
    say(std::to_string(error.status()) + " " + error.sentence());
  }
}

void without_random(int ranks) {
  const Server server({});
  say(server.token().text());
  if (!shardrec::test::eventually([&] { return server.loop().joined() >= ranks; })) {
    throw std::runtime_error("the ranks did not join");
  }
  deny({SYS_getrandom}, ENOSYS);
  say_what_comes_of([] { random_name(); });
  deny({SYS_openat}, EACCES);
  say_what_comes_of([] { random_name(); });
  say_what_comes_of([] { const Server other({}); });
  say_what_comes_of([&] { join(server.token(), ranks, ranks + 2, {.seconds = 30}); });
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  _exit(0);  // a sanitizer's look for leaks would need files
}

void run(const std::string& what, const std::string& second, const std::string& third) {
  if (what == "no-random") return without_random(std::atoi(third.c_str()));
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
