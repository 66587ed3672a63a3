// Gloo's context and pairs (a pair: the connection to one peer), mended where Gloo's own would harm
// the host:
//  - what is thrown on Gloo's thread, most of all for lack of memory, ends one connection: its
//    messages fail, and the peer sees it end. Gloo's own pair would end the process.
//  - descriptors are not inherited by programs that the host starts. Gloo opens them without
//    SOCK_CLOEXEC; they are marked right afterwards, so that only a program started within the few
//    microseconds between gets one.
//  - Gloo's thread sleeps where a connection is in use by another thread. Gloo's own pair has it
//    poll, and keep the processor that the other thread needs to be done.
//
// Thread rule: Gloo's.
#pragma once

#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/device.h>

#include <memory>

namespace shardrec::comm::gloo_plugin {

class GuardedContext final : public gloo::transport::tcp::Context {
 public:
  GuardedContext(std::shared_ptr<gloo::transport::tcp::Device> device, int own_rank, int ranks);

  // Listens for the peer.
  std::unique_ptr<gloo::transport::Pair>& createPair(int peer) override;
};

}  // namespace shardrec::comm::gloo_plugin
