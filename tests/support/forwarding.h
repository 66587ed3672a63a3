// Communicators and channels that hand everything on: tests derive from them what does something else.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "comm/communicator.h"
#include "comm/failure.h"

namespace shardrec::test {

class ForwardingChannel : public comm::Channel {
 public:
  explicit ForwardingChannel(std::shared_ptr<comm::Channel> inner) : inner_(std::move(inner)) {}

  comm::Ticket post(const comm::Operation& operation, std::span<const comm::ConstBytes> send,
                    std::shared_ptr<const void> owner) override {
    return inner_->post(operation, send, std::move(owner));
  }
  void receive(comm::Ticket ticket, std::span<comm::ConstBytes> received) override {
    inner_->receive(ticket, received);
  }
  bool has_arrived(comm::Ticket ticket) noexcept override { return inner_->has_arrived(ticket); }
  void release(comm::Ticket ticket) noexcept override { inner_->release(ticket); }
  void reclaim(comm::Ticket ticket) override { inner_->reclaim(ticket); }

 private:
  const std::shared_ptr<comm::Channel> inner_;
};

class ForwardingRank : public comm::Communicator {
 public:
  explicit ForwardingRank(std::shared_ptr<Communicator> inner) : inner_(std::move(inner)) {}

  int rank() const noexcept override { return inner_->rank(); }
  int size() const noexcept override { return inner_->size(); }
  int ranks_per_node() const noexcept override { return inner_->ranks_per_node(); }
  int ranks_in_process() const noexcept override { return inner_->ranks_in_process(); }
  int default_threads() const noexcept override { return inner_->default_threads(); }
  void set_default_threads(int threads) noexcept override { inner_->set_default_threads(threads); }
  comm::DeviceBodies device_bodies() const noexcept override { return inner_->device_bodies(); }
  void set_device_bodies(comm::DeviceBodies bodies) noexcept override {
    inner_->set_device_bodies(bodies);
  }
  bool reads_in_place() const noexcept override { return inner_->reads_in_place(); }
  std::shared_ptr<comm::Channel> open_channel(comm::Purpose purpose) override {
    return inner_->open_channel(purpose);
  }
  std::shared_ptr<Communicator> split(int color, int key) override {
    return inner_->split(color, key);
  }
  comm::Deadlines deadlines() const override { return inner_->deadlines(); }
  void set_deadlines(const comm::Deadlines& deadlines) override {
    inner_->set_deadlines(deadlines);
  }
  void abort(const std::string& reason) noexcept override { inner_->abort(reason); }
  void fail(std::string_view operation) noexcept override { inner_->fail(operation); }
  void kill(comm::Failure failure) noexcept override { inner_->kill(std::move(failure)); }
  int departed_rank() const noexcept override { return inner_->departed_rank(); }
  void check() const override { inner_->check(); }
  void leave() noexcept override { inner_->leave(); }
  void disconnect() noexcept override { inner_->disconnect(); }

 private:
  const std::shared_ptr<Communicator> inner_;
};

}  // namespace shardrec::test
