package org.shardrec.spark;

import static org.shardrec.spark.Settings.with;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.shardrec.Activation;
import org.shardrec.Batch;
import org.shardrec.Checkpoint;
import org.shardrec.CheckpointOptions;
import org.shardrec.CollectionOptions;
import org.shardrec.Comm;
import org.shardrec.Control;
import org.shardrec.Ddp;
import org.shardrec.DdpOptions;
import org.shardrec.EmbeddingCollection;
import org.shardrec.Interaction;
import org.shardrec.Lookup;
import org.shardrec.Metric;
import org.shardrec.Metrics;
import org.shardrec.Mlp;
import org.shardrec.MlpOptions;
import org.shardrec.Model;
import org.shardrec.OptimizerOptions;
import org.shardrec.Plan;
import org.shardrec.PlanOptions;
import org.shardrec.Pooling;
import org.shardrec.ShardRec;
import org.shardrec.ShardRecException;
import org.shardrec.TableOptions;
import org.shardrec.Update;

/**
 * One rank's part of a DLRM: its boxes of the tables, and the dense layers that every rank has. All ranks make the same
 * calls: one without rows takes part in the others' steps with zeros, until no rank has any.
 */
final class DlrmRank implements AutoCloseable {
  static final long CPU = -1;

  private final Settings settings;
  private final Comm comm;
  private final Deque<AutoCloseable> handles = new ArrayDeque<>(); // the last one made first
  private final EmbeddingCollection tables;
  private final Lookup lookup;
  private final Interaction interaction;
  private final Mlp bottom, top;
  private final Ddp ddp;
  private final Metrics metrics;
  private final BatchTensors tensors;
  private final Batch given = new Batch();

  /** device: of the tables, and of the layers where they go with them; by its number, or {@link #CPU}. */
  DlrmRank(Comm comm, Settings settings, long device) {
    this.comm = comm;
    this.settings = settings;
    int features = settings.features().size(), inputs = settings.dense.size();
    boolean made = false;
    try {
      Model model = closing(makeModel(settings));
      Plan plan = closing(Plan.collective(comm, null, model, with(new PlanOptions(), settings.planOptions)));
      tables = closing(new EmbeddingCollection(comm, null, model, plan,
          with(new CollectionOptions().seed(settings.seed).device(device), settings.collectionOptions)));
      lookup = closing(new Lookup(tables, null));
      interaction = closing(new Interaction(features, settings.dim, null));
      bottom = makeLayers(inputs, settings.bottom, settings.dim, 1, device, settings.bottomOptions);
      top = makeLayers(interaction.outputs(), settings.top, 1, 2, device, settings.topOptions);
      ddp = closing(new Ddp(comm, with(new DdpOptions(), settings.ddpOptions)));
      ddp.addMlp("bottom", bottom);
      ddp.addMlp("top", top);
      ddp.commit();
      metrics = closing(new Metrics(comm, null));
      tensors = new BatchTensors(settings.batchSize, inputs, features, settings.dim, Math.toIntExact(interaction.outputs()));
      made = true;
    } finally {
      if (!made) close();
    }
  }

  private <T extends AutoCloseable> T closing(T handle) {
    handles.push(handle);
    return handle;
  }

  private static Model makeModel(Settings settings) {
    Model model = new Model();
    for (Settings.Table table : settings.tables) {
      int index = model.addTable(table.name, table.rows, settings.dim,
          with(new TableOptions(), settings.tableOptions.getOrDefault(table.name, options -> {})));
      for (String column : table.columns) {
        model.addFeature(index, column, settings.pooling.getOrDefault(column, Pooling.SUM));
      }
    }
    model.setOptimizer(ShardRec.ALL_TABLES, with(new OptimizerOptions(), settings.tableOptimizer));
    return model;
  }

  /** number: which of the stacks it is, from 1. */
  private Mlp makeLayers(long inputs, int[] hidden, int outputs, int number, long device, OptionSetter<MlpOptions> setter) {
    MlpOptions options = new MlpOptions().seed(settings.seed + number);
    if (settings.layersOnGpu) options.device(device);
    Mlp layers = closing(new Mlp(inputs, with(with(options, settings.layerOptions), setter)));
    for (int columns : hidden) layers.addLinear(columns, Activation.RELU);
    layers.addLinear(outputs, Activation.NONE);
    return layers;
  }

  /** Trains on all batches, and commits one checkpoint; what {@link TrainingResult#pack} says. */
  double[] train(RowBatches batches, Control control) {
    Checkpoint checkpoint = closing(new Checkpoint(comm, settings.directory,
        with(new CheckpointOptions(), settings.checkpointOptions)));
    checkpoint.addCollection("tables", tables);
    checkpoint.addMlp("bottom", bottom);
    checkpoint.addMlp("top", top);
    long step = open(checkpoint, control);
    List<TrainingResult.Epoch> epochs = new ArrayList<>();
    for (int epoch = 1; epoch <= settings.epochs; ++epoch) {
      if (epoch > 1) batches.restart();
      metrics.reset();
      long steps = 0;
      while (trains(batches.next())) ++steps;
      step += steps;
      epochs.add(measured(epoch, steps));
    }
    checkpoint.commit(step, control);
    return TrainingResult.pack(step, comm.size(), epochs);
  }

  /** The step from which the training goes on. */
  private long open(Checkpoint checkpoint, Control control) {
    if (settings.resumeStep == Settings.NO_RESUME) {
      try {
        checkpoint.open(Settings.NEWEST);
      } catch (ShardRecException.NotFound none) {
        return 0;
      }
      throw new IllegalStateException("the directory " + settings.directory + " holds checkpoints, of step " + checkpoint.info().step()
          + " for one: call resume() to go on from the newest, or train into another directory");
    }
    checkpoint.open(settings.resumeStep);
    checkpoint.load(control);
    return checkpoint.info().step();
  }

  /** One step of all ranks; false: no rank had a row. Layers take a batch without rows as any other. */
  private boolean trains(@Nullable HeapBatch batch) {
    BatchTensors t = tensors;
    t.fill(batch);
    if (batch == null) {
      lookup.begin(new Batch());
    } else {
      lookup.begin(given.set(batch.size, t.ids, t.lengths));
    }
    bottom.forward(t.input, t.dense);
    lookup.forward(0, t.pooled);
    if (lookup.allDone()) return false;
    interaction.forward(t.dense, t.pooled, t.crossed);
    top.forward(t.crossed, t.logits);
    if (batch != null) {
      ShardRec.bceWithLogits(null, t.logits, t.labels, t.probabilities, t.logitGradient);
      metrics.update(t.probabilities, t.labels);
    }
    ddp.begin(true);
    top.backward(t.logitGradient, t.crossedGradient);
    interaction.backward(t.crossedGradient, t.denseGradient, t.pooledGradient);
    lookup.setGradient(0, t.pooledGradient);
    lookup.sendGradients(Update.APPLY); // travel while the bottom layers compute
    bottom.backward(t.denseGradient, null);
    ddp.end();
    lookup.backward(Update.APPLY);
    ddp.await();
    bottom.step();
    top.step();
    return true;
  }

  private TrainingResult.Epoch measured(int epoch, long steps) {
    metrics.compute();
    return new TrainingResult.Epoch(epoch, steps, (long) metrics.get(Metric.SAMPLES), orNaN(Metric.LOSS),
        orNaN(Metric.AUC), orNaN(Metric.NE), metrics.get(Metric.SAMPLES_PER_SECOND));
  }

  /** Without samples there is no loss, and where all labels are equal no AUC. */
  private double orNaN(Metric metric) {
    try {
      return metrics.get(metric);
    } catch (ShardRecException.NotFound none) {
      return Double.NaN;
    }
  }

  @Override
  public void close() {
    for (AutoCloseable handle : handles) {
      try {
        handle.close();
      } catch (Exception none) {
        throw new AssertionError("close of a handle throws nothing", none);
      }
    }
  }
}
