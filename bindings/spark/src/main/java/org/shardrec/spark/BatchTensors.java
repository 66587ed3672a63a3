package org.shardrec.spark;

import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import org.jspecify.annotations.Nullable;
import org.shardrec.Dtype;
import org.shardrec.Tensor;

/** Memory outside of the heap for one batch at a time: its rows, what they become in the network, and the gradients. Made once
 * for the largest batch; ids have as much as the batch with the most of them so far. */
final class BatchTensors {
  private final FloatBuffer denseBuffer, labelBuffer;
  private final IntBuffer lengthBuffer;
  private LongBuffer idBuffer = Tensor.longs(0);

  final Tensor input, labels, lengths;
  Tensor ids = Tensor.vector(idBuffer);
  final Tensor dense, pooled, crossed, logits, probabilities;
  final Tensor denseGradient, pooledGradient, crossedGradient, logitGradient;
  private final Tensor[] byRow;
  private final int features;

  BatchTensors(int batchSize, int inputs, int features, int dim, int crossedColumns) {
    this.features = features;
    denseBuffer = Tensor.floats(Math.multiplyExact(batchSize, inputs));
    labelBuffer = Tensor.floats(batchSize);
    lengthBuffer = Tensor.ints(new int[Math.multiplyExact(batchSize, features)]);
    input = Tensor.matrix(denseBuffer, batchSize, inputs);
    labels = Tensor.matrix(labelBuffer, batchSize, 1);
    lengths = Tensor.vector(lengthBuffer);
    dense = matrix(batchSize, dim);
    pooled = matrix(batchSize, features * dim);
    crossed = matrix(batchSize, crossedColumns);
    logits = matrix(batchSize, 1);
    probabilities = matrix(batchSize, 1);
    denseGradient = matrix(batchSize, dim);
    pooledGradient = matrix(batchSize, features * dim);
    crossedGradient = matrix(batchSize, crossedColumns);
    logitGradient = matrix(batchSize, 1);
    byRow = new Tensor[] {input, labels, dense, pooled, crossed, logits, probabilities, denseGradient, pooledGradient,
        crossedGradient, logitGradient};
  }

  private static Tensor matrix(int rows, int columns) {
    return Tensor.matrix(Tensor.floats(Math.multiplyExact(rows, columns)), rows, columns);
  }

  /** Takes a batch; null: one without rows. */
  void fill(@Nullable HeapBatch batch) {
    int size = batch == null ? 0 : batch.size;
    for (Tensor tensor : byRow) tensor.resize(size);
    lengths.resize((long) size * features);
    if (batch == null) return;
    denseBuffer.put(0, batch.dense);
    labelBuffer.put(0, batch.labels);
    lengthBuffer.put(0, batch.lengths);
    if (batch.ids.length > idBuffer.capacity()) {
      int room = (int) Math.min(Integer.MAX_VALUE / Long.BYTES, batch.ids.length + batch.ids.length / 2L);
      idBuffer = Tensor.allocate(Dtype.INT64, Math.max(room, batch.ids.length)).asLongBuffer();
      ids = Tensor.vector(idBuffer);
    }
    idBuffer.put(0, batch.ids);
    ids.resize(batch.ids.length);
  }
}
