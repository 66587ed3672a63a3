package org.shardrec.spark;

import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.shardrec.Batch;
import org.shardrec.Metric;
import org.shardrec.Metrics;
import org.shardrec.Optimizer;
import org.shardrec.Scorer;
import org.shardrec.Tensor;

/** What the tests of both masters do. */
final class Jobs {
  static final long SAMPLES = 12_800; // 50 steps of two ranks
  private static final int TEST = 4096;

  private Jobs() {}

  static SparkSession session(String master, String serializer, String classPath) {
    return builder(master, serializer, classPath).getOrCreate();
  }

  static SparkSession.Builder builder(String master, String serializer, String classPath) {
    return SparkSession.builder().master(master).appName("shardrec").config("spark.ui.enabled", false)
        .config("spark.sql.shuffle.partitions", 2).config("spark.executor.extraClassPath", classPath)
        .config("spark.serializer", "org.apache.spark.serializer." + serializer)
        .config("spark.executorEnv.SPARK_SCALA_VERSION", "2.13");
  }

  static DlrmTrainer trainer(Path directory) {
    return new DlrmTrainer(directory.toString()).dense("d0", "d1").table("t0", Frames.ROWS, "f0").table("t1", Frames.ROWS, "f1")
        .table("t2", Frames.ROWS, "f2").dim(8).bottomLayers(16).topLayers(16).seed(7).batchSize(128)
        .tableOptimizer(o -> o.optimizer(Optimizer.ROWWISE_ADAGRAD).learningRate(0.1))
        .layerOptions(o -> o.optimizer(Optimizer.ADAGRAD).learningRate(0.02));
  }

  /** The area under the ROC curve of samples that the training has not seen, by a scorer of the checkpoint. */
  static double testAuc(SparkSession session, Path directory) {
    List<Row> rows = FrameColumns.select(Frames.clicks(session, 1_000_000, TEST, 1), settings()).collectAsList();
    FloatBuffer dense = Tensor.floats(TEST * 2), labels = Tensor.floats(TEST), scores = Tensor.floats(TEST);
    long[][] bags = new long[Frames.FEATURES * TEST][];
    int ids = 0;
    for (int n = 0; n < TEST; ++n) {
      Row row = rows.get(n);
      dense.put(2 * n, row.getFloat(0)).put(2 * n + 1, row.getFloat(1));
      labels.put(n, row.getFloat(2));
      bags[n] = new long[] {row.getLong(3)};
      for (int f = 1; f < Frames.FEATURES; ++f) {
        bags[f * TEST + n] = row.<Long>getList(3 + f).stream().mapToLong(id -> id).toArray();
      }
    }
    LongBuffer lengths = Tensor.longs(new long[bags.length]);
    for (int i = 0; i < bags.length; ++i) {
      lengths.put(i, bags[i].length);
      ids += bags[i].length;
    }
    LongBuffer values = Tensor.longs(new long[ids]);
    for (long[] bag : bags) values.put(bag);
    try (Scorer scorer = Scorer.open(directory.toString(), -1, null, null); Metrics metrics = new Metrics(null, null)) {
      scorer.predict(new Batch(TEST, Tensor.vector(values.flip()), Tensor.vector(lengths)), Tensor.matrix(dense, TEST, 2), Tensor.vector(scores));
      metrics.update(Tensor.vector(scores), Tensor.vector(labels));
      metrics.compute();
      return metrics.get(Metric.AUC);
    }
  }

  private static Settings settings() {
    Settings settings = new Settings("");
    settings.dense.addAll(List.of("d0", "d1"));
    for (int f = 0; f < Frames.FEATURES; ++f) settings.tables.add(new Settings.Table("t" + f, Frames.ROWS, List.of("f" + f)));
    return settings;
  }

  /** Trains one epoch into the directory, which both masters do alike. */
  static void train(SparkSession session, Path directory) {
    train(session, trainer(directory), directory);
  }

  static void train(SparkSession session, DlrmTrainer trainer, Path directory) {
    long begin = System.nanoTime();
    TrainingResult result = trainer.fit(Frames.clicks(session, 0, SAMPLES, 2));
    System.out.printf("%s in %.1f s%n", result, (System.nanoTime() - begin) / 1e9);
    Checks.check(result.step() == 50 && result.ranks() == 2 && result.lastEpoch().samples() == SAMPLES, "50 steps of 2 ranks");
    double auc = testAuc(session, directory);
    System.out.printf("test AUC %.4f%n", auc);
    Checks.check(auc > 0.90 && auc < 0.92, "test AUC in (0.90, 0.92)");
  }

  /** Cancels the job while rank 0 is in a native call, waiting for rank 1, which reads a row that does not come. */
  static void cancel(SparkSession session, Path directory, boolean interrupt, Frames.Stall stall) throws Exception {
    Path reached = directory.resolveSibling(directory.getFileName() + ".pid");
    TaskEnds ends = TaskEnds.of(session.sparkContext());
    CompletableFuture<String> job = CompletableFuture.supplyAsync(() -> {
      session.sparkContext().setJobGroup("cancel", "to be cancelled", interrupt);
      try {
        trainer(directory).fit(Frames.stalling(Frames.clicks(session, 0, SAMPLES, 2), SAMPLES - 128, reached, stall));
        return "it has trained";
      } catch (Exception failure) {
        return failure.toString();
      }
    });
    awaitFile(reached);
    Thread.sleep(500); // rank 0 comes to its wait
    ends.clear();
    long begin = System.currentTimeMillis();
    session.sparkContext().cancelJobGroup("cancel");
    int expected = stall == Frames.Stall.FOR_FIVE_SECONDS ? 1 : 2;
    for (TaskEnds.End end : ends.await(expected)) {
      System.out.println(end + " after " + (end.milliseconds() - begin) + " ms");
      Checks.check(end.milliseconds() - begin < 2000 && end.reason().contains("Killed"),
          "a cancelled task ends within 2 s, as killed");
      if (expected == 1) Checks.check(end.partition() == 0, "the rank in the native call does not wait for the other one");
    }
    Checks.check(job.get().contains("cancelled"), "the job says that it was cancelled");
    Checks.check(!Files.exists(directory.resolve("LATEST")), "no checkpoint of a cancelled job");
    session.sparkContext().removeSparkListener(ends);
  }

  static void awaitFile(Path file) throws InterruptedException {
    for (int i = 0; !Files.exists(file); ++i) {
      if (i == 1200) throw new AssertionError("no task has come to its row: " + file);
      Thread.sleep(50);
    }
  }
}
