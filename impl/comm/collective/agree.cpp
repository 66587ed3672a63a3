#include "comm/collective/agree.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"

namespace shardrec::comm {
namespace {

// What travels: a status, the numeric parts (with a mask of those that are set), then the texts,
// each behind its length. Only ever read by the same release of the library (the plug-in border
// checks).
struct Note {
  int32_t status = SHARDREC_OK;
  uint32_t set = 0;
  int64_t position = 0;
  int64_t value = 0;
  int64_t limit = 0;
  uint32_t sizes[5] = {};  // sentence, table, feature, operation, path
  uint32_t reserved = 0;   // all bytes that are sent have values
};

constexpr size_t kLongestText = 4096;

std::string encode(const core::Error* error) {
  Note note;
  std::string out(sizeof(Note), '\0');
  if (error != nullptr) {
    const core::ErrorParts& parts = error->parts();
    note.status = error->status();
    note.set = (parts.position ? 1U : 0U) | (parts.value ? 2U : 0U) | (parts.limit ? 4U : 0U);
    note.position = parts.position.value_or(0);
    note.value = parts.value.value_or(0);
    note.limit = parts.limit.value_or(0);
    const std::string* texts[] = {&error->sentence(), &parts.table, &parts.feature,
                                  &parts.operation, &parts.path};
    for (int i = 0; i < 5; ++i) {
      const size_t size = std::min(texts[i]->size(), kLongestText);
      note.sizes[i] = static_cast<uint32_t>(size);
      out.append(*texts[i], 0, size);
    }
  }
  std::memcpy(out.data(), &note, sizeof note);
  return out;
}

[[noreturn]] void throw_note(const Note& note, ConstBytes message, int rank) {
  std::string texts[5];
  size_t at = sizeof(Note);
  for (int i = 0; i < 5; ++i) {
    const size_t size = std::min<size_t>(note.sizes[i], message.size() - at);
    texts[i].resize(size);
    if (size != 0) std::memcpy(texts[i].data(), message.data() + at, size);
    at += size;
  }
  core::ErrorParts parts{.rank = int64_t{rank}};
  if ((note.set & 1U) != 0) parts.position = note.position;
  if ((note.set & 2U) != 0) parts.value = note.value;
  if ((note.set & 4U) != 0) parts.limit = note.limit;
  parts.table = texts[1];
  parts.feature = texts[2];
  parts.operation = texts[3];
  parts.path = texts[4];
  throw AgreedError(static_cast<shardrec_status>(note.status),
                    core::sentence("rank ", rank, ": ", texts[0]), std::move(parts));
}

// Throws DISAGREEMENT for the first rank whose values, behind the first `skipped` bytes of its message, are
// others than rank 0's. Allocates nothing where there is none: it may follow a call's last exchange, behind
// which nothing may fail on one rank alone.
void compare_values(const Operation& operation, std::span<const SharedValue> values,
                    std::span<const ConstBytes> messages, size_t skipped) {
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    if (messages[rank].size() != skipped + values.size() * sizeof(uint64_t)) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 core::sentence("rank ", rank, " sent a malformed message in ", operation.name),
                 {.rank = static_cast<int64_t>(rank), .operation = operation.name});
    }
    const ConstBytes theirs = messages[rank].subspan(skipped);
    const auto differing = std::ranges::mismatch(theirs, messages[0].subspan(skipped)).in1;
    if (differing == theirs.end()) continue;
    const SharedValue& what =
        values[static_cast<size_t>(differing - theirs.begin()) / sizeof(uint64_t)];
    const std::string table(what.table);
    const std::string whose = table.empty() ? table : core::sentence(" of table \"", table, "\"");
    throw AgreedError(
        SHARDREC_DISAGREEMENT,
        core::sentence("rank ", rank, " gave ", operation.name, " another ", what.name, whose,
                       " than rank 0: they must be the same on all ranks"),
        {.rank = static_cast<int64_t>(rank), .table = table, .operation = operation.name});
  }
}

// What this rank's work threw; none where it returned.
std::optional<core::Error> error_of(const Operation& operation, core::FunctionRef<void()> work) {
  try {
    work();
  } catch (const core::Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return core::Error(SHARDREC_OUT_OF_MEMORY,
                       core::sentence("memory ran out in ", operation.name));
  } catch (const std::exception& error) {
    return core::Error(SHARDREC_INTERNAL, error.what());
  }
  return std::nullopt;
}

std::vector<uint64_t> numbers_of(std::span<const SharedValue> values) {
  std::vector<uint64_t> numbers;
  for (const SharedValue& shared : values) numbers.push_back(shared.value);
  return numbers;
}

}  // namespace

void agree(Collectives& collectives, const Operation& operation, core::FunctionRef<void()> work) {
  agree_on_same(collectives, operation, [&] {
    work();
    return std::vector<SharedValue>();
  });
}

// A message is a note and, where the note is of no error, the values.
void agree_on_same(Collectives& collectives, const Operation& operation,
                   core::FunctionRef<std::vector<SharedValue>()> work) {
  std::vector<SharedValue> values;
  const std::optional<core::Error> mine = error_of(operation, [&] { values = work(); });
  std::string message = encode(mine ? &*mine : nullptr);
  const std::vector<uint64_t> numbers = numbers_of(values);
  for (const std::byte each : std::as_bytes(std::span(numbers))) {
    message.push_back(static_cast<char>(each));
  }
  const auto messages = collectives.all_gather(operation, std::as_bytes(std::span(message)));
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    Note note;
    if (messages[rank].size() < sizeof note) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 core::sentence("rank ", rank, " sent a truncated note in ", operation.name),
                 {.rank = static_cast<int64_t>(rank)});
    }
    std::memcpy(&note, messages[rank].data(), sizeof note);
    if (note.status != SHARDREC_OK) {
      throw_note(note, messages[rank], static_cast<int>(rank));
    }
  }
  compare_values(operation, values, messages, sizeof(Note));
}

void require_same(Collectives& collectives, const Operation& operation,
                  std::span<const SharedValue> values) {
  const std::vector<uint64_t> mine = numbers_of(values);
  compare_values(operation, values,
                 collectives.all_gather(operation, std::as_bytes(std::span(mine))), 0);
}

void require_same_text(Collectives& collectives, const Operation& operation, const char* what,
                       std::string_view text) {
  const auto texts =
      collectives.all_gather(operation, std::as_bytes(std::span(text.data(), text.size())));
  const auto text_of = [&](size_t rank) {
    std::string given(texts[rank].size(), '\0');
    if (!given.empty()) std::memcpy(given.data(), texts[rank].data(), given.size());
    return given;
  };
  const std::string first = text_of(0);
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    const std::string own = text_of(rank);
    if (own == first) continue;
    throw AgreedError(
        SHARDREC_DISAGREEMENT,
        core::sentence("rank ", rank, " gave ", operation.name, " the ", what, " \"", own,
                       "\", and rank 0 \"", first, "\": it must be the same on all ranks"),
        {.rank = static_cast<int64_t>(rank), .operation = operation.name});
  }
}

void tell_shortage(Communicator& communicator, const char* operation,
                   core::FunctionRef<void()> body) {
  try {
    body();
  } catch (const AgreedError&) {
    throw;
  } catch (const core::Error& error) {
    if (error.status() == SHARDREC_OUT_OF_MEMORY) communicator.fail(operation);
    throw;
  } catch (const std::bad_alloc&) {
    communicator.fail(operation);
    throw;
  }
}

}  // namespace shardrec::comm
