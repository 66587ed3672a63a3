#include "dense/ddp/description.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/tensor.h"

namespace shardrec::dense {
namespace {

void put(std::string& out, int64_t value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}

void put(std::string& out, std::string_view text) {
  put(out, static_cast<int64_t>(text.size()));
  out += text;
}

class Reader {
 public:
  explicit Reader(comm::ConstBytes bytes) : bytes_(bytes) {}
  int64_t number() {
    int64_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() {
    const comm::ConstBytes bytes = take(static_cast<size_t>(number()));
    std::string out(bytes.size(), '\0');
    if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  std::string shape() {
    std::string out = "[";
    const int64_t dimensions = number();
    for (int64_t i = 0; i < dimensions; ++i) {
      if (i != 0) out += ", ";
      core::append(out, number());
    }
    return out + "]";
  }

 private:
  comm::ConstBytes take(size_t size) {
    if (size > bytes_.size()) {
      core::fail(SHARDREC_CORRUPT_DATA, "a rank's description of its parameters is cut off");
    }
    const comm::ConstBytes out = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return out;
  }
  comm::ConstBytes bytes_;
};

[[noreturn]] void mismatch(size_t rank, const std::string& what, int64_t position = -1) {
  core::ErrorParts parts{.rank = static_cast<int64_t>(rank)};
  if (position >= 0) parts.position = position;
  core::fail(SHARDREC_DISAGREEMENT, core::sentence("rank ", rank, " differs from rank 0: ", what),
             std::move(parts));
}

void compare_options(size_t rank, Reader& expected, Reader& seen) {
  const int64_t count = expected.number();
  if (seen.number() != count) mismatch(rank, "it is of another release of the library");
  for (int64_t i = 0; i < count; ++i) {
    const std::string name = expected.text();
    const std::string value = expected.text();
    seen.text();
    const std::string its_value = seen.text();
    if (value == its_value) continue;
    mismatch(rank, core::sentence("its ", name, " is ", its_value, ", that of rank 0 ", value));
  }
}

void compare_parameter(size_t rank, int64_t number, Reader& expected, Reader& seen) {
  const std::string name = expected.text();
  const std::string its_name = seen.text();
  if (name != its_name) {
    mismatch(rank,
             core::sentence("its parameter ", number, " is named \"", its_name,
                            "\", that of rank 0 \"", name, "\""),
             number);
  }
  const auto dtype = static_cast<int32_t>(expected.number());
  const auto its_dtype = static_cast<int32_t>(seen.number());
  if (dtype != its_dtype) {
    mismatch(rank,
             core::sentence("its parameter \"", name, "\" has dtype ", core::dtype_name(its_dtype),
                            ", that of rank 0 ", core::dtype_name(dtype)),
             number);
  }
  const std::string shape = expected.shape();
  const std::string its_shape = seen.shape();
  if (shape != its_shape) {
    mismatch(rank,
             core::sentence("its parameter \"", name, "\" has shape ", its_shape,
                            ", that of rank 0 ", shape),
             number);
  }
}

void compare(std::span<const comm::ConstBytes> messages) {
  for (size_t rank = 1; rank < messages.size(); ++rank) {
    if (std::ranges::equal(messages[0], messages[rank])) continue;
    Reader expected(messages[0]);
    Reader seen(messages[rank]);
    compare_options(rank, expected, seen);
    const int64_t count = expected.number();
    const int64_t its_count = seen.number();
    for (int64_t i = 0; i < std::min(count, its_count); ++i) {
      compare_parameter(rank, i, expected, seen);
    }
    const std::string extra = count < its_count ? seen.text() : expected.text();
    mismatch(rank,
             core::sentence("it added ", its_count, " parameters, rank 0 added ", count, "; \"",
                            extra, "\" is missing on rank ", count < its_count ? 0 : rank),
             std::min(count, its_count));
  }
}

}  // namespace

std::string describe(std::span<const OptionText> options,
                     std::span<const ParameterText> parameters) {
  std::string out;
  put(out, static_cast<int64_t>(options.size()));
  for (const OptionText& option : options) {
    put(out, option.name);
    put(out, option.value);
  }
  put(out, static_cast<int64_t>(parameters.size()));
  for (const ParameterText& parameter : parameters) {
    put(out, parameter.name);
    put(out, parameter.dtype);
    put(out, static_cast<int64_t>(parameter.shape.size()));
    for (const int64_t size : parameter.shape) put(out, size);
  }
  return out;
}

void compare_descriptions(const char* call, std::span<const comm::ConstBytes> messages) {
  try {
    compare(messages);
  } catch (const core::Error& error) {
    core::ErrorParts parts = error.parts();
    parts.operation = call;
    core::fail(error.status(), error.sentence(), std::move(parts));
  }
}

}  // namespace shardrec::dense
