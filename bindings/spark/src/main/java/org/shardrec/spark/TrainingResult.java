package org.shardrec.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * What a training has come to.
 *
 * @param directory of the checkpoint
 * @param step of the checkpoint: steps of this training and of those that it has gone on from
 * @param ranks that have trained
 * @param epochs each pass over the rows
 */
public record TrainingResult(String directory, long step, int ranks, List<Epoch> epochs) {
  /**
   * One pass over the rows of all ranks. Predictions are those of the step that trains on the row, before it has: of the
   * first epoch they tell how rows are predicted that the model has not seen.
   *
   * @param number counts from 1
   * @param steps of this epoch: as many as the rank with the most batches has
   * @param samples of all ranks
   * @param loss mean binary cross-entropy, nats; NaN without samples
   * @param auc area under the ROC curve, exact; NaN where all labels are equal
   * @param normalizedEntropy the loss divided by that of the mean label; NaN where all labels are equal
   * @param samplesPerSecond of all ranks together
   */
  public record Epoch(int number, long steps, long samples, double loss, double auc, double normalizedEntropy,
      double samplesPerSecond) {}

  private static final int NUMBERS = 7; // of an epoch

  /** The columns of {@link #toDataFrame}. */
  private static final StructType SCHEMA = new StructType()
      .add("epoch", DataTypes.IntegerType, false)
      .add("steps", DataTypes.LongType, false)
      .add("samples", DataTypes.LongType, false)
      .add("loss", DataTypes.DoubleType, false)
      .add("auc", DataTypes.DoubleType, false)
      .add("normalized_entropy", DataTypes.DoubleType, false)
      .add("samples_per_second", DataTypes.DoubleType, false);

  /**
   * The last pass over the rows.
   *
   * @return its numbers
   */
  public Epoch lastEpoch() {
    return epochs.get(epochs.size() - 1);
  }

  /**
   * The epochs as a frame: epoch, steps, samples, loss, auc, normalized_entropy, samples_per_second.
   *
   * @param session that makes it
   * @return a row for each epoch
   */
  public Dataset<Row> toDataFrame(SparkSession session) {
    List<Row> rows = new ArrayList<>();
    for (Epoch e : epochs) {
      rows.add(RowFactory.create(e.number, e.steps, e.samples, e.loss, e.auc, e.normalizedEntropy, e.samplesPerSecond));
    }
    return session.createDataFrame(rows, SCHEMA);
  }

  /** How rank 0 sends it to the driver: plain numbers, which every serializer of Spark takes. */
  static double[] pack(long step, int ranks, List<Epoch> epochs) {
    double[] packed = new double[2 + epochs.size() * NUMBERS];
    packed[0] = step;
    packed[1] = ranks;
    int i = 2;
    for (Epoch e : epochs) {
      for (double number : new double[] {e.number, e.steps, e.samples, e.loss, e.auc, e.normalizedEntropy, e.samplesPerSecond}) {
        packed[i++] = number;
      }
    }
    return packed;
  }

  static TrainingResult unpack(String directory, double[] packed) {
    List<Epoch> epochs = new ArrayList<>();
    for (int i = 2; i < packed.length; i += NUMBERS) {
      epochs.add(new Epoch((int) packed[i], (long) packed[i + 1], (long) packed[i + 2], packed[i + 3], packed[i + 4],
          packed[i + 5], packed[i + 6]));
    }
    return new TrainingResult(directory, (long) packed[0], (int) packed[1], List.copyOf(epochs));
  }
}
