#include <algorithm>
#include <functional>
#include <new>
#include <string_view>
#include <utility>

#include "compute/cuda/kernels/calls.h"
#include "compute/cuda/kernels/command_graphs.h"

namespace shardrec::compute::cuda {
namespace {

// The first commands of a list.
struct Part {
  int64_t count = 0;
  size_t words = 0;
};

// done: those that were enqueued.
cudaError_t run_each(const Commands& list, cudaStream_t stream, Part& done) {
  const uint64_t* words = list.words.data();
  for (; done.count < list.count; ++done.count) {
    done.words = static_cast<size_t>(words - list.words.data());
    const auto run = reinterpret_cast<CommandRunner>(*words++);
    const cudaError_t error = run(words, stream);
    if (error != cudaSuccess) return error;
  }
  done.words = list.words.size();
  return cudaSuccess;
}

void remove(Commands& list, const Part& part) {
  list.words.erase(list.words.begin(), list.words.begin() + static_cast<ptrdiff_t>(part.words));
  list.count -= part.count;
}

size_t hash_of(const Commands& list) {
  const auto* const bytes = reinterpret_cast<const char*>(list.words.data());
  return std::hash<std::string_view>()({bytes, list.words.size() * sizeof(uint64_t)});
}

// The graph of a list, and its launches of kernels; null where there is none.
cudaGraphExec_t capture(const Commands& list, cudaStream_t stream, int64_t& launches) {
  // Relaxed: other threads may call what they like meanwhile.
  cudaError_t error = called(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  if (error != cudaSuccess) return nullptr;
  captured_launches = &launches;
  Part captured;
  error = run_each(list, stream, captured);
  captured_launches = nullptr;
  cudaGraph_t graph = nullptr;
  const cudaError_t end = called(cudaStreamEndCapture(stream, &graph));
  if (error == cudaSuccess) error = end;
  cudaGraphExec_t executable = nullptr;
  if (error == cudaSuccess) {
    error = called(cudaGraphInstantiateWithFlags(&executable, graph, 0));
  }
  if (graph != nullptr) called(cudaGraphDestroy(graph));
  return error == cudaSuccess ? executable : nullptr;
}

}  // namespace

CommandGraphs::~CommandGraphs() {
  // One that was launched takes place still.
  for (const Graph& graph : graphs_) called(cudaGraphExecDestroy(graph.executable));
}

cudaError_t CommandGraphs::run(Commands& list, cudaStream_t stream) {
  ++runs_;
  Part done;
  Graph* const graph = graph_of(list, stream);
  if (graph == nullptr) {
    const cudaError_t error = run_each(list, stream, done);
    remove(list, done);
    return error;
  }
  graph->last_run = runs_;
  const cudaError_t error =
      launched_graph(cudaGraphLaunch(graph->executable, stream), graph->launches);
  if (error == cudaSuccess) remove(list, {.count = list.count, .words = list.words.size()});
  return error;
}

CommandGraphs::Graph* CommandGraphs::graph_of(const Commands& list, cudaStream_t stream) {
  if (list.count == 1 || !makes_graphs_) return nullptr;
  const size_t hash = hash_of(list);
  Graph* const graph = find(list, hash);
  return graph == nullptr && came_before(hash) ? make(list, hash, stream) : graph;
}

CommandGraphs::Graph* CommandGraphs::find(const Commands& list, size_t hash) {
  const auto found = std::find_if(graphs_.begin(), graphs_.end(), [&](const Graph& graph) {
    return graph.hash == hash && graph.words == list.words;
  });
  return found == graphs_.end() ? nullptr : &*found;
}

bool CommandGraphs::came_before(size_t hash) {
  if (std::find(hashes_.begin(), hashes_.end(), hash) != hashes_.end()) return true;
  hashes_[next_hash_++ % kRemembered] = hash;
  return false;
}

CommandGraphs::Graph* CommandGraphs::make(const Commands& list, size_t hash, cudaStream_t stream) {
  try {
    graphs_.reserve(kMost);
    if (!has_room()) return nullptr;
    Graph graph{.words = list.words, .hash = hash};
    graph.executable = capture(list, stream, graph.launches);
    if (graph.executable != nullptr) return keep(std::move(graph));
    cudaGetLastError();  // whatever it was: the commands are run one by one now, and will tell
    makes_graphs_ = false;
  } catch (const std::bad_alloc&) {  // as without graphs
  }
  return nullptr;
}

bool CommandGraphs::has_room() const {
  return graphs_.size() < kMost || runs_ - longest_unused()->last_run > kLongAgo;
}

CommandGraphs::Graph* CommandGraphs::keep(Graph graph) {
  if (graphs_.size() < kMost) return &graphs_.emplace_back(std::move(graph));
  Graph& old = graphs_[static_cast<size_t>(longest_unused() - graphs_.begin())];
  called(cudaGraphExecDestroy(old.executable));
  old = std::move(graph);
  return &old;
}

std::vector<CommandGraphs::Graph>::const_iterator CommandGraphs::longest_unused() const {
  return std::min_element(graphs_.begin(), graphs_.end(),
                          [](const Graph& a, const Graph& b) { return a.last_run < b.last_run; });
}

}  // namespace shardrec::compute::cuda
