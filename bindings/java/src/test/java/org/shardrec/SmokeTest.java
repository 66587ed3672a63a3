package org.shardrec;

import static org.shardrec.Checks.*;

import java.nio.FloatBuffer;
import java.nio.IntBuffer;

/** Two ranks train two steps around refused batches; weights, the error's parts, and closing out of order. */
public final class SmokeTest {
  static final int ROWS = 10, DIM = 4, RANKS = 2, BATCH = 2;
  static final double RATE = 0.5;
  static final String TABLE = "usér 😀";
  static final long[][] VALUES = {{1, 7, 1}, {7, 3, 3}}, LENGTHS = {{2, 1}, {1, 2}};

  public static void main(String[] arguments) throws Exception {
    ShardRec.run(RANKS, SmokeTest::rank);
    ShardRec.run(3, SmokeTest::collectives);
    check(ShardRec.liveObjects() == 0, "live objects at the end: " + ShardRec.liveObjects());
    check(ShardRec.hash64(7, "id".getBytes()) == 0x6550b7d1d89c43aL, "the hash is not XXH3-64");
    System.out.println("java: ok");
  }

  static void rank(Comm comm) {
    int rank = comm.rank();
    comm.set(CommProperty.STEP_SECONDS, 60);
    OptimizerOptions sgd = new OptimizerOptions().learningRate(RATE);
    TableOptions zeros = new TableOptions().init(Init.ZEROS);
    PlanOptions rowWise = new PlanOptions().sharding(Sharding.ROW_WISE);
    Model model = new Model();
    model.setOptimizer(ShardRec.ALL_TABLES, sgd);
    model.addFeature(model.addTable(TABLE, ROWS, DIM, zeros), "id", Pooling.SUM);
    Plan plan = Plan.collective(comm, null, model, rowWise);
    EmbeddingCollection tables = new EmbeddingCollection(comm, null, model, plan,
        new CollectionOptions().nonFinite(NonFinite.ERROR));
    Lookup lookup = new Lookup(tables, null);

    step(lookup, rank);
    refused(lookup, rank);
    notFinite(lookup, rank);
    check(tables.stat(Stat.TABLE_NON_FINITE, 0) == rank, "batches with a NaN are not counted");
    step(lookup, rank);

    FloatBuffer weights = Tensor.floats(ROWS * DIM);
    tables.readRange(0, TablePart.WEIGHTS, 0, ROWS, Tensor.matrix(weights, ROWS, DIM));
    float[] expected = expected();
    for (int i = 0; i < ROWS * DIM; ++i) {
      check(weights.get(i) == expected[i], "weight " + i + " is " + weights.get(i) + ", not " + expected[i]);
    }
    check(tables.step() == 2, "applied steps: " + tables.step());
    check(expected[7 * DIM] != 0, "the reference trains nothing");

    // Both ranks write row 9; the higher one's entry stays. Rank 0 reads rows 9 and 1.
    FloatBuffer got = Tensor.floats(2 * DIM);
    tables.writeRows(0, TablePart.WEIGHTS, Tensor.vector(Tensor.ints(9)),
        Tensor.matrix(Tensor.floats(DIM).put(0, rank + 1), 1, DIM));
    if (rank == 0) {
      tables.readRows(0, TablePart.WEIGHTS, Tensor.vector(Tensor.longs(9, 1)), Tensor.matrix(got, 2, DIM));
      check(got.get(0) == 2 && got.get(DIM) == weights.get(DIM), "rows 9 and 1 are not as written");
    } else {
      tables.readRows(0, TablePart.WEIGHTS, null, null);
    }

    comm.shutdown();
    for (Handle handle : new Handle[] {comm, plan, tables, model, lookup, lookup}) handle.close();
    try {
      lookup.backward(Update.APPLY);
      throw new AssertionError("a closed lookup was accepted");
    } catch (ShardRecException e) {
      check(e.status() == Status.INVALID_HANDLE || e.status() == Status.CLOSED, e.getMessage());
    }
  }

  /** Three ranks exchange tensors; two of them in a part of their own. */
  static void collectives(Comm comm) {
    int rank = comm.rank();
    IntBuffer name = Tensor.ints(rank + 5), all = Tensor.ints(0, 0, 0);
    comm.allGather(Tensor.vector(name), Tensor.vector(all));
    comm.broadcast(Tensor.vector(name), 2);
    check(all.get(0) == 5 && all.get(1) == 6 && all.get(2) == 7 && name.get(0) == 7, "gathered or told something else");
    FloatBuffer sum = Tensor.floats(3).put(0, 1).put(1, 2).put(2, rank), part = Tensor.floats(1);
    comm.reduceScatter(Tensor.vector(sum), Tensor.vector(part), Reduction.SUM);
    check(part.get(0) == (rank == 1 ? 6 : 3), "part of the sum: " + part.get(0));
    // Rank r sends r rows to each; all are its number.
    FloatBuffer rows = Tensor.floats(3 * rank), got = Tensor.floats(3);
    for (int i = 0; i < 3 * rank; ++i) rows.put(i, rank);
    comm.allToAll(Tensor.vector(rows), Tensor.vector(Tensor.longs(rank, rank, rank)), Tensor.vector(got),
        Tensor.vector(Tensor.longs(0, 1, 2)));
    comm.allToAll(Tensor.vector(all), null, Tensor.vector(all), null);
    check(got.get(0) == 1 && got.get(1) == 2 && got.get(2) == 2 && all.get(2) == rank + 5, "received something else");
    Comm pair = comm.split(rank == 2 ? -1 : 0, -rank);
    check((pair == null) == (rank == 2), "the third rank has no part");
    if (pair != null) {
      check(pair.size() == 2 && pair.rank() == 1 - rank, "this rank is not where its key says");
      pair.barrier();
      pair.shutdown();
      pair.close();
    }
    comm.shutdown();
  }

  static void step(Lookup lookup, int rank) {
    FloatBuffer out = Tensor.floats(BATCH * DIM);
    Tensor view = Tensor.matrix(out, BATCH, DIM);
    lookup.begin(new Batch(BATCH, Tensor.vector(Tensor.longs(VALUES[rank])), Tensor.vector(Tensor.longs(LENGTHS[rank]))));
    lookup.forward(0, view);
    for (int i = 0; i < BATCH * DIM; ++i) out.put(i, out.get(i) + rank + 1 + i % DIM);
    lookup.setGradient(0, view);
    lookup.sendGradients(Update.APPLY);
    lookup.backwardBegin(Update.APPLY);
    lookup.backwardWait();
  }

  static void refused(Lookup lookup, int rank) {
    long[] values = VALUES[rank].clone();
    if (rank == 1) values[2] = ROWS;
    lookup.begin(new Batch(BATCH, Tensor.vector(Tensor.longs(values)), Tensor.vector(Tensor.longs(LENGTHS[rank]))));
    try {
      lookup.forward(0, Tensor.matrix(Tensor.floats(BATCH * DIM), BATCH, DIM));
      throw new AssertionError("an id out of range was accepted");
    } catch (ShardRecException e) {
      check(e.status() == Status.INVALID_BATCH && e.rank().orElse(-1) == 1 && e.position().orElse(-1) == 2
          && TABLE.equals(e.table()) && "id".equals(e.feature()) && e.operation() != null, e.getMessage());
    }
  }

  /** Option NON_FINITE: both ranks hear where rank 1 has a NaN, and no row has changed. */
  static void notFinite(Lookup lookup, int rank) {
    FloatBuffer gradient = Tensor.floats(BATCH * DIM);
    lookup.begin(new Batch(BATCH, Tensor.vector(Tensor.longs(VALUES[rank])), Tensor.vector(Tensor.longs(LENGTHS[rank]))));
    lookup.forward(0, Tensor.matrix(gradient, BATCH, DIM));
    if (rank == 1) gradient.put(DIM + 2, Float.NaN);
    lookup.setGradient(0, Tensor.matrix(gradient, BATCH, DIM));
    try {
      lookup.backward(Update.APPLY);
      throw new AssertionError("a NaN was accepted");
    } catch (ShardRecException e) {
      check(e.status() == Status.INVALID_BATCH && e.rank().orElse(-1) == 1 && e.position().orElse(-1) == 1
          && TABLE.equals(e.table()) && "id".equals(e.feature()), e.getMessage());
    }
  }

  /** Two steps of SGD on the whole table, in a plain loop. */
  static float[] expected() {
    float[] weights = new float[ROWS * DIM];
    for (int step = 0; step < 2; ++step) {
      float[] gradient = new float[ROWS * DIM];
      for (int rank = 0; rank < RANKS; ++rank)
        for (int bag = 0, at = 0; bag < BATCH; at += (int) LENGTHS[rank][bag++])
          for (int d = 0; d < DIM; ++d) {
            float out = rank + 1 + d;
            for (int i = 0; i < LENGTHS[rank][bag]; ++i) out += weights[(int) VALUES[rank][at + i] * DIM + d];
            for (int i = 0; i < LENGTHS[rank][bag]; ++i) gradient[(int) VALUES[rank][at + i] * DIM + d] += out / RANKS;
          }
      for (int i = 0; i < ROWS * DIM; ++i) weights[i] -= (float) RATE * gradient[i];
    }
    return weights;
  }
}
