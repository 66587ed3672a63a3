package org.shardrec.spark;

import static org.apache.spark.sql.functions.expr;
import static org.apache.spark.sql.functions.lit;

import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.shardrec.OutOfRange;
import org.shardrec.Pooling;
import org.shardrec.ShardRec;

/** Ranks as threads of one JVM: LocalTest FOLDER. */
final class LocalTest {
  private LocalTest() {}

  public static void main(String[] arguments) {
    Checks.exit(() -> run(Path.of(arguments[0])));
  }

  private static void run(Path folder) throws Exception {
    try (SparkSession session = Jobs.session("local[2]", "KryoSerializer", "")) {
      Jobs.train(session, folder.resolve("local"));
      resumed(session, folder);
      uneven(session, folder);
      refused(session, folder);
      Jobs.cancel(session, folder.resolve("cancelled"), false, Frames.Stall.UNTIL_KILLED);
      Jobs.cancel(session, folder.resolve("interrupted"), true, Frames.Stall.UNTIL_KILLED);
      Jobs.cancel(session, folder.resolve("deaf"), false, Frames.Stall.FOR_FIVE_SECONDS);
      interruptedCaller(session, folder);
      killedTask(session, folder);
      killedWhileMeeting(session, folder);
    }
    Checks.check(ShardRec.liveObjects() == 0, "no native object is left");
  }

  /** The same run as one of two epochs: one epoch, and one more from its checkpoint, also on one rank less. */
  private static void resumed(SparkSession session, Path folder) {
    Dataset<Row> clicks = Frames.clicks(session, 0, Jobs.SAMPLES, 2);
    TrainingResult twice = Jobs.trainer(folder.resolve("twice")).epochs(2).fit(clicks);
    Jobs.trainer(folder.resolve("resumed")).fit(clicks);
    TrainingResult again = Jobs.trainer(folder.resolve("resumed")).resume().fit(clicks);
    Checks.check(again.step() == 100 && twice.step() == 100, "steps count on");
    TrainingResult.Epoch first = twice.epochs().get(0), second = twice.epochs().get(1), resumed = again.lastEpoch();
    Checks.check(second.loss() == resumed.loss() && second.auc() == resumed.auc() && second.loss() < first.loss(),
        "an epoch from a checkpoint has the loss and AUC of one that is gone on to, below the first one's");
    Checks.check(twice.toDataFrame(session).filter("epoch = 2 and steps = 50 and loss < 0.6").count() == 1,
        "metrics as a frame");
    TrainingResult alone = Jobs.trainer(folder.resolve("resumed")).resume(50).ranks(1)
        .fit(Frames.clicks(session, 0, 1280, 2));
    Checks.check(alone.ranks() == 1 && alone.step() == 60, "a checkpoint of two ranks is gone on from by one");
  }

  /** Partitions of 300 rows and of none, one id or an array, nulls, means, an array that is shared. */
  private static void uneven(SparkSession session, Path folder) {
    Dataset<Row> rows = Frames.clicks(session, 0, 600, 2).filter("n < 300")
        .withColumn("f0", expr("if(n % 5 = 0, null, f0)")).withColumn("f1", expr("if(n % 7 = 0, null, f1)"));
    DlrmTrainer trainer = new DlrmTrainer(folder.resolve("uneven").toString()).dense("d1").table("shared", 400, "f0", "f1")
        .table("f2", 400).tableOptions("shared", o -> o.outOfRange(OutOfRange.DROP))
        .tableOptions("f2", o -> o.outOfRange(OutOfRange.CLAMP)).pooling("f1", Pooling.MEAN).batchSize(64).epochs(2)
        .acrossMachines(); // at the address of the driver, here one of this machine
    TrainingResult result = trainer.fit(rows);
    Checks.check(result.step() == 10 && result.ranks() == 2 && result.epochs().get(0).samples() == 300,
        "a rank without rows takes part: 300 rows in 5 batches, twice");
    TrainingResult empty = trainer.resume().fit(rows.filter("n < 0"));
    Checks.check(empty.step() == 10 && empty.lastEpoch().steps() == 0 && Double.isNaN(empty.lastEpoch().auc()),
        "no rank has rows: no step, no AUC");
  }

  private static void refused(SparkSession session, Path folder) throws Exception {
    Dataset<Row> clicks = Frames.clicks(session, 0, 512, 2);
    Checks.fails("training needs 3 tasks at the same time", () -> Jobs.trainer(folder.resolve("none")).ranks(3).fit(clicks));
    Checks.fails("the application has room for 2: call ranks(2)", () -> Jobs.trainer(folder.resolve("none")).ranks(3).fit(clicks));
    Checks.fails("the frame has no column click", () -> Jobs.trainer(folder.resolve("none")).label("click").fit(clicks));
    Checks.fails("column f1 is of type array<bigint>; dense columns and the label are numbers",
        () -> Jobs.trainer(folder.resolve("none")).dense("f1").fit(clicks));
    Checks.fails("column d1 is of type", () -> Jobs.trainer(folder.resolve("none")).table("t3", 5, "d1").fit(clicks));
    Checks.fails("column d0 is null in a row",
        () -> Jobs.trainer(folder.resolve("none")).fit(clicks.withColumn("d0", expr("if(n = 300, null, d0)"))));
    Checks.fails("an array of column f2 holds a null",
        () -> Jobs.trainer(folder.resolve("none")).fit(clicks.withColumn("f2", expr("array(1L, null)"))));
    Checks.fails("f0", () -> Jobs.trainer(folder.resolve("none")).fit(clicks.withColumn("f0", lit(500L)))); // out of range
    Checks.fails("holds checkpoints, of step 50", () -> Jobs.trainer(folder.resolve("local")).fit(clicks));
    Checks.fails("dense(...)", () -> new DlrmTrainer("x").table("f0", 5).fit(clicks));
    Checks.fails("a feature has one", () -> new DlrmTrainer("x").dense("d0").table("a", 5, "f0").table("f0", 5).fit(clicks));
    Checks.fails("options of table t9", () -> Jobs.trainer(folder).tableOptions("t9", o -> o.initMin(0)).fit(clicks));
    Checks.fails("pooling of f9", () -> Jobs.trainer(folder).pooling("f9", Pooling.MEAN).fit(clicks));
    Checks.fails("SUM or MEAN", () -> Jobs.trainer(folder).pooling("f1", Pooling.NONE));
    Checks.fails("is a URI", () -> new DlrmTrainer("hdfs://host/run"));
    Checks.fails("STEP_SECONDS", () -> Jobs.trainer(folder.resolve("none")).stepSeconds(1e10).fit(clicks));
    Checks.fails("several machines, a, ::1", () -> {
      RankGroup.checkOneMachine(new String[] {RankGroup.hostOf("a:1"), RankGroup.hostOf("a:2"), RankGroup.hostOf("[::1]:3")});
      return null;
    });
    RankGroup.checkOneMachine(new String[] {"a", "a"});
    for (String wrong : List.of("batchSize", "epochs", "ranks", "dim")) {
      Checks.fails(wrong + " is 0; it is 1 or more", () -> switch (wrong) {
        case "batchSize" -> Jobs.trainer(folder).batchSize(0);
        case "epochs" -> Jobs.trainer(folder).epochs(0);
        case "ranks" -> Jobs.trainer(folder).ranks(0);
        default -> Jobs.trainer(folder).dim(0);
      });
    }
  }

  /** Interrupting the thread that called fit cancels the job. */
  private static void interruptedCaller(SparkSession session, Path folder) throws Exception {
    Path reached = folder.resolve("caller.pid");
    TaskEnds ends = TaskEnds.of(session.sparkContext());
    String[] said = {"nothing"};
    Thread caller = new Thread(() -> {
      try {
        Jobs.trainer(folder.resolve("caller")).fit(
            Frames.stalling(Frames.clicks(session, 0, Jobs.SAMPLES, 2), 0, reached, Frames.Stall.UNTIL_KILLED));
      } catch (IllegalStateException e) {
        said[0] = e.getMessage() + Thread.currentThread().isInterrupted();
      }
    });
    caller.start();
    Jobs.awaitFile(reached);
    long begin = System.currentTimeMillis();
    caller.interrupt();
    caller.join();
    for (TaskEnds.End end : ends.await(2)) {
      Checks.check(end.milliseconds() - begin < 2000, "a task of an interrupted caller ends within 2 s");
    }
    Checks.check(said[0].equals("interrupted: the training has been cancelledtrue"), "the caller stays interrupted");
    session.sparkContext().removeSparkListener(ends);
  }

  /** One task is killed, that of the rank in a native call. */
  private static void killedTask(SparkSession session, Path folder) throws Exception {
    Path reached = folder.resolve("task.pid");
    TaskEnds ends = TaskEnds.of(session.sparkContext());
    CompletableFuture<Void> job = CompletableFuture.runAsync(() -> Jobs.trainer(folder.resolve("task")).fit(
        Frames.stalling(Frames.clicks(session, 0, Jobs.SAMPLES, 2), Jobs.SAMPLES - 128, reached, Frames.Stall.UNTIL_KILLED)));
    Jobs.awaitFile(reached);
    Thread.sleep(500); // rank 0 comes to its wait
    long begin = System.currentTimeMillis();
    session.sparkContext().killTaskAttempt(ends.attemptOn(0), false, "by the test");
    for (TaskEnds.End end : ends.await(2)) {
      Checks.check(end.milliseconds() - begin < 2000, "a killed task, and the other rank's, end within 2 s");
    }
    Checks.fails("Could not recover from a failed barrier", job::get);
    session.sparkContext().removeSparkListener(ends);
  }

  /** Rank 0 waits for a rank that does not join, though its task is alive. */
  private static void killedWhileMeeting(SparkSession session, Path folder) throws Exception {
    Path reached = folder.resolve("meeting.pid");
    String file = reached.toString();
    TaskEnds ends = TaskEnds.of(session.sparkContext());
    CompletableFuture<Void> job = CompletableFuture.runAsync(() -> {
      session.sparkContext().setJobGroup("meeting", "to be cancelled", false);
      Jobs.trainer(folder.resolve("meeting")).joinSeconds(5).commOptions(o -> {
        if (TaskContext.getPartitionId() == 1) Frames.stall(Path.of(file), Frames.Stall.UNTIL_KILLED);
      }).fit(Frames.clicks(session, 0, 512, 2));
    });
    Jobs.awaitFile(reached);
    Thread.sleep(500); // rank 0 comes to its wait
    long begin = System.currentTimeMillis();
    session.sparkContext().cancelJobGroup("meeting");
    for (TaskEnds.End end : ends.await(2)) {
      Checks.check(end.milliseconds() - begin < 2000, "a task that is killed while ranks meet ends within 2 s");
    }
    Checks.fails("cancelled", job::get);
    session.sparkContext().removeSparkListener(ends);
    for (int i = 0; ShardRec.liveObjects() > 0 && i < 200; ++i) Thread.sleep(50); // the thread that joins, after five seconds
  }
}
