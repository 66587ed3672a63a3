package org.shardrec.spark;

import java.util.List;
import java.util.UUID;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.shardrec.CheckpointOptions;
import org.shardrec.CollectionOptions;
import org.shardrec.CommOptions;
import org.shardrec.DdpOptions;
import org.shardrec.MlpOptions;
import org.shardrec.OptimizerOptions;
import org.shardrec.PlanOptions;
import org.shardrec.Pooling;
import org.shardrec.RendezvousOptions;
import org.shardrec.TableOptions;

/**
 * Trains a DLRM on the rows of a frame: a rank for each partition, all at once (a barrier stage), tables sharded over the
 * ranks, dense layers data-parallel, and one checkpoint at the end.
 *
 * <pre>
 *   scores = sigmoid(top(interaction(bottom(dense), pooled)))
 * </pre>
 *
 * Setters return this object. It may be used for any number of trainings, one thread at a time.
 */
public final class DlrmTrainer {
  private final Settings settings;

  /**
   * A trainer without columns.
   *
   * @param directory of the checkpoints of one run, which all executors see as the same files
   */
  public DlrmTrainer(String directory) {
    settings = new Settings(directory);
  }

  /**
   * The column of labels.
   *
   * @param column of numbers or booleans, 0 or 1 in every row; default "label"
   * @return this
   */
  public DlrmTrainer label(String column) {
    settings.label = column;
    return this;
  }

  /**
   * The columns of dense numbers, in the order of the bottom layers' input; replaces those given before.
   *
   * @param columns of numbers, null in no row; at least one
   * @return this
   */
  public DlrmTrainer dense(String... columns) {
    settings.dense.clear();
    settings.dense.addAll(List.of(columns));
    return this;
  }

  /**
   * Adds a table, and the columns of ids that are looked up in it, each a feature of the model with its own name.
   *
   * @param name of the table, unique
   * @param rows of it; ids are in [0, rows), or what the table's option outOfRange makes of others
   * @param columns of bigint or array&lt;bigint&gt; or smaller integers; null is a bag without ids; none: one column, named as
   *     the table
   * @return this
   */
  public DlrmTrainer table(String name, long rows, String... columns) {
    settings.tables.add(new Settings.Table(name, rows, columns.length == 0 ? List.of(name) : List.of(columns)));
    return this;
  }

  /**
   * Options of a table.
   *
   * @param name of the table
   * @param setter of them
   * @return this
   */
  public DlrmTrainer tableOptions(String name, OptionSetter<TableOptions> setter) {
    settings.tableOptions.put(name, setter);
    return this;
  }

  /**
   * How the rows of a bag become one vector.
   *
   * @param column of a feature
   * @param pooling SUM, the default, or MEAN
   * @return this
   */
  public DlrmTrainer pooling(String column, Pooling pooling) {
    if (pooling == Pooling.NONE) throw new IllegalArgumentException("a DLRM has no sequences: pooling is SUM or MEAN");
    settings.pooling.put(column, pooling);
    return this;
  }

  /**
   * Columns of every table, and of the bottom layers' output.
   *
   * @param dim 1 or more; default 16
   * @return this
   */
  public DlrmTrainer dim(int dim) {
    settings.dim = positive("dim", dim);
    return this;
  }

  /**
   * The hidden layers below the interaction, each with ReLU; a last one, linear, has dim columns.
   *
   * @param columns of each; none by default
   * @return this
   */
  public DlrmTrainer bottomLayers(int... columns) {
    settings.bottom = columns.clone();
    return this;
  }

  /**
   * The hidden layers above the interaction, each with ReLU; a last one, linear, has one column: the logit.
   *
   * @param columns of each; none by default
   * @return this
   */
  public DlrmTrainer topLayers(int... columns) {
    settings.top = columns.clone();
    return this;
  }

  /**
   * The optimizer of all tables.
   *
   * @param setter of its options; default SGD
   * @return this
   */
  public DlrmTrainer tableOptimizer(OptionSetter<OptimizerOptions> setter) {
    settings.tableOptimizer = setter;
    return this;
  }

  /**
   * Optimizer and threads of both stacks of layers.
   *
   * @param setter of their options; default SGD
   * @return this
   */
  public DlrmTrainer layerOptions(OptionSetter<MlpOptions> setter) {
    settings.layerOptions = setter;
    return this;
  }

  /**
   * What is different for the bottom layers.
   *
   * @param setter is called after that of layerOptions
   * @return this
   */
  public DlrmTrainer bottomOptions(OptionSetter<MlpOptions> setter) {
    settings.bottomOptions = setter;
    return this;
  }

  /**
   * What is different for the top layers.
   *
   * @param setter is called after that of layerOptions
   * @return this
   */
  public DlrmTrainer topOptions(OptionSetter<MlpOptions> setter) {
    settings.topOptions = setter;
    return this;
  }

  /**
   * How tables are cut and placed.
   *
   * @param setter of the options of the plan
   * @return this
   */
  public DlrmTrainer planOptions(OptionSetter<PlanOptions> setter) {
    settings.planOptions = setter;
    return this;
  }

  /**
   * Both stacks of layers are where the tables are: on the GPU that Spark gives to a task, and on the CPU where it gives
   * none. Without it layers are on the CPU. On a GPU they need NVIDIA's cuBLASLt and the plug-in for it.
   *
   * @return this
   */
  public DlrmTrainer layersOnGpu() {
    settings.layersOnGpu = true;
    return this;
  }

  /**
   * Options of the collection of tables, such as threads and compression.
   *
   * @param setter of them
   * @return this
   */
  public DlrmTrainer collectionOptions(OptionSetter<CollectionOptions> setter) {
    settings.collectionOptions = setter;
    return this;
  }

  /**
   * Options of the exchange of the layers' gradients.
   *
   * @param setter of them
   * @return this
   */
  public DlrmTrainer ddpOptions(OptionSetter<DdpOptions> setter) {
    settings.ddpOptions = setter;
    return this;
  }

  /**
   * Options of the checkpoint, such as keepLast.
   *
   * @param setter of them
   * @return this
   */
  public DlrmTrainer checkpointOptions(OptionSetter<CheckpointOptions> setter) {
    settings.checkpointOptions = setter;
    return this;
  }

  /**
   * Seeds of what is random.
   *
   * @param seed of the tables; seed + 1 of the bottom layers, seed + 2 of the top ones; default 0
   * @return this
   */
  public DlrmTrainer seed(long seed) {
    settings.seed = seed;
    return this;
  }

  /**
   * How often the rows are passed over. With more than one epoch ranks keep their rows in memory.
   *
   * @param epochs 1 or more; default 1
   * @return this
   */
  public DlrmTrainer epochs(int epochs) {
    settings.epochs = positive("epochs", epochs);
    return this;
  }

  /**
   * Rows that each rank takes in a step; its last batch may have fewer.
   *
   * @param rows 1 or more; default 1024
   * @return this
   */
  public DlrmTrainer batchSize(int rows) {
    settings.batchSize = positive("batchSize", rows);
    return this;
  }

  /**
   * The number of ranks. A frame with another number of partitions is repartitioned.
   *
   * @param ranks 1 or more; by default as many as the frame has partitions
   * @return this
   */
  public DlrmTrainer ranks(int ranks) {
    settings.ranks = positive("ranks", ranks);
    return this;
  }

  /**
   * Goes on from the newest checkpoint of the directory, whatever number of ranks wrote it.
   *
   * @return this
   */
  public DlrmTrainer resume() {
    return resume(Settings.NEWEST);
  }

  /**
   * Goes on from a checkpoint of the directory.
   *
   * @param step of the checkpoint; -1: the newest
   * @return this
   */
  public DlrmTrainer resume(long step) {
    if (step < Settings.NEWEST) throw new IllegalArgumentException("no checkpoint has step " + step);
    settings.resumeStep = step;
    return this;
  }

  /**
   * Allows ranks on several machines: rank 0 listens at its executor's host, and what ranks send each other travels as clear
   * text; ranks prove to each other that they know a secret of this training. For a network that you trust. By default
   * ranks meet at the loopback address, and a stage on several machines is refused.
   *
   * @return this
   */
  public DlrmTrainer acrossMachines() {
    settings.acrossMachines = true;
    return this;
  }

  /**
   * Where rank 0 listens, in place of what acrossMachines says.
   *
   * @param setter of the options of the rendezvous
   * @return this
   */
  public DlrmTrainer rendezvousOptions(OptionSetter<RendezvousOptions> setter) {
    settings.rendezvousOptions = setter;
    return this;
  }

  /**
   * Options of the ranks' communicators, such as the network interface.
   *
   * @param setter of them
   * @return this
   */
  public DlrmTrainer commOptions(OptionSetter<CommOptions> setter) {
    settings.commOptions = setter;
    return this;
  }

  /**
   * How long a rank waits for the others in a step. Ranks that are lost, and tasks that are killed, end the others' waiting at
   * once; this is for those that hang.
   *
   * @param seconds more than 0; default 600
   * @return this
   */
  public DlrmTrainer stepSeconds(double seconds) {
    settings.stepSeconds = positive("stepSeconds", seconds);
    return this;
  }

  /**
   * How long a rank waits for the others where tables are made, loaded and saved.
   *
   * @param seconds more than 0; default 1800
   * @return this
   */
  public DlrmTrainer setupSeconds(double seconds) {
    settings.setupSeconds = positive("setupSeconds", seconds);
    return this;
  }

  /**
   * How long tasks that have begun wait for the connections to each other. A task that is killed meanwhile ends at once; what
   * the library has opened for it is closed after this time at most.
   *
   * @param seconds more than 0; default 60
   * @return this
   */
  public DlrmTrainer joinSeconds(double seconds) {
    settings.joinSeconds = positive("joinSeconds", seconds);
    return this;
  }

  /**
   * How long the driver waits for executors with room for all ranks before it fails; in local mode it does not wait.
   *
   * @param seconds 0 or more; default 60
   * @return this
   */
  public DlrmTrainer slotSeconds(double seconds) {
    if (!(seconds >= 0)) throw new IllegalArgumentException("slotSeconds is " + seconds + "; it is 0 or more");
    settings.slotSeconds = seconds;
    return this;
  }

  private static int positive(String what, int value) {
    if (value < 1) throw new IllegalArgumentException(what + " is " + value + "; it is 1 or more");
    return value;
  }

  private static double positive(String what, double value) {
    if (!(value > 0)) throw new IllegalArgumentException(what + " is " + value + "; it is more than 0");
    return value;
  }

  /**
   * Trains, and commits a checkpoint. Rows are taken in the order of their partition. The gradient of a step is the mean over
   * the ranks of each one's mean over its rows; a rank without rows left counts as zeros. Blocking; interrupting the
   * caller, or cancelling the job, ends all tasks.
   *
   * @param frame the columns that this trainer has been told of, and any others
   * @return metrics of each epoch
   */
  public TrainingResult fit(Dataset<Row> frame) {
    settings.check();
    settings.secret = UUID.randomUUID().toString();
    Dataset<Row> columns = FrameColumns.select(frame, settings);
    RDD<Row> rows = columns.rdd();
    if (settings.ranks > 0 && rows.getNumPartitions() != settings.ranks) rows = columns.repartition(settings.ranks).rdd();
    double[] result = BarrierJob.run(rows, new RankTask(settings), settings.slotSeconds);
    return TrainingResult.unpack(settings.directory, result);
  }
}
