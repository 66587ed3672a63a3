package org.shardrec.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.Row;
import org.jspecify.annotations.Nullable;

/**
 * The batches of a partition, epoch after epoch. With one epoch rows are read when a batch needs them, and none is kept; with
 * more all batches stay in memory, in arrays. Columns of a row: dense floats, label, ids of each feature ({@link FrameColumns}).
 */
final class RowBatches {
  private final scala.collection.Iterator<Row> rows;
  private final int dense;
  private final List<String> features;
  private final int batchSize;
  private final @Nullable List<HeapBatch> kept; // null: there is one epoch
  private @Nullable Iterator<HeapBatch> again; // null: still in the first epoch

  RowBatches(scala.collection.Iterator<Row> rows, Settings settings) {
    this.rows = rows;
    dense = settings.dense.size();
    features = settings.features();
    batchSize = settings.batchSize;
    kept = settings.epochs > 1 ? new ArrayList<>() : null;
  }

  /** From the first row again. */
  void restart() {
    again = kept.iterator();
  }

  /** The next batch of this epoch; null: there is none. */
  @Nullable HeapBatch next() {
    if (again != null) return again.hasNext() ? again.next() : null;
    HeapBatch batch = read();
    if (batch != null && kept != null) kept.add(batch);
    return batch;
  }

  private @Nullable HeapBatch read() {
    if (!rows.hasNext()) return null;
    float[] numbers = new float[batchSize * dense], labels = new float[batchSize];
    Bags[] bags = new Bags[features.size()];
    Arrays.setAll(bags, feature -> new Bags(batchSize));
    int size = 0;
    for (; size < batchSize && rows.hasNext(); ++size) {
      Row row = rows.next();
      for (int c = 0; c < dense; ++c) numbers[size * dense + c] = number(row, c);
      labels[size] = number(row, dense);
      for (int f = 0; f < bags.length; ++f) bags[f].add(row, dense + 1 + f, features.get(f));
    }
    int ids = 0;
    for (Bags feature : bags) ids += feature.count;
    long[] values = new long[ids];
    int[] lengths = new int[features.size() * size];
    ids = 0;
    for (int f = 0; f < bags.length; ++f) {
      System.arraycopy(bags[f].ids, 0, values, ids, bags[f].count);
      System.arraycopy(bags[f].lengths, 0, lengths, f * size, size);
      ids += bags[f].count;
    }
    return new HeapBatch(size, Arrays.copyOf(numbers, size * dense), Arrays.copyOf(labels, size), values, lengths);
  }

  private static float number(Row row, int column) {
    if (row.isNullAt(column)) {
      throw new IllegalArgumentException("column " + row.schema().fieldNames()[column]
          + " is null in a row; dense columns and the label have a number in every row: fill it before, as by na().fill");
    }
    return row.getFloat(column);
  }

  /** The bags of one feature in a batch. */
  private static final class Bags {
    final int[] lengths;
    long[] ids;
    int count, bags;

    Bags(int batchSize) {
      lengths = new int[batchSize];
      ids = new long[batchSize];
    }

    /** An id, an array of ids, or null for none. */
    void add(Row row, int column, String feature) {
      int before = count;
      Object value = row.get(column);
      if (value instanceof Long id) {
        add(id);
      } else if (value != null) {
        scala.collection.Iterator<?> all = ((scala.collection.Seq<?>) value).iterator();
        while (all.hasNext()) {
          if (!(all.next() instanceof Long id)) {
            throw new IllegalArgumentException("an array of column " + feature + " holds a null; an array of ids holds ids only");
          }
          add(id);
        }
      }
      lengths[bags++] = count - before;
    }

    private void add(long id) {
      if (count == ids.length) ids = Arrays.copyOf(ids, 2 * count);
      ids[count++] = id;
    }
  }
}
