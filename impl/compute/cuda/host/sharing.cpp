#include "compute/cuda/host/sharing.h"

#include <atomic>

#include "core/error.h"
#include "core/plugin.h"

namespace shardrec::compute::cuda::host {
namespace {

constinit std::atomic<int64_t> bytes_copied{0};

// table() has loaded the plug-in.
shardrec_cuda_sharing load_sharing() {
  (void)table();
  const core::Plugin plugin{.file = core::sentence("libshardrec_cuda.so.", SHARDREC_CUDA_ABI),
                            .what = "CUDA plug-in",
                            .function = "shardrec_cuda_sharing_plugin",
                            .needed = "memory of devices that processes share needs",
                            .package = "libshardrec's CUDA plug-in (built with a CUDA Toolkit)"};
  const core::LoadedPlugin found = core::load_plugin(plugin);
  const auto fill = reinterpret_cast<shardrec_cuda_sharing_function>(found.function);
  shardrec_cuda_sharing filled{};
  filled.size = sizeof filled;
  filled.abi = SHARDREC_CUDA_ABI;
  if (fill(&filled) == SHARDREC_CUDA_FILLED) return filled;
  core::refuse_plugin_abi(plugin, found, {.abi = filled.abi, .bytes = filled.size},
                          {.abi = SHARDREC_CUDA_ABI, .bytes = sizeof filled});
}

const shardrec_cuda_sharing& sharing() {
  static const shardrec_cuda_sharing calls = load_sharing();
  return calls;
}

}  // namespace

SharedBlock::SharedBlock(int32_t device, size_t bytes) : device_(device), size_(bytes) {
  void* data = nullptr;
  require(sharing().allocate(device, bytes, &data, &handle_), "allocate ", bytes,
          " bytes of device ", device, " for other processes of the machine");
  data_ = static_cast<std::byte*>(data);
}

SharedBlock::~SharedBlock() { sharing().release(device_, data_); }

OpenedBlock::OpenedBlock(int32_t device, const shardrec_cuda_handle& handle) : device_(device) {
  void* data = nullptr;
  require(sharing().open(device, &handle, &data), "open memory of another process on device ",
          device);
  data_ = static_cast<std::byte*>(data);
}

OpenedBlock::~OpenedBlock() { sharing().close(device_, data_); }

SharedEvent::SharedEvent(int32_t device) {
  shardrec_cuda_event* event = nullptr;
  require(sharing().create_event(device, &event, &handle_), "make an event of device ", device,
          " for other processes");
  event_.reset(event);
}

void SharedEvent::record(Stream& stream) {
  require(table().record(event_.get(), stream.handle()),
          "mark a place in the operations of device ", stream.device());
}

OpenedEvent::OpenedEvent(int32_t device, const shardrec_cuda_handle& handle) {
  shardrec_cuda_event* event = nullptr;
  require(sharing().open_event(device, &handle, &event),
          "open an event of another process on device ", device);
  event_.reset(event);
}

bool OpenedEvent::is_over() const {
  const shardrec_cuda_error error = table().query_event(event_.get());
  if (error == SHARDREC_CUDA_NOT_READY) return false;
  require(error, "ask for operations of another process");
  return true;
}

void copy_from_process(Stream& stream, void* to, const std::byte* from, size_t bytes) {
  stream.copy(to, from, bytes);
  bytes_copied.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
}

int64_t bytes_from_processes() noexcept { return bytes_copied.load(std::memory_order_relaxed); }

}  // namespace shardrec::compute::cuda::host
