#include "dense/ddp/layers.h"

namespace shardrec::dense {
namespace {

// Marks the parameters of a stack as its backward goes.
class StackListener final : public GradientListener {
 public:
  StackListener(const std::shared_ptr<Ddp>& set, int64_t first, int64_t count)
      : set_(set), first_(first), count_(count) {}

  void before_backward() override {
    if (const auto set = set_.lock()) set->require_unmarked(first_, count_);
  }
  void ready(int64_t first, int64_t count, compute::cuda::host::Stream* stream) override {
    const auto set = set_.lock();
    if (set != nullptr && set->takes_marks()) set->mark_ready(first_ + first, count, stream);
  }
  bool expired() const noexcept override { return set_.expired(); }

 private:
  std::weak_ptr<Ddp> set_;
  int64_t first_;
  int64_t count_;
};

}  // namespace

int64_t add_layers(const std::shared_ptr<Ddp>& set, const std::string& prefix,
                   const std::shared_ptr<Mlp>& layers) {
  return set->add_stack(prefix, layers, [&](int64_t first, int64_t count) {
    return std::make_shared<StackListener>(set, first, count);
  });
}

}  // namespace shardrec::dense
