// A stack of linear layers, y = activation(x W^T + b), trained in place (capi's layers.h).
//
// Rows are cut into tiles by the batch size alone, and each tile runs through all layers while it
// is in cache: forward, then gradients of activations. Weight gradients are cut into blocks of W
// and chunks of rows by the shapes alone; chunks are added in a fixed tree. Hence bits do not
// depend on the number of threads. A step of a batch not larger than one before allocates nothing.
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/memory.h"
#include "core/tensor.h"
#include "core/threads.h"
#include "dense/gemm.h"
#include "dense/parameters.h"
#include "plan/model/model.h"
#include "shardrec/layers.h"

namespace shardrec::dense {

struct MlpOptions {
  plan::Optimizer optimizer;
  uint64_t seed = 0;
  int threads = 1;
  bool accumulate = false;  // does backward add to the gradients?
};

// The shape that a layer was added with.
struct LayerShape {
  int64_t outputs = 0;
  shardrec_activation activation = SHARDREC_ACTIVATION_NONE;
};

// Who wants to know of gradients while backward goes on.
class GradientListener {
 public:
  GradientListener() = default;
  GradientListener(const GradientListener&) = delete;
  GradientListener& operator=(const GradientListener&) = delete;
  virtual ~GradientListener() = default;
  // Throws what backward is to throw before it has changed anything.
  virtual void before_backward() = 0;
  // The gradients of parameters [first, first + count) of the stack are whole.
  virtual void ready(int64_t first, int64_t count) = 0;
  // Nobody wants to know any more.
  virtual bool expired() const noexcept = 0;
};

class Mlp {
 public:
  // Throws INVALID_ARGUMENT, UNSUPPORTED (optimizer, GEMM plug-in).
  Mlp(int64_t inputs, const MlpOptions& options);

  // Throws INVALID_ARGUMENT, INVALID_STATE after the first forward, OUT_OF_MEMORY; then nothing has
  // changed.
  void add_linear(int64_t outputs, shardrec_activation activation);

  int64_t inputs() const noexcept { return inputs_; }
  int64_t outputs() const noexcept;  // inputs() while there is no layer
  std::vector<LayerShape> shapes() const;

  Parameters& parameters() noexcept { return parameters_; }
  const Parameters& parameters() const noexcept { return parameters_; }

  // The input is read again by backward. Throws INVALID_STATE without layers, INVALID_ARGUMENT for
  // shapes.
  void forward(const core::Matrix& input, const core::Matrix& output);

  // Overwrites all gradients, or adds to them: each gets the bits that it would be overwritten
  // with, added in float32. Where it throws, they are as before. The input's are always
  // overwritten; input_gradient.data null: not wanted.
  void backward(const core::Matrix& output_gradient, const core::Matrix& input_gradient);

  // Told from the last layer to the first. No layer is added afterwards. Throws INVALID_STATE where
  // there is one that has not expired, or no layer.
  void set_listener(std::shared_ptr<GradientListener> listener);

  void zero_gradients();

  // Throws INVALID_STATE before the first backward.
  void step();

 private:
  struct Layer {
    int64_t inputs = 0;
    int64_t outputs = 0;
    shardrec_activation activation = SHARDREC_ACTIVATION_NONE;
    int64_t weight = 0;  // offsets into the parameters
    int64_t bias = 0;
    core::Scratch activations;  // [batch, outputs]; unused in a last layer without activation
    core::Scratch gradients;    // of what enters the activation; as activations
    core::Scratch bias_sums;    // [tiles, outputs]
    core::Scratch partials;     // [chunks, outputs, inputs] where in_parts() says so
  };
  // How the rows of a batch are cut for one layer's weight gradient.
  struct Cut {
    int64_t rows = 0;  // of a chunk
    int64_t chunks = 0;
    int64_t block_rows = 0;  // of W
    int64_t blocks = 0;
  };

  struct LayerRange {
    size_t begin = 0;
    size_t end = 0;
  };

  bool has_buffers(size_t layer) const noexcept;
  int64_t tile_rows() const noexcept;
  int64_t tile_count() const noexcept;
  Cut cut(const Layer& layer) const noexcept;
  // Are weight gradients added up from parts, or written where they belong?
  bool in_parts(const Cut& cut) const noexcept { return cut.chunks > 1 || accumulate_; }
  // The memory of layer l's output, or of the gradient before its activation.
  core::Matrix output_of(size_t layer, const core::Matrix& last) const noexcept;
  core::Matrix gradient_of(size_t layer, const core::Matrix& last) const noexcept;

  void forward_tile(int64_t begin, int64_t end, const core::Matrix& output) const noexcept;
  // Layers of the range, those behind it being done.
  void backward_layers(const LayerRange& range, const core::Matrix& output_gradient,
                       const core::Matrix& input_gradient);
  void backward_tile(int64_t tile, const LayerRange& range, const core::Matrix& output_gradient,
                     const core::Matrix& input_gradient) const noexcept;
  void tell_ready(const LayerRange& range);
  void weight_gradient(const Layer& layer, const Cut& cut, int64_t task,
                       const core::Matrix& gradient, const core::Matrix& input) const noexcept;
  void add_up(const Layer& layer, const Cut& cut);

  int64_t inputs_;
  uint64_t seed_;
  bool accumulate_;
  core::Threads threads_;
  GemmRoom room_;
  const Gemm& gemm_;
  Parameters parameters_;
  std::vector<Layer> layers_;
  bool is_wide_ = false;  // some layer is
  std::shared_ptr<GradientListener> listener_;
  core::Matrix input_;   // of the last forward
  int64_t batch_ = -1;   // of the last forward; -1: none whose backward is possible
  bool frozen_ = false;  // forward was called
  bool has_gradients_ = false;
};

}  // namespace shardrec::dense
