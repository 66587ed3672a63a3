#include "fuzz/rank.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "support/structs.h"

namespace shardrec::fuzz {
namespace {

constexpr int kMostCalls = 60;

std::mutex aborting;  // held for ever

}  // namespace

void broken_promise(const std::string& sentence) {
  std::fprintf(stderr, "broken promise: %s\n", sentence.c_str());
  aborting.lock();
  std::abort();
}

Rank::Rank(int rank, shardrec_local* group) : rank_(rank) {
  shardrec_comm* comm = nullptr;
  if (note(shardrec_comm_create_local(group, rank, nullptr, &comm)) != SHARDREC_OK) {
    broken_promise("a rank of a new group has a communicator");
  }
  // Short, so that calls that do not match end soon.
  shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 0.03);
  shardrec_comm_set_f64(comm, SHARDREC_COMM_SETUP_SECONDS, 0.03);
  comms_.put(0, comm);
}

void Rank::run(Input in) {
  if (in.byte() % 8 != 7) set_up(in);
  for (int calls = 0; calls < kMostCalls && !in.empty(); ++calls) {
    const uint8_t who = in.byte();
    Input here = in;
    if (who >= 252 - 2 * rank_ && who < 254 - 2 * rank_) {
      in.byte();  // the other rank's alone
      continue;
    }
    call(here);
    in = here;
  }
}

shardrec_status Rank::note(shardrec_status status) {
  if (status == SHARDREC_OK) return status;
  if (shardrec_last_error_status() != status || *shardrec_last_error() == '\0' ||
      status == SHARDREC_INTERNAL) {
    const std::string last = shardrec_last_error();
    broken_promise("status " + std::to_string(status) + ", last error " +
                   std::to_string(shardrec_last_error_status()) + " \"" + last + "\"");
  }
  return status;
}

void Rank::take(shardrec_status status, char* text, bool wanted) {
  if ((note(status) == SHARDREC_OK && wanted) != (text != nullptr)) {
    broken_promise("a text that is asked for comes with OK and only then");
  }
  shardrec_text_free(text);
}

void* Rank::memory(size_t bytes) {
  memory_->emplace_back(bytes / sizeof(double) + 1);
  return memory_->back().data();
}

std::string Rank::name(Input& in) {
  return in.of<const char*>(
      {"user", "item", "a", "", "\xff\xfe", "sehr langer Name, l\xc3\xa4nger", "user", "b", "c"});
}

// Changes a tensor so that it describes no more memory than before, or says what is refused.
void Rank::spoil(Input& in, shardrec_tensor& tensor) {
  switch (in.below(10)) {
    case 0:
      tensor.data = nullptr;
      break;
    case 1:
      tensor.device_type = static_cast<int32_t>(in.of<int64_t>({2, 0, -1, in.number()}));
      break;
    case 2:
      tensor.device_id = static_cast<int32_t>(in.number());
      break;
    case 3:
      tensor.dtype =
          in.of<int32_t>({SHARDREC_INT32, SHARDREC_FLOAT16, SHARDREC_BFLOAT16, 0, -1, 7});
      break;
    case 4:
      tensor.ndim = in.of<int32_t>({0, 1, -1, 9, INT32_MAX, INT32_MIN});
      break;
    case 5:
      tensor.shape[0] = std::min<int64_t>(in.number(), tensor.shape[0]);
      break;
    case 6:
      tensor.shape[1] = std::min<int64_t>(in.number(), tensor.shape[1]);
      break;
    case 7:  // more than there is, and nothing there
      tensor.data = nullptr;
      tensor.shape[in.below(2)] = in.number();
      break;
    case 8:
      tensor.stride[0] = std::min<int64_t>(in.number(), 1);
      break;
    default:
      tensor.stride[1] = in.of<int64_t>({0, -1, INT64_MIN});
  }
}

shardrec_tensor Rank::vector(Input& in, bool clean, shardrec_dtype dtype, int64_t length,
                             void* data) {
  shardrec_tensor tensor{};
  note(shardrec_tensor_vector(data, dtype, length, &tensor));
  if (!clean && in.one_in(6)) spoil(in, tensor);
  return tensor;
}

shardrec_tensor Rank::matrix(Input& in, bool clean, int64_t rows, int64_t cols) {
  rows = std::clamp<int64_t>(rows, 0, 64);
  cols = std::clamp<int64_t>(cols, 0, 1024);
  shardrec_tensor tensor{};
  // Room for any dtype, and for a row more.
  void* data = memory(static_cast<size_t>((rows + 1) * (cols + 1)) * sizeof(double));
  note(shardrec_tensor_matrix(data, SHARDREC_FLOAT32, rows, cols, &tensor));
  if (!clean && in.one_in(6)) spoil(in, tensor);
  return tensor;
}

const shardrec_tensor* Rank::or_null(Input& in, const shardrec_tensor& tensor) {
  if (in.one_in(24)) return nullptr;
  tensors_.push_back(tensor);
  return &tensors_.back();
}

// A batch whose bags are short and whose ids are mostly rows of the smallest table.
void Rank::begin(Input& in, bool clean) {
  const int64_t batch = in.below(7);
  batch_ = batch;
  const auto bags = static_cast<size_t>(batch * shape_.features);
  const bool wide = in.one_in(2);
  const bool by_offsets = in.one_in(3);
  std::vector<int64_t> lengths(bags);
  const int shortest = in.below(3);
  const uint8_t seed = in.byte();
  int64_t ids = 0;
  for (size_t i = 0; i < bags; ++i) {
    lengths[i] = shortest + static_cast<int64_t>((i * 5 + seed) % 3);
    ids += lengths[i];
  }
  std::vector<int64_t> values(static_cast<size_t>(ids));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int64_t>((i * 31 + seed + static_cast<size_t>(rank_)) %
                                     static_cast<size_t>(std::max<int64_t>(shape_.rows, 1)));
  }
  if (!clean && !values.empty() && in.one_in(6)) values[seed % values.size()] = in.number();
  if (!clean && !lengths.empty() && in.one_in(6)) lengths[seed % lengths.size()] = in.number();
  if (by_offsets) {
    uint64_t at = 0;  // wraps around where a length is a wild number
    for (int64_t& length : lengths) {
      const auto own = static_cast<uint64_t>(length);
      length = static_cast<int64_t>(at);
      at += own;
    }
    lengths.push_back(static_cast<int64_t>(at));
  }
  const auto put = [&](const std::vector<int64_t>& numbers) -> void* {
    void* data = memory(numbers.size() * sizeof(int64_t));
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto narrow = static_cast<int32_t>(numbers[i]);
      if (wide) std::memcpy(static_cast<char*>(data) + 8 * i, &numbers[i], 8);
      if (!wide) std::memcpy(static_cast<char*>(data) + 4 * i, &narrow, 4);
    }
    return data;
  };
  const shardrec_dtype dtype = wide ? SHARDREC_INT64 : SHARDREC_INT32;
  const auto tensor = [&](const std::vector<int64_t>& numbers) {
    return vector(in, clean, dtype, static_cast<int64_t>(numbers.size()), put(numbers));
  };
  const shardrec_tensor* values_at = or_null(in, tensor(values));
  const shardrec_tensor* lengths_at = or_null(in, tensor(lengths));
  const shardrec_tensor* weights = nullptr;
  if (in.one_in(3)) {
    weights = or_null(in, vector(in, clean, SHARDREC_FLOAT32, ids,
                                 memory(static_cast<size_t>(ids) * sizeof(double))));
  }
  const int64_t said = !clean && in.one_in(12) ? in.number() : batch;
  shardrec_lookup* lookup = handle(in, &Rank::lookups_);
  note(by_offsets ? begin_batch(lookup, {.batch_size = said,
                                         .values = values_at,
                                         .offsets = lengths_at,
                                         .weights = weights})
                  : begin_batch(lookup, {.batch_size = said,
                                         .values = values_at,
                                         .lengths = lengths_at,
                                         .weights = weights}));
}

void Rank::drop_something(Input& in) {
  const int slot = in.one_in(4) ? 1 : 0;
  switch (in.below(14)) {
    case 0:
      return controls_.drop(slot);
    case 1:
      return options_.drop(slot);
    case 2:
      return groups_.drop(slot);
    case 3:
      return comms_.drop(slot);
    case 4:
      return models_.drop(slot);
    case 5:
      return topologies_.drop(slot);
    case 6:
      return plans_.drop(slot);
    case 7:
      return collections_.drop(slot);
    case 8:
      return lookups_.drop(slot);
    case 9:
      return ddps_.drop(slot);
    case 12:
      return fsdps_.drop(slot);
    case 10:
      return mlps_.drop(slot);
    case 11:
      return interactions_.drop(slot);
    default:
      return metrics_.drop(slot);
  }
}

}  // namespace shardrec::fuzz
