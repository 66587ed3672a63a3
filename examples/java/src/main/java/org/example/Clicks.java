package org.example;

import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import org.shardrec.ShardRec;
import org.shardrec.Tensor;

/** Clicks that anybody can make again: every number is a hash of what it is for. What Dlrm trains on. */
final class Clicks {
  static final int FEATURES = 6, DENSE = 4, ROWS = 1000;
  private static final int VALUES = 300; // that a feature takes
  private static final int LONGEST = 3; // ids of a bag

  /** Samples that follow each other. */
  static final class Batch {
    final int size;
    final FloatBuffer dense; // [size, DENSE]
    final FloatBuffer labels; // [size]
    final LongBuffer ids; // feature after feature, bag after bag
    final LongBuffer lengths; // [FEATURES, size]

    Batch(int size) {
      this.size = size;
      dense = Tensor.floats(size * DENSE);
      labels = Tensor.floats(size);
      ids = longs(size * FEATURES * LONGEST);
      lengths = longs(size * FEATURES);
    }
  }

  private Clicks() {}

  /** In [-1, 1), by 2^24 steps. */
  private static float real(long hash) {
    return (float) (hash - (1 << 23)) / (1 << 23);
  }

  private static LongBuffer longs(int count) {
    return Tensor.longs(new long[count]);
  }

  private static void hash(long seed, LongBuffer keys, long rows, LongBuffer out) {
    ShardRec.hash64Ids(seed, Tensor.vector(keys), rows, Tensor.vector(out));
  }

  /** Samples [first, first + size). */
  static Batch batch(long first, int size) {
    Batch batch = new Batch(size);
    LongBuffer numbers = longs(size * 8); // eight for each sample
    for (int i = 0; i < size * 8; ++i) numbers.put(i, first * 8 + i);
    hash(1, numbers, 1 << 24, numbers);

    LongBuffer raw = longs(size * FEATURES * LONGEST); // what a log would have: a city, a device, ...
    for (int f = 0; f < FEATURES; ++f) {
      for (long n = first; n < first + size; ++n) {
        batch.lengths.put(1 + n % LONGEST);
        for (long k = 0; k < 1 + n % LONGEST; ++k) raw.put((n * FEATURES + f) * LONGEST + k);
      }
    }
    batch.lengths.flip();
    raw.flip();
    batch.ids.limit(raw.limit());
    hash(2, raw, VALUES, raw);
    hash(3, raw, ROWS, batch.ids); // the row of each

    double[] score = new double[size];
    for (int n = 0; n < size; ++n) {
      for (int c = 0; c < DENSE; ++c) batch.dense.put(n * DENSE + c, real(numbers.get(n * 8 + c)));
      score[n] = batch.dense.get(n * DENSE) - batch.dense.get(n * DENSE + 1);
    }
    LongBuffer planted = longs(raw.limit());
    int i = 0;
    for (int f = 0; f < FEATURES; ++f) {
      hash(4 + f, raw, 1 << 24, planted);
      for (int n = 0; n < size; ++n) {
        for (int k = 0; k < batch.lengths.get(f * size + n); ++k) score[n] += real(planted.get(i++));
      }
    }
    for (int n = 0; n < size; ++n) {
      double z = 3 * score[n] / (1 + Math.abs(3 * score[n])); // in (-1, 1)
      batch.labels.put(n, real(numbers.get(n * 8 + DENSE)) < z ? 1 : 0);
    }
    return batch;
  }
}
