// Debian's libgloo-dev has gloo/transport/tcp/unbound_buffer.h, context.h and pair.h but not this
// header, which they include. Here are the layouts that they need, and nothing that runs: what is
// done with these pointers is done inside Gloo's library. Used only where Gloo's own header is
// absent.
#pragma once

#include <memory>
#include <thread>

namespace gloo {

template <typename T>
class ShareableNonOwningPtr;

template <typename T>
class NonOwningPtr;

template <typename T>
class WeakNonOwningPtr final {
 public:
  WeakNonOwningPtr();
  explicit WeakNonOwningPtr(const ShareableNonOwningPtr<T>& other);

 private:
  std::weak_ptr<T> pointer_;
};

template <typename T>
class ShareableNonOwningPtr final {
 public:
  explicit ShareableNonOwningPtr(T* pointer);
  ShareableNonOwningPtr(const ShareableNonOwningPtr&) = delete;
  ShareableNonOwningPtr& operator=(const ShareableNonOwningPtr&) = delete;
  ~ShareableNonOwningPtr();

 private:
  std::shared_ptr<T> pointer_;
};

}  // namespace gloo
