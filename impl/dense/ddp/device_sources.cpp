#include "dense/ddp/device_sources.h"

#include <algorithm>

namespace shardrec::dense {

DeviceSources::DeviceSources(Stream& stream, int64_t caller_stream,
                             const std::vector<std::shared_ptr<Mlp>>& stacks)
    : stream_(stream), caller_stream_(caller_stream), done_(stream) {
  for (const std::shared_ptr<Mlp>& stack : stacks) {
    const auto known = std::find(sources_.begin(), sources_.end(), stack);
    source_of_.push_back(static_cast<size_t>(known - sources_.begin()));
    if (known == sources_.end()) sources_.push_back(stack);
  }
  for (size_t s = 0; s < sources_.size(); ++s) now_.push_back(std::make_unique<Event>(stream));
}

void DeviceSources::set_buckets(size_t buckets) {
  const std::lock_guard lock(mutex_);
  while (marks_.size() < buckets * sources_.size()) {
    marks_.push_back(std::make_unique<Event>(stream_));
  }
}

void DeviceSources::mark(size_t bucket, size_t source, Stream* given) {
  const auto mark_in = [&](Stream* stream) {
    const std::lock_guard lock(mutex_);
    Event& event = *marks_[bucket * sources_.size() + source];
    if (stream == nullptr) {
      event.record_caller(caller_stream_);
    } else {
      event.record(*stream);
    }
  };
  if (sources_[source] == nullptr || given != nullptr) {
    mark_in(sources_[source] == nullptr ? nullptr : given);
  } else {
    sources_[source]->with_context([&](device::Context& context) {
      context.follow_caller();
      mark_in(&context.stream());
    });
  }
}

void DeviceSources::follow(size_t bucket) {
  const std::lock_guard lock(mutex_);
  for (size_t s = 0; s < sources_.size(); ++s) {
    stream_.follow(*marks_[bucket * sources_.size() + s]);
  }
}

void DeviceSources::follow_all() {
  for (size_t s = 0; s < sources_.size(); ++s) {
    if (sources_[s] == nullptr) {
      now_[s]->record_caller(caller_stream_);
    } else {
      sources_[s]->with_context([&](device::Context& context) {
        context.follow_caller();
        now_[s]->record(context.stream());
      });
    }
    stream_.follow(*now_[s]);
  }
}

void DeviceSources::hold_up_all() {
  done_.record(stream_);
  for (const std::shared_ptr<Mlp>& source : sources_) {
    if (source == nullptr) {
      done_.hold_up_caller(caller_stream_);
    } else {
      source->with_context([&](device::Context& context) {
        context.stream().follow(done_);
        context.hold_up_caller();
      });
    }
  }
}

}  // namespace shardrec::dense
