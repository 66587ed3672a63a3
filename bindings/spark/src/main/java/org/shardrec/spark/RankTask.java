package org.shardrec.spark;

import java.io.Serializable;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.TaskKilledException;
import org.apache.spark.resource.ResourceInformation;
import org.apache.spark.sql.Row;
import org.shardrec.ShardRecException;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/** What a task of the barrier stage does: it is a rank. Rank 0 returns the result, packed; the others nothing. */
final class RankTask extends AbstractFunction1<Iterator<Row>, Iterator<double[]>> implements Serializable {
  private static final long serialVersionUID = 1;

  private final Settings settings;

  RankTask(Settings settings) {
    this.settings = settings;
  }

  @Override
  public Iterator<double[]> apply(Iterator<Row> rows) {
    BarrierTaskContext context = BarrierTaskContext.get();
    try (RankGroup group = new RankGroup(context, settings)) {
      double[] result = train(rows, group, context);
      return context.partitionId() == 0 ? Iterator.single(result) : Iterator.<double[]>empty();
    } catch (InterruptedException e) {
      throw killed("interrupted while the ranks were meeting", e);
    }
  }

  private double[] train(Iterator<Row> rows, RankGroup group, BarrierTaskContext context) {
    DlrmRank rank = null;
    try {
      rank = new DlrmRank(group.comm(), settings, deviceOf(context));
      double[] result = rank.train(new RowBatches(rows, settings), group.control());
      group.shutdown();
      return result;
    } catch (ShardRecException failure) {
      if (group.wasKilled()) throw killed(failure.getMessage(), failure);
      group.fail(failure);
      throw failure;
    } catch (RuntimeException | Error failure) {
      group.fail(failure);
      throw failure;
    } finally {
      if (rank != null) rank.close(); // the others have heard the reason before they miss this rank
    }
  }

  /** The number of the GPU that Spark has given to the task; that of the CPU where it has given none. */
  private static long deviceOf(BarrierTaskContext context) {
    ResourceInformation gpus = context.resourcesJMap().get("gpu");
    if (gpus == null || gpus.addresses().length == 0) return DlrmRank.CPU;
    String address = gpus.addresses()[0];
    try {
      return Integer.parseInt(address);
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException("the task's resource gpu has the address " + address + "; CUDA's number of the device is accepted", e);
    }
  }

  /** Spark counts it as killed, not as failed. */
  private static TaskKilledException killed(String how, Exception cause) {
    TaskKilledException killed = new TaskKilledException("the task was killed: " + how);
    killed.initCause(cause);
    return killed;
  }
}
