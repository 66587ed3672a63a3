// Calls of the library as a whole: log, controls, last error, probe.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "compute/profile/memory_profile.h"
#include "core/error.h"
#include "fuzz/rank.h"

namespace shardrec::fuzz {
namespace {

// A file of the profile cache: read as a profile, or refused as corrupt.
void damaged_profile(Input& in) {
  using compute::profile_from_json;
  using compute::profile_to_json;
  compute::MemoryProfile profile{.machine = {"cpu", 2, 1, 2, 3, "set"}, .table_bytes = 64};
  profile.copies.push_back({1, 5});
  profile.rows.push_back({.row_bytes = 64, .bag_length = 20, .gb_per_second = 7, .by_hint = {7}});
  std::string text = profile_to_json(profile);
  for (int damage = 1 + in.below(4); damage > 0; --damage) {
    const size_t at = static_cast<size_t>(in.word() & INT32_MAX) % text.size();
    const auto length = static_cast<size_t>(in.below(32));
    if (in.one_in(4)) {
      text.erase(at, std::min(length, text.size() - 1));
    } else if (in.one_in(3)) {
      text.insert(at, length, static_cast<char>(in.byte()));
    } else {
      text[at] = static_cast<char>(in.byte());
    }
  }
  try {
    const std::string written = profile_to_json(profile_from_json(text, "file"));
    if (profile_to_json(profile_from_json(written, "file")) != written) {
      broken_promise("a profile that was read is written and read again");
    }
  } catch (const core::Error& error) {
    if (error.status() != SHARDREC_CORRUPT_DATA || error.sentence().empty()) {
      broken_promise("a profile that cannot be read is corrupt data");
    }
  }
}

}  // namespace

// Tensors of memory are made, but not read: another rank may destroy it.
void Rank::memory_call(Input& in) {
  make(in, memories_, [&](auto out) {
    return shardrec_memory_create(
        as_enum<shardrec_device_type>(in.of<int64_t>({1, 1, 1, 2, 0, 99})),
        in.of<int32_t>({0, 0, 0, 1, -1, INT32_MAX}), in.of<int64_t>({64, 0, 1000, -1, INT64_MAX}),
        nullptr, in.one_in(8) ? nullptr : out);
  });
  const std::array<int64_t, 3> shape = {in.number(), in.number(), in.number()};
  shardrec_tensor view{};
  note(shardrec_memory_tensor(
      handle(in, &Rank::memories_), in.number(),
      in.of({SHARDREC_FLOAT32, SHARDREC_UINT8, SHARDREC_INT64, as_enum<shardrec_dtype>(12345)}),
      in.of<int32_t>({2, 0, 1, 3, -1, 9}), in.one_in(8) ? nullptr : shape.data(),
      in.one_in(8) ? nullptr : &view));
  const int64_t rows = in.below(4);
  const shardrec_tensor to = matrix(in, in.one_in(2), rows, 4);
  const shardrec_tensor from = matrix(in, in.one_in(2), rows, 4);
  note(shardrec_tensor_copy(or_null(in, to), or_null(in, from), in.number()));
}

void Rank::library_call(Input& in) {
  switch (in.below(9)) {
    case 0: {
      char* text = nullptr;
      shardrec_log_level level{};
      int32_t rank = 0;
      note(shardrec_log_next(static_cast<int32_t>(in.of<int64_t>({0, 0, 1, -1})), &level, &rank,
                             &text));
      shardrec_text_free(text);
      return;
    }
    case 1:
      note(shardrec_log_set_level(as_enum<shardrec_log_level>(in.below(7))));
      return;
    case 2: {
      char* text = nullptr;
      take(shardrec_capabilities_json(&text), text);
      return;
    }
    case 3: {
      make(in, controls_, [](auto out) { return shardrec_control_create(nullptr, out); });
      int64_t done = 0;
      note(shardrec_control_progress(handle(in, &Rank::controls_), &done, nullptr));
      note(shardrec_control_cancel(handle(in, &Rank::controls_)));
      return;
    }
    case 4: {
      int64_t value = 0;
      const auto status = shardrec_last_error_i64(as_enum<shardrec_error_part>(in.below(7)),
                                                  in.one_in(8) ? nullptr : &value);
      (void)status;  // leaves the error alone, so that note() would not find it
      return;
    }
    case 5: {
      char* text = nullptr;
      take(shardrec_probe_json(nullptr, 0, 1, nullptr, in.one_in(8) ? nullptr : &text), text);
      // Numbers of threads that are refused: others are measured, for seconds.
      const auto threads = in.of<int32_t>({-1, 4097, INT32_MIN, INT32_MAX});
      shardrec_control* control = in.one_in(2) ? nullptr : handle(in, &Rank::controls_);
      const auto* device =
          in.of<const char*>({nullptr, "cpu", "cuda", "cuda:1024", "cuda:-1", "", "\xff"});
      char* measured = nullptr;
      take(shardrec_probe_json(device, threads, static_cast<int32_t>(in.number()), control,
                               &measured),
           measured);
      int32_t available = 0;
      char* reason = nullptr;
      const auto* name = in.of<const char*>(
          {"local", "gloo", "cpu", "cuda:7", "avx2", "openblas", "", nullptr, "\xff"});
      const bool wants_reason = in.one_in(2);
      const shardrec_status told =
          shardrec_available(as_enum<shardrec_capability>(in.below(5)), name,
                             in.one_in(8) ? nullptr : &available, wants_reason ? &reason : nullptr);
      take(told, reason, wants_reason);
      return;
    }
    case 6:
      return damaged_profile(in);
    case 7:
      return memory_call(in);
    default: {
      char* text = nullptr;
      const auto status =
          shardrec_last_error_text(as_enum<shardrec_error_part>(100 + in.below(6)), &text);
      (void)status;
      shardrec_text_free(text);
    }
  }
}

}  // namespace shardrec::fuzz
