import java.lang.management.ManagementFactory;
import java.util.ArrayDeque;
import java.util.Deque;
import org.shardrec.*;

/** Times steps in Java beside the same in C: see tests/bench/overhead, which runs it. */
public final class Overhead {
  static final int DIM = 16, ROWS = 1000, DENSE = 4;
  static final String[] KINDS = {"tables", "whole", "hash"}; // in the order of steps.h

  static native long open(int kind, int tables, long batch);

  static native int steps(long training, long count);

  static native void close(long training);

  /** A training, or what stands in its place, with what it has opened. */
  abstract static class Training implements AutoCloseable {
    private final Deque<Handle> handles = new ArrayDeque<>();

    <T extends Handle> T open(T handle) {
      handles.push(handle);
      return handle;
    }

    abstract void step();

    final void steps(long count) {
      for (long i = 0; i < count; ++i) step();
    }

    @Override
    public final void close() {
      while (!handles.isEmpty()) handles.pop().close();
    }
  }

  static final class Hash extends Training {
    private final Tensor ids, hashes;

    Hash(int count) {
      ids = Tensor.vector(Tensor.longs(idsOf(count)));
      hashes = Tensor.vector(Tensor.longs(new long[count]));
    }

    @Override
    void step() {
      ShardRec.hash64Ids(1, ids, ROWS, hashes);
    }
  }

  static class Tables extends Training {
    final Lookup lookup;
    final Tensor ids, lengths, pooled;
    final Batch given = new Batch();
    final int tables, batch;

    Tables(Comm comm, int tables, int batch) {
      this.tables = tables;
      this.batch = batch;
      Model model = open(new Model());
      for (int i = 0; i < tables; ++i) {
        model.addFeature(model.addTable("t" + i, ROWS, DIM, null), "t" + i, Pooling.SUM);
      }
      Plan plan = open(Plan.collective(comm, null, model, null));
      lookup = open(new Lookup(open(new EmbeddingCollection(comm, null, model, plan, new CollectionOptions().threads(1))), null));
      ids = Tensor.vector(Tensor.longs(idsOf(tables * batch)));
      long[] ones = new long[tables * batch];
      java.util.Arrays.fill(ones, 1);
      lengths = Tensor.vector(Tensor.longs(ones));
      pooled = matrix(tables * DIM);
    }

    Tensor matrix(int columns) {
      return Tensor.matrix(Tensor.floats(batch * columns), batch, columns);
    }

    @Override
    void step() {
      lookup.begin(given.set(batch, ids, lengths));
      lookup.forward(0, pooled);
      lookup.setGradient(0, pooled);
      lookup.backward(Update.APPLY);
    }
  }

  static final class Whole extends Tables {
    private final Interaction cross = open(new Interaction(tables, DIM, null));
    private final Mlp bottom = open(new Mlp(DENSE, null)), top = open(new Mlp(cross.outputs(), null));
    private final Ddp ddp;
    private final Metrics metrics;
    private final Tensor input = matrix(DENSE), dense = matrix(DIM), crossed = matrix((int) cross.outputs());
    private final Tensor logits = matrix(1), labels = matrix(1), predicted = matrix(1), logitsGradient = matrix(1);
    private final Tensor crossedGradient = matrix((int) cross.outputs()), denseGradient = matrix(DIM);
    private final Tensor pooledGradient = matrix(tables * DIM);
    private long number;

    Whole(Comm comm, int tables, int batch) {
      super(comm, tables, batch);
      bottom.addLinear(DIM, Activation.RELU);
      top.addLinear(1, Activation.NONE);
      ddp = open(new Ddp(comm, null));
      ddp.addMlp("bottom", bottom);
      ddp.addMlp("top", top);
      ddp.commit();
      metrics = open(new Metrics(comm, null));
    }

    @Override
    void step() {
      int size = batch - (int) (number++ % 8);
      lookup.begin(given.set(size, ids.resize((long) tables * size), lengths.resize((long) tables * size)));
      bottom.forward(input.resize(size), dense.resize(size));
      lookup.forward(0, pooled.resize(size));
      lookup.allDone();
      cross.forward(dense, pooled, crossed.resize(size));
      top.forward(crossed, logits.resize(size));
      ShardRec.bceWithLogits(null, logits, labels.resize(size), predicted.resize(size), logitsGradient.resize(size));
      ddp.begin(true);
      top.backward(logitsGradient, crossedGradient.resize(size));
      cross.backward(crossedGradient, denseGradient.resize(size), pooledGradient.resize(size));
      lookup.setGradient(0, pooledGradient);
      lookup.sendGradients(Update.APPLY);
      bottom.backward(denseGradient, null);
      ddp.end();
      lookup.backward(Update.APPLY);
      ddp.await();
      bottom.step();
      top.step();
      metrics.update(predicted, labels);
    }
  }

  static long[] idsOf(int count) {
    long[] ids = new long[count];
    for (int i = 0; i < count; ++i) ids[i] = i * 7L % ROWS;
    return ids;
  }

  static Training training(Comm comm, int kind, int tables, int batch) {
    return switch (kind) {
      case 0 -> new Tables(comm, tables, batch);
      case 1 -> new Whole(comm, tables, batch);
      default -> new Hash(tables * batch);
    };
  }

  static long openInC(int kind, int tables, int batch) {
    long training = open(kind, tables, batch);
    if (training == 0) throw new IllegalStateException("no training in C");
    return training;
  }

  static void stepsInC(long training, long count) {
    if (steps(training, count) != 0) throw new IllegalStateException("a step in C failed");
  }

  static double microseconds(long since, int steps) {
    return (System.nanoTime() - since) / 1000.0 / steps;
  }

  /** Prints the times of a step in C and in Java, block by block. */
  static void round(Training java, long inC, int round, int steps, double[][] times) {
    for (int block = 0; block < times.length; ++block) {
      for (int turn = 0; turn < 2; ++turn) {
        int whose = (block + turn) % 2; // the first one of a pair is the other one each time
        long begin = System.nanoTime();
        if (whose == 0) stepsInC(inC, steps);
        else java.steps(steps);
        times[block][whose] = microseconds(begin, steps);
      }
    }
    for (double[] pair : times) System.out.println(round + " " + pair[0] + " " + pair[1]);
  }

  /** Bytes of the Java heap for a step. */
  static double allocated(Training java, int steps) {
    var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    long first = threads.getCurrentThreadAllocatedBytes(), before = threads.getCurrentThreadAllocatedBytes();
    java.steps(steps);
    long after = threads.getCurrentThreadAllocatedBytes(), asking = before - first;
    return (after - before - asking) / (double) steps;
  }

  /** KIND TABLES BATCH STEPS BLOCKS ROUNDS, and for how many seconds the compilers are given something to do first. */
  public static void main(String[] arguments) throws Exception {
    System.loadLibrary("overhead_jni");
    int kind = java.util.List.of(KINDS).indexOf(arguments[0]);
    int tables = Integer.parseInt(arguments[1]), batch = Integer.parseInt(arguments[2]), steps = Integer.parseInt(arguments[3]);
    double[][] times = new double[Integer.parseInt(arguments[4])][2];
    int rounds = Integer.parseInt(arguments[5]);
    long warm = (long) (Double.parseDouble(arguments[6]) * 1e9);
    ShardRec.run(1, comm -> {
      for (int round = 0; round < rounds; ++round) {
        // Each round has memory of its own, for where it lies counts too; the first one to get it is the other one each time.
        long opened = round % 2 == 0 ? openInC(kind, tables, batch) : 0;
        try (Training java = training(comm, kind, tables, batch)) {
          long inC = opened != 0 ? opened : openInC(kind, tables, batch);
          for (long begin = System.nanoTime(); round == 0 && System.nanoTime() - begin < warm;) {
            java.steps(steps);
            stepsInC(inC, steps);
          }
          java.steps(steps);
          stepsInC(inC, steps);
          round(java, inC, round, steps, times);
          if (round == rounds - 1) System.out.println("allocated " + allocated(java, 10 * steps));
          close(inC);
        }
      }
    });
  }
}
