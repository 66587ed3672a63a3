package org.shardrec.spark;

import java.util.UUID;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/** Runs a function on all partitions at once, as a barrier stage. JavaRDD has no barrier(); RDD has, for Scala. */
final class BarrierJob {
  private static final int POLL_MILLISECONDS = 200;

  private BarrierJob() {}

  /** What rank 0 returns. Interrupting the caller cancels the job. */
  static double[] run(RDD<Row> rows, RankTask task, double slotSeconds) {
    SparkContext context = rows.sparkContext();
    ClassTag<double[]> tag = ClassTag$.MODULE$.apply(double[].class);
    String job = "shardrec-" + UUID.randomUUID();
    context.addJobTag(job);
    try {
      waitForSlots(context, rows.getNumPartitions(), slotSeconds);
      return ((double[][]) rows.barrier().mapPartitions(task, false, tag).collect())[0];
    } catch (InterruptedException e) { // of collect() too, though Scala declares none
      context.cancelJobsWithTag(job);
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted: the training has been cancelled", e);
    } finally {
      context.removeJobTag(job);
    }
  }

  /**
   * Spark itself would ask 40 times, each 15 seconds. Executors of a cluster may still be starting. The number of slots is of
   * Spark's own classes, not of its API: no other number counts cores by spark.task.cpus.
   */
  private static void waitForSlots(SparkContext context, int ranks, double seconds) throws InterruptedException {
    if (ranks == 0) throw new IllegalArgumentException("the frame has no partition, so there is no rank to train");
    long end = System.nanoTime() + (long) (context.isLocal() ? 0 : seconds * 1e9);
    while (true) {
      int slots = context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile());
      if (slots >= ranks) return;
      if (System.nanoTime() >= end) {
        throw new IllegalStateException("training needs " + ranks + " tasks at the same time, a rank for each partition; the"
            + " application has room for " + slots + ": call ranks(" + Math.max(1, slots) + "), or give it more executors or"
            + " cores (spark.task.cpus of them are one task)");
      }
      Thread.sleep(POLL_MILLISECONDS);
    }
  }
}
