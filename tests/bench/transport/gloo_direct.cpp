#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include "direct.h"

namespace shardrec::bench {
namespace {

class DirectGloo final : public Direct {
 public:
  DirectGloo(int rank, const std::string& folder) : context_(rank, 2) {
    const gloo::transport::tcp::attr loopback("127.0.0.1");
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(loopback);
    gloo::rendezvous::FileStore store(folder);
    context_.connectFullMesh(store, device);
  }

  int rank() const override { return context_.rank; }

  void exchange(std::span<const std::byte> send, std::span<std::byte> receive) override {
    const int peer = 1 - context_.rank;
    const auto out = context_.createUnboundBuffer(const_cast<std::byte*>(send.data()), send.size());
    const auto in = context_.createUnboundBuffer(receive.data(), receive.size());
    in->recv(peer, 1);
    out->send(peer, 1);
    in->waitRecv();
    out->waitSend();
  }

 private:
  gloo::rendezvous::Context context_;
};

}  // namespace

std::unique_ptr<Direct> direct_gloo(int rank, const std::string& folder) {
  return std::make_unique<DirectGloo>(rank, folder);
}

}  // namespace shardrec::bench
