// Captures and graphs: what they hold, that it takes place when and as often as it is launched, and what is
// refused meanwhile.
#include <functional>

#include "queue.h"
#include "simt/control.h"

namespace shardrec::test {
namespace {

__global__ void add_one(int* number) { ++*number; }

class Graph {
 public:
  // What `enqueue` enqueues in the stream.
  template <class Enqueue>
  Graph(cudaStream_t stream, const Enqueue& enqueue) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    enqueue();
    cudaGraph_t captured = nullptr;
    check(cudaStreamEndCapture(stream, &captured));
    check(cudaGraphInstantiateWithFlags(&graph_, captured, 0));
    check(cudaGraphDestroy(captured));
  }
  ~Graph() { check(cudaGraphExecDestroy(graph_)); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch(cudaStream_t stream) const { check(cudaGraphLaunch(graph_, stream)); }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

TEST(Graphs, TakePlaceAsOftenAsTheyAreLaunched) {
  Queue queue;
  int* const number = queue.upload(std::vector<int>(1, 5));
  const int64_t launches = simt_launches();
  const int64_t copies = simt_copies();
  {
    const Graph graph(queue.stream(), [&] {
      check(cudaMemsetAsync(number, 0, sizeof(int), queue.stream()));
      queue.run(add_one, 1, 1, 0, number);
      queue.run(add_one, 1, 1, 0, number);
    });
    EXPECT_EQ(simt_launches(), launches);
    EXPECT_EQ(queue.download(number, 1)[0], 5);
    graph.launch(queue.stream());
    queue.run(add_one, 1, 1, 0, number);
    EXPECT_EQ(queue.download(number, 1)[0], 3);
    graph.launch(queue.stream());
  }  // goes while it takes place
  EXPECT_EQ(queue.download(number, 1)[0], 2);
  EXPECT_EQ(simt_launches(), launches + 5);
  EXPECT_EQ(simt_copies(), copies + 5);
}

TEST(Graphs, ACaptureRefusesWhatIsNotPutDownAndIsInvalidFromThenOn) {
  Queue queue;
  int* const number = queue.upload(std::vector<int>(1, 0));
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  int on_host = 0;
  cudaGraph_t captured = nullptr;
  const std::function<cudaError_t()> refused[] = {
      [&] { return cudaEventRecord(event, queue.stream()); },
      [&] { return cudaStreamWaitEvent(queue.stream(), event); },
      [&] { return cudaStreamSynchronize(queue.stream()); },
      [&] { return cudaStreamQuery(queue.stream()); },
      [&] {
        return cudaMemcpyAsync(&on_host, number, sizeof(int), cudaMemcpyDeviceToHost,
                               queue.stream());
      }};
  for (const auto& call : refused) {
    check(cudaStreamBeginCapture(queue.stream(), cudaStreamCaptureModeRelaxed));
    EXPECT_EQ(cudaStreamBeginCapture(queue.stream(), cudaStreamCaptureModeRelaxed),
              cudaErrorIllegalState);
    EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(launch(add_one, 1, 1, 0, queue.stream(), number), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(cudaStreamEndCapture(queue.stream(), &captured), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(captured, nullptr);
  }
  EXPECT_EQ(queue.download(number, 1)[0], 0);
  EXPECT_EQ(cudaStreamEndCapture(queue.stream(), &captured), cudaErrorIllegalState);
  EXPECT_EQ(cudaGraphLaunch(nullptr, queue.stream()), cudaErrorInvalidValue);
  cudaGetLastError();
  check(cudaEventDestroy(event));
}

// Pageable memory is read when it is enqueued, so that a graph would have what it was then.
TEST(Graphs, ACaptureOfACopyFromPageableMemoryIsInvalid) {
  Queue queue;
  int* const number = queue.upload(std::vector<int>(1, 0));
  const int value = 1;
  check(cudaStreamBeginCapture(queue.stream(), cudaStreamCaptureModeRelaxed));
  check(cudaMemcpyAsync(number, &value, sizeof(int), cudaMemcpyHostToDevice, queue.stream()));
  cudaGraph_t captured = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(queue.stream(), &captured), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(captured, nullptr);
  cudaGetLastError();
}

}  // namespace
}  // namespace shardrec::test
