package org.shardrec.spark;

/** Rows of a batch as arrays of the heap, which wait there for their step, and for that of the next epoch. */
final class HeapBatch {
  final int size;
  final float[] dense; // [size, dense columns]
  final float[] labels; // [size]
  final long[] ids; // feature after feature, bag after bag
  final int[] lengths; // [features, size]

  HeapBatch(int size, float[] dense, float[] labels, long[] ids, int[] lengths) {
    this.size = size;
    this.dense = dense;
    this.labels = labels;
    this.ids = ids;
    this.lengths = lengths;
  }
}
