package org.shardrec;

import org.jspecify.annotations.Nullable;

/**
 * A batch of ids, for {@link Lookup#begin} and {@link Scorer}: lengths or offsets; batch sizes and inverse both or none. What
 * is not set is left out, and a batch without values says that this rank has no more data. All tensors are compact and of one
 * dimension, of INT32 or INT64 but for the weights; bags are feature-major, features in the order of the model. It may be used
 * again, so that steps allocate nothing. Not for two threads at once while one of them changes it.
 */
public final class Batch {
  long size;
  @Nullable Tensor values, lengths, offsets, weights, batchSizes, inverse;

  /** This rank has no more data. */
  public Batch() {}

  /**
   * As {@link #set}.
   *
   * @param size samples of this rank
   * @param values the ids, bag after bag
   * @param lengths of the bags
   */
  public Batch(long size, Tensor values, Tensor lengths) {
    set(size, values, lengths);
  }

  /**
   * Another batch of bags by their lengths; weights, batch sizes and inverse stay.
   *
   * @param size samples of this rank: rows of output 0
   * @param values the ids, [ids], bag after bag
   * @param lengths of the bags, [bags]: features * size, or the sum of the batch sizes
   * @return this
   */
  public Batch set(long size, Tensor values, Tensor lengths) {
    this.size = size;
    this.values = values;
    this.lengths = lengths;
    offsets = null;
    return this;
  }

  /**
   * Where bags begin and end, in place of their lengths.
   *
   * @param offsets [bags + 1], from 0, never falling, the last one the number of ids
   * @return this
   */
  public Batch offsets(Tensor offsets) {
    this.offsets = offsets;
    lengths = null;
    return this;
  }

  /**
   * A weight for each id.
   *
   * @param weights [ids], FLOAT32; null: all 1
   * @return this
   */
  public Batch weights(@Nullable Tensor weights) {
    this.weights = weights;
    return this;
  }

  /**
   * Batch sizes of the features: a bag that many samples have is given once.
   *
   * @param batchSizes [features], the number of bags of each
   * @param inverse [features * size], the bag of each sample
   * @return this
   */
  public Batch batchSizes(@Nullable Tensor batchSizes, @Nullable Tensor inverse) {
    this.batchSizes = batchSizes;
    this.inverse = inverse;
    return this;
  }
}
