package org.shardrec;

import static org.shardrec.Checks.*;

import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** A whole DLRM's step on two ranks, then scores from many threads at once: the Java heap sees nothing of either. */
public final class StepTest {
  static final int DIM = 4, DENSE = 3, MOST = 8, THREADS = 16, CALLS = 2000;
  static final com.sun.management.ThreadMXBean ALLOCATIONS =
      (com.sun.management.ThreadMXBean) java.lang.management.ManagementFactory.getThreadMXBean();

  public static void main(String[] arguments) throws Exception {
    inFolder(folder -> {
      String root = folder.resolve("run").toString();
      ShardRec.run(2, comm -> train(comm, root));
      try (Scorer scorer = Scorer.open(root, -1, null, null)) {
        manyThreadsGetTheSameScores(scorer, root);
      }
    });
    check(ShardRec.liveObjects() == 0, "live objects at the end: " + ShardRec.liveObjects());
    System.out.println("java: ok");
  }

  /** Batches whose lengths change; of 1,500 steps the last 500 are counted. */
  static void train(Comm comm, String root) {
    OptimizerOptions sgd = new OptimizerOptions().learningRate(0.1);
    try (Model model = new Model(); Ddp ddp = new Ddp(comm, null); Mlp bottom = new Mlp(DENSE, new MlpOptions().seed(1));
        Mlp top = new Mlp(DIM + 3, new MlpOptions().seed(2)); Metrics metrics = new Metrics(comm, null);
        Interaction interaction = new Interaction(2, DIM, null)) {
      bottom.addLinear(DIM, Activation.RELU);
      top.addLinear(1, Activation.NONE);
      ddp.addMlp("bottom", bottom);
      ddp.addMlp("top", top);
      ddp.commit();
      model.setOptimizer(ShardRec.ALL_TABLES, sgd);
      for (String name : new String[] {"a", "b"}) {
        model.addFeature(model.addTable(name, 100, DIM, null), name, Pooling.SUM);
      }
      try (Plan plan = Plan.collective(comm, null, model, null);
          EmbeddingCollection tables = new EmbeddingCollection(comm, null, model, plan, null);
          Lookup lookup = new Lookup(tables, null); Checkpoint checkpoint = new Checkpoint(comm, root, null)) {
        Tensor raw = Tensor.vector(Tensor.longs(new long[2 * MOST])), ids = Tensor.vector(Tensor.longs(new long[2 * MOST]));
        Tensor lengths = Tensor.vector(Tensor.longs(new long[2 * MOST]));
        Tensor dense = matrix(DENSE), bottomOut = matrix(DIM), pooled = matrix(2 * DIM);
        Tensor joined = matrix(DIM + 3), logits = matrix(1);
        Tensor labels = matrix(1), probabilities = matrix(1), logitGradient = matrix(1), joinedGradient = matrix(DIM + 3);
        Tensor bottomGradient = matrix(DIM), pooledGradient = matrix(2 * DIM);
        Tensor flatProbabilities = Tensor.vector((FloatBuffer) probabilities.data);
        Tensor flatLabels = Tensor.vector((FloatBuffer) labels.data);
        Random random = new Random(comm.rank());
        Batch given = new Batch();
        long before = 0;
        boolean done = false;
        double loss = 0, norm = 0;
        for (int step = 0; step < 1500; ++step) {
          if (step == 1000) before = ALLOCATIONS.getCurrentThreadAllocatedBytes();
          int size = 1 + (step + comm.rank()) % MOST;
          fill(random, raw, lengths, dense, labels, size);
          ShardRec.hash64Ids(3, raw.resize(2L * size), 100, ids.resize(2L * size));
          lookup.begin(given.set(size, ids, lengths.resize(2L * size)));
          ddp.begin(true);
          bottom.forward(dense.resize(size), bottomOut.resize(size));
          lookup.forward(0, pooled.resize(size));
          done |= lookup.allDone();
          interaction.forward(bottomOut, pooled, joined.resize(size));
          top.forward(joined, logits.resize(size));
          loss += ShardRec.bceWithLogits(null,
              logits, labels.resize(size), probabilities.resize(size), logitGradient.resize(size));
          metrics.update(flatProbabilities.resize(size), flatLabels.resize(size));
          top.backward(logitGradient, joinedGradient.resize(size));
          interaction.backward(joinedGradient, bottomGradient.resize(size), pooledGradient.resize(size));
          lookup.setGradient(0, pooledGradient);
          lookup.sendGradients(Update.APPLY);
          bottom.backward(bottomGradient, null);
          ddp.end();
          ddp.await();
          norm += ddp.clipGradients(Clip.L2, 100);
          bottom.step();
          top.step();
          bottom.zeroGradients();
          top.zeroGradients();
          lookup.backward(Update.APPLY);
        }
        long allocated = ALLOCATIONS.getCurrentThreadAllocatedBytes() - before;
        check(allocated < 200, "bytes allocated in 500 steps: " + allocated); // what asking costs
        check(!done && loss > 0 && norm > 0 && tables.step() == 1500, "loss " + loss + ", norm " + norm);
        metrics.compute();
        checkpoint.addCollection("tables", tables);
        checkpoint.addMlp("bottom", bottom);
        checkpoint.addMlp("top", top);
        checkpoint.commit(1500, null);
      }
    }
    comm.shutdown();
  }

  static Tensor matrix(int columns) {
    return Tensor.matrix(Tensor.floats(MOST * columns), MOST, columns);
  }

  static void fill(Random random, Tensor raw, Tensor lengths, Tensor dense, Tensor labels, int size) {
    LongBuffer ids = (LongBuffer) raw.data, counts = (LongBuffer) lengths.data;
    for (int i = 0; i < 2 * size; ++i) {
      ids.put(i, random.nextInt(1000));
      counts.put(i, 1);
    }
    FloatBuffer inputs = (FloatBuffer) dense.data, clicks = (FloatBuffer) labels.data;
    for (int i = 0; i < DENSE * size; ++i) inputs.put(i, random.nextFloat());
    for (int i = 0; i < size; ++i) clicks.put(i, random.nextInt(2));
  }

  /** Each thread has a batch of its own, and calls that are refused. */
  static void manyThreadsGetTheSameScores(Scorer scorer, String root) throws Exception {
    check(scorer.info().equals(new Scorer.Info(1500, DENSE, 1)), scorer.info().toString());
    List<float[]> alone = new ArrayList<>();
    for (int thread = 0; thread < THREADS; ++thread) alone.add(scores(scorer, thread, 1));
    ExecutorService pool = Executors.newFixedThreadPool(THREADS);
    try {
      List<Callable<float[]>> calls = new ArrayList<>();
      for (int thread = 0; thread < THREADS; ++thread) {
        int own = thread;
        calls.add(() -> scores(scorer, own, CALLS));
      }
      List<Future<float[]>> results = pool.invokeAll(calls);
      for (int thread = 0; thread < THREADS; ++thread) {
        check(Arrays.equals(results.get(thread).get(), alone.get(thread)), "scores of thread " + thread);
      }
      check(!Arrays.equals(alone.get(0), alone.get(1)), "all batches have the same scores");
    } finally {
      pool.shutdown();
    }
    Scorer closed = Scorer.open(root, -1, new ScorerOptions().servedTables(ServedTables.INT8), null);
    closed.close();
    fails(Status.INVALID_HANDLE, "this Scorer is closed", () -> scores(closed, 0, 1));
  }

  static float[] scores(Scorer scorer, int own, int calls) {
    Random random = new Random(own);
    Tensor raw = Tensor.vector(Tensor.longs(new long[2 * MOST])), ids = Tensor.vector(Tensor.longs(new long[2 * MOST]));
    Tensor lengths = Tensor.vector(Tensor.longs(new long[2 * MOST])), dense = matrix(DENSE), labels = matrix(1), out = matrix(1);
    fill(random, raw, lengths, dense, labels, MOST);
    ShardRec.hash64Ids(3, raw, 100, ids);
    Batch given = new Batch();
    float[] first = null;
    long before = 0;
    for (int call = 0; call < calls; ++call) {
      if (call == calls / 2) before = ALLOCATIONS.getCurrentThreadAllocatedBytes();
      int size = call == 0 ? MOST : 1 + call % MOST;
      ids.resize(2L * size);
      long step = scorer.predict(given.set(size, ids, lengths.resize(2L * size)), dense.resize(size), out.resize(size));
      if (step != 1500) throw new AssertionError("answered by step " + step);
      if (first == null) first = out.toFloats();
    }
    long allocated = ALLOCATIONS.getCurrentThreadAllocatedBytes() - before;
    check(calls < CALLS || allocated < 200, "bytes allocated in " + calls / 2 + " calls: " + allocated); // what asking costs
    Tensor wrong = Tensor.vector(Tensor.longs(-1 - own, 0)), ones = Tensor.vector(Tensor.longs(1, 1));
    for (int call = 0; call < calls; ++call) {
      fails(Status.INVALID_BATCH, String.valueOf(-1 - own),
          () -> scorer.predict(new Batch(1, wrong, ones), dense.resize(1), out.resize(1)));
    }
    // The same batch gives the same bits, whatever was asked in between.
    scorer.predict(new Batch(MOST, ids.resize(2 * MOST), lengths.resize(2 * MOST)), dense.resize(MOST), out.resize(MOST));
    check(Arrays.equals(out.toFloats(), first), "other scores the second time");
    return first;
  }
}
