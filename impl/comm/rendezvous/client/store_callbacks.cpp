#include <algorithm>
#include <new>

#include "comm/rendezvous/client/rendezvous.h"

namespace shardrec::comm::rendezvous {
namespace {

// set only waits for the server.
constexpr milliseconds kSetTime{30000};

template <class Body>
int32_t status_of(Body body) noexcept {
  try {
    return body();
  } catch (const core::Error& error) {
    switch (error.status()) {
      case SHARDREC_TIMEOUT:
        return SHARDREC_TRANSPORT_TIMEOUT;
      case SHARDREC_CLOSED:
        return SHARDREC_TRANSPORT_CANCELLED;
      case SHARDREC_OUT_OF_MEMORY:
        return SHARDREC_TRANSPORT_OUT_OF_MEMORY;
      default:
        return SHARDREC_TRANSPORT_FAILED;
    }
  } catch (const std::bad_alloc&) {
    return SHARDREC_TRANSPORT_OUT_OF_MEMORY;
  } catch (...) {
    return SHARDREC_TRANSPORT_FAILED;
  }
}

int32_t store_set(void* store, const char* key, const void* data, uint64_t bytes) {
  return status_of([&] {
    static_cast<Client*>(store)->set(
        key, ConstBytes(static_cast<const std::byte*>(data), static_cast<size_t>(bytes)),
        Clock::now() + kSetTime);
    return SHARDREC_TRANSPORT_OK;
  });
}

int32_t store_get(void* store, const char* key, void* data, uint64_t capacity, uint64_t* bytes,
                  double seconds) {
  return status_of([&] {
    const auto wait = std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e9));
    const Bytes value = static_cast<Client*>(store)->get(
        key, Clock::now() + std::chrono::duration_cast<Clock::duration>(wait));
    *bytes = value.size();
    if (value.size() > capacity) return SHARDREC_TRANSPORT_FAILED;
    std::copy(value.begin(), value.end(), static_cast<std::byte*>(data));
    return SHARDREC_TRANSPORT_OK;
  });
}

}  // namespace

void fill_store(shardrec_transport_job& job, Client& client) {
  job.store = &client;
  job.store_set = store_set;
  job.store_get = store_get;
}

}  // namespace shardrec::comm::rendezvous
