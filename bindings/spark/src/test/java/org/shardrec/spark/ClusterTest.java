package org.shardrec.spark;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import org.apache.spark.sql.SparkSession;

/** Ranks as processes: ClusterTest FOLDER CLASS_PATH_OF_EXECUTORS. */
final class ClusterTest {
  private ClusterTest() {}

  public static void main(String[] arguments) {
    Checks.exit(() -> run(Path.of(arguments[0]), arguments[1]));
  }

  private static void run(Path folder, String classPath) throws Exception {
    try (SparkSession session = Jobs.session("local-cluster[2,1,1024]", "JavaSerializer", classPath)) {
      Jobs.train(session, folder.resolve("cluster"));
      Jobs.cancel(session, folder.resolve("cluster-cancelled"), false, Frames.Stall.UNTIL_KILLED);
      killed(session, folder);
    }
  }

  /**
   * kill -9 of an executor: both tasks end at once, and so does the job, for Spark tries no barrier stage again that returns
   * a result. The next training waits for the executor that the worker starts in its place.
   */
  private static void killed(SparkSession session, Path folder) throws Exception {
    Path reached = folder.resolve("killed.pid"), directory = folder.resolve("killed");
    TaskEnds ends = TaskEnds.of(session.sparkContext());
    CompletableFuture<Void> job = CompletableFuture.runAsync(() -> Jobs.trainer(directory).fit(
        Frames.stalling(Frames.clicks(session, 0, Jobs.SAMPLES, 2), Jobs.SAMPLES - 128, reached, Frames.Stall.UNTIL_KILLED)));
    Jobs.awaitFile(reached);
    Thread.sleep(500); // rank 0 comes to its wait
    ends.clear();
    long begin = System.currentTimeMillis();
    ProcessHandle.of(Long.parseLong(Files.readString(reached))).orElseThrow().destroyForcibly();
    for (TaskEnds.End end : ends.await(2)) {
      System.out.println(end.toString().lines().findFirst().orElse("") + " after " + (end.milliseconds() - begin) + " ms");
      Checks.check(end.milliseconds() - begin < 5000, "a task ends within 5 s of another one's executor");
    }
    Checks.fails("Could not recover from a failed barrier ResultStage", job::get);
    session.sparkContext().removeSparkListener(ends);
    TrainingResult again = Jobs.trainer(directory).fit(Frames.clicks(session, 0, 2560, 2));
    Checks.check(again.step() == 10, "the next training has an executor in the place of the one that was killed");
  }
}
