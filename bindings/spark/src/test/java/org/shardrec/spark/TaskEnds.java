package org.shardrec.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;

/** What the driver hears of tasks: which have begun, and when they have ended. */
final class TaskEnds extends SparkListener {
  /** milliseconds: since the epoch. */
  record End(int partition, long milliseconds, String reason) {}

  private final List<End> ends = new ArrayList<>();
  private final Map<Integer, Long> attempts = new HashMap<>();

  static TaskEnds of(SparkContext context) {
    TaskEnds ends = new TaskEnds();
    context.addSparkListener(ends);
    return ends;
  }

  @Override
  public synchronized void onTaskStart(SparkListenerTaskStart start) {
    attempts.put(start.taskInfo().index(), start.taskInfo().taskId());
  }

  /** Spark's number of the task that has begun last on a partition. */
  synchronized long attemptOn(int partition) {
    return attempts.get(partition);
  }

  @Override
  public synchronized void onTaskEnd(SparkListenerTaskEnd end) {
    ends.add(new End(end.taskInfo().index(), end.taskInfo().finishTime(), end.reason().toString()));
    notifyAll();
  }

  synchronized void clear() {
    ends.clear();
  }

  /** The first `count` ends; fails after ten seconds. */
  synchronized List<End> await(int count) throws InterruptedException {
    long limit = System.nanoTime() + 10_000_000_000L;
    while (ends.size() < count) {
      if (System.nanoTime() > limit) throw new AssertionError(count + " tasks should have ended: " + ends);
      wait(100);
    }
    return List.copyOf(ends.subList(0, count));
  }
}
