package org.shardrec.spark;

import static org.apache.spark.sql.functions.expr;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskKilledException;
import org.apache.spark.api.java.function.FilterFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** Clicks with planted weights: every number is a hash of what it is for. */
final class Frames {
  static final int ROWS = 500, FEATURES = 3;

  private Frames() {}

  /** Samples [first, first + count): n, d0, d1, label, f0 (a bigint), f1 and f2 (arrays of one to three). */
  static Dataset<Row> clicks(SparkSession session, long first, long count, int partitions) {
    return session.range(first, first + count, 1, partitions).toDF("n")
        .withColumn("d0", expr("cast((pmod(xxhash64(n, 'd0'), 2001) - 1000) / 1000 as float)"))
        .withColumn("d1", expr("(pmod(xxhash64(n, 'd1'), 2001) - 1000) / 1000"))
        .withColumn("f0", expr("pmod(xxhash64(n, 'f0'), 500)"))
        .withColumn("f1", expr("transform(sequence(0, cast(n % 3 as int)), k -> pmod(xxhash64(n, 'f1', k), 500))"))
        .withColumn("f2", expr("transform(sequence(0, cast(n % 2 as int)), k -> pmod(xxhash64(n, 'f2', k), 500))"))
        .withColumn("planted", expr("aggregate(concat(transform(array(f0), i -> named_struct('f', 0, 'i', i)),"
            + " transform(f1, i -> named_struct('f', 1, 'i', i)), transform(f2, i -> named_struct('f', 2, 'i', i))), 0D,"
            + " (sum, x) -> sum + (pmod(xxhash64(x.f, x.i, 'w'), 2001) - 1000) / 1000D)"))
        .withColumn("label", expr("pmod(xxhash64(n, 'label'), 10000) / 10000D < 1 / (1 + exp(-3 * (d0 - d1 + planted)))"))
        .drop("planted");
  }

  /** Where {@link #stalling} waits. */
  enum Stall {
    /** Until its task is killed. */
    UNTIL_KILLED,
    /** Though its task is killed. */
    FOR_FIVE_SECONDS
  }

  /** The same rows; the task that comes to row `at` writes the id of its process into a file, and waits. */
  static Dataset<Row> stalling(Dataset<Row> clicks, long at, Path file, Stall stall) {
    String name = file.toString(); // a Path is not serializable
    return clicks.filter((FilterFunction<Row>) row -> {
      if (row.getLong(0) == at) stall(Path.of(name), stall);
      return true;
    });
  }

  static void stall(Path file, Stall stall) {
    try {
      Path whole = Path.of(file + ".part");
      Files.writeString(whole, String.valueOf(ProcessHandle.current().pid()));
      Files.move(whole, file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    long end = System.nanoTime() + 5_000_000_000L;
    while (stall == Stall.FOR_FIVE_SECONDS ? System.nanoTime() < end : !TaskContext.get().isInterrupted()) {
      try {
        Thread.sleep(10);
      } catch (InterruptedException e) {
        if (stall == Stall.UNTIL_KILLED) break;
      }
    }
    throw new TaskKilledException("killed while it read a row");
  }
}
