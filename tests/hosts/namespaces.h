// Hosts on one machine: each has a network, a name and process numbers of its own (namespaces). A
// first process holds it; when that one ends, and it ends with the test program however that
// ends, the kernel ends every process of the host and takes its devices away. Nothing has a name
// outside.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace shardrec::hosts {

// Once, from main() before there are threads: gives this process a network of its own, as a user
// without rights by way of a user namespace.
void take_own_network();
// What of all this the machine refuses, which is tried once; empty: nothing.
const std::string& refused();

class Host {
 public:
  // number: from 1; its address is 10.77.0.NUMBER, its name host-NUMBER. Throws std::runtime_error.
  explicit Host(int number);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  std::string name() const { return "host-" + std::to_string(number_); }
  std::string address() const { return "10.77.0." + std::to_string(number_); }
  pid_t holder() const { return holder_; }
  // Runs `ip ARGUMENTS` there, several of them divided by ";". Throws with what it said.
  void ip(const std::string& commands) const;
  // The calling thread joins its network, for good.
  bool enter_network() const noexcept;
  // Starts a process there; `in_child` is to end in exec(), and makes only calls that are safe in
  // a child of threads.
  pid_t run(const std::function<void()>& in_child) const;

 private:
  int number_;
  pid_t holder_ = 0;
  int network_ = -1;
  int uts_ = -1;
  int processes_ = -1;
  int alive_ = -1;
};

// Runs `ip` in the network of this process.
void ip(const std::string& commands);

// Hosts on a bridge, each by a cable (veth) to its device eth0, with 10.77.0.NUMBER/24.
class Bridge {
 public:
  explicit Bridge(const std::vector<const Host*>& hosts);
  ~Bridge();
  Bridge(const Bridge&) = delete;
  Bridge& operator=(const Bridge&) = delete;

  // From now on nothing gets from one of these hosts to another; numbers from 0, in their order
  // here.
  void part(const std::vector<size_t>& hosts) const;

 private:
  std::vector<std::string> devices_;
};

}  // namespace shardrec::hosts
