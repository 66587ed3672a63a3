// A connection to a service on the loopback that answers lines.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace shardrec::cli::test {

class Client {
 public:
  // Throws where nobody listens.
  explicit Client(int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval deadline{.tv_sec = 60, .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline);
    if (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("cannot connect to port " + std::to_string(port));
    }
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { close(socket_); }

  void send_text(const std::string& text) const {
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t more = send(socket_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (more <= 0) return;  // told by the read
      sent += static_cast<size_t>(more);
    }
  }
  // None: the connection has ended.
  std::optional<std::string> read_line() {
    for (;;) {
      const size_t end = read_.find('\n');
      if (end != std::string::npos) {
        const std::string line = read_.substr(0, end);
        read_.erase(0, end + 1);
        return line;
      }
      char bytes[4096];
      const ssize_t more = recv(socket_, bytes, sizeof bytes, 0);
      if (more <= 0) return std::nullopt;
      read_.append(bytes, static_cast<size_t>(more));
    }
  }
  std::string ask(const std::string& line) {
    send_text(line + "\n");
    return read_line().value_or("(the connection has ended)");
  }

 private:
  int socket_;
  std::string read_;
};

}  // namespace shardrec::cli::test
