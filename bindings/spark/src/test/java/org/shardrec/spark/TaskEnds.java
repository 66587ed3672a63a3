package org.shardrec.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/** The ends of tasks, as the driver hears of them. */
final class TaskEnds extends SparkListener {
  /** milliseconds: since the epoch. */
  record End(int partition, long milliseconds, String reason) {}

  private final List<End> ends = new ArrayList<>();

  static TaskEnds of(SparkContext context) {
    TaskEnds ends = new TaskEnds();
    context.addSparkListener(ends);
    return ends;
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
