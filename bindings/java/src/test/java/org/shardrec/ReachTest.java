package org.shardrec;

import static org.shardrec.Checks.*;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicReference;

/** Every method of every handle, for what it is there for; bindings/run counts the functions of C that were called. */
public final class ReachTest {
  static Path folder;

  public static void main(String[] arguments) throws Exception {
    inFolder(made -> {
      folder = made;
      theLibraryItself();
      plansByHand();
      ShardRec.run(2, ReachTest::lookups);
      abortsWithoutAReason();
      ShardRec.run(2, ReachTest::meshes);
      ShardRec.run(2, ReachTest::layers);
      layersOfAllKinds();
      ShardRec.run(2, ReachTest::ownParameters);
      ShardRec.run(2, ReachTest::shardedParameters);
      ShardRec.run(2, ReachTest::checkpoints);
      scorers();
      ShardRec.run(1, ReachTest::follows);
      ShardRec.run(2, ReachTest::metrics);
      processes();
    });
    check(ShardRec.liveObjects() == 0, "live objects at the end: " + ShardRec.liveObjects());
    System.out.println("java: ok");
  }

  static void theLibraryItself() {
    check(ShardRec.capabilitiesJson().contains("engines") && ShardRec.apiVersion() >= ApiVersion.VALUE, "capabilities");
    ShardRec.logSetLevel(LogLevel.WARNING);
    check(ShardRec.nextLogMessage(0) == null, "a message of nobody");
    try (Control control = new Control()) {
      check(control.progress().done() == 0, "progress before anything");
      control.cancel();
      fails(Status.CANCELLED, () -> ShardRec.probeJson("cpu", 1, false, control));
    }
    String probed;
    try {
      probed = ShardRec.probeJson(null, 0, true, null);
    } catch (ShardRecException.NotFound none) {
      probed = ShardRec.probeJson(null, 1, false, null);
    }
    check(probed.contains("{"), probed);
    ShardRec.Available local = ShardRec.available(Capability.ENGINE, "local"), none = ShardRec.available(Capability.DEVICE, "tpu");
    check(local.available() && local.reason().isEmpty() && !none.available() && none.reason().contains("tpu"), none.toString());
    ShardRec.traceStart(1000);
    check(ShardRec.traceJson().contains("traceEvents"), "a trace");
    ShardRec.traceStop();
    check(new PlanOptions().batchSize(7).integer(OptionKey.BATCH_SIZE) == 7
        && new PlanOptions().bagLength(2).real(OptionKey.BAG_LENGTH) == 2, "values of options");
    FloatBuffer gradient = Tensor.floats(2), probabilities = Tensor.floats(2);
    double loss = ShardRec.bceWithLogits(null, Tensor.vector(Tensor.floats(2)),
        Tensor.vector(floats(1, 0)), Tensor.vector(probabilities), Tensor.vector(gradient));
    check(Math.abs(loss - Math.log(2)) < 1e-6 && probabilities.get(0) == 0.5f && gradient.get(0) == -0.25f, "loss " + loss);
  }

  static void plansByHand() {
    try (Model model = model(); Topology topology = new Topology(2, 2)) {
      check(model.info().equals(new Model.Info(2, 2, 0, 6)), model.info().toString());
      Model.Table table = model.table(1);
      check(table.equals(new Model.Table(6, 2, Dtype.FLOAT32, Optimizer.ADAGRAD, 0.5, 1, 1, "b")), table.toString());
      Model.Feature feature = model.feature(1);
      check(feature.equals(new Model.Feature(1, Pooling.MEAN, 0, 4, 2, 6, "y")), feature.toString());
      try (Model same = Model.fromJson(model.toJson()); Topology other = Topology.fromJson(topology.toJson());
          Plan plan = new Plan(same, other, new PlanOptions().sharding(Sharding.ROW_WISE))) {
        plan.check();
        check(plan.toText().contains("a"), plan.toText());
        try (Plan again = Plan.fromJson(model, plan.toJson())) {
          check(again.boxCount(0) == plan.boxCount(0), "boxes of a plan that was read");
        }
      }
      try (Plan plan = Plan.createEmpty(model, topology)) {
        plan.addBox(0, 1, 0, 10, 0, 4);
        plan.replicate(1, Replication.SAMPLES);
        plan.replicate(1, Replication.ROWS);
        plan.check();
        check(plan.box(0, 0).equals(new Plan.Box(1, 0, 10, 0, 4, 160, 160)), plan.box(0, 0).toString());
      }
    }
  }

  static Model model() {
    Model model = new Model();
    OptimizerOptions adagrad = new OptimizerOptions().optimizer(Optimizer.ADAGRAD).learningRate(1);
    model.setOptimizer(ShardRec.ALL_TABLES, adagrad);
    int a = model.addTable("a", 10, 4, new TableOptions().init(Init.ZEROS)), b = model.addTable("b", 6, 2, null);
    model.setOptimizer(b, adagrad.learningRate(0.5));
    model.addFeature(a, "x", Pooling.SUM);
    model.addFeature(b, "y", Pooling.MEAN);
    return model;
  }

  static void lookups(Comm comm) {
    comm.check();
    check(comm.get(CommProperty.STEP_SECONDS) == 600, "a default");
    FloatBuffer sum = floats(1, comm.rank());
    comm.allReduce(Tensor.vector(sum), Reduction.SUM);
    check(sum.get(0) == 2 && sum.get(1) == 1, "a sum");
    try (Model model = model(); Plan plan = Plan.collective(comm, null, model, null);
        EmbeddingCollection tables = new EmbeddingCollection(comm, null, model, plan, null);
        Lookup lookup = new Lookup(tables, new LookupOptions().weightGradient(true))) {
      FloatBuffer out = Tensor.floats(12), gradient = Tensor.floats(3);
      Tensor view = Tensor.matrix(out, 2, 6);
      Tensor ids = Tensor.vector(Tensor.longs(1, 2, 3)), weights = Tensor.vector(floats(1, 1, 2));
      for (int i = 0; i < 12; ++i) out.put(i, 1);
      lookup.begin(new Batch().set(2, ids, ids).offsets(Tensor.vector(Tensor.longs(0, 1, 2, 2, 3))).weights(weights));
      check(lookup.outputShape(0).equals(new Lookup.OutputShape(2, 6)), "shape of the output");
      lookup.forward(0, view);
      check(!lookup.allDone(), "there is more");
      for (int i = 0; i < 12; ++i) out.put(i, 1);
      lookup.setGradient(0, view);
      lookup.backward(Update.ACCUMULATE);
      lookup.weightGradient(Tensor.vector(gradient));
      lookup.begin(new Batch(2, ids, Tensor.vector(Tensor.longs(1, 1, 1))).batchSizes(Tensor.vector(Tensor.longs(1, 2)), Tensor.vector(Tensor.longs(0, 0, 0, 1))));
      lookup.forward(0, view);
      lookup.setGradient(0, view);
      lookup.backward(Update.APPLY);
      check(tables.step() == 1, "one step of two lookups");
      lookup.begin(new Batch(2, ids, Tensor.vector(Tensor.longs(1, 1, 1, 0))));
      lookup.forward(0, view);
      lookup.backward(Update.SKIP);
      lookup.begin(new Batch());
      lookup.forward(0, view.resize(0));
      check(lookup.allDone(), "nobody has more");
      tables.setStep(7);
      tables.setLearningRate(ShardRec.ALL_TABLES, 0.1);
      tables.setLearningRate(1, 0.2);
      tables.setFrozen(0, true);
      check(tables.learningRate(1) == 0.2 && tables.frozen(0) && !tables.frozen(1), "what was set");
      tables.waitDevice();
      lookup.setStream(0);
      tables.writeRange(0, TablePart.WEIGHTS, 9, 1, Tensor.matrix(floats(1, 2, 3, 4), 1, 4));
      FloatBuffer row = Tensor.floats(4);
      tables.readRange(0, TablePart.WEIGHTS, 9, 1, Tensor.matrix(row, 1, 4));
      tables.readRange(0, TablePart.WEIGHTS, 0, 0, null);
      tables.writeRange(0, TablePart.WEIGHTS, 0, 0, null);
      check(row.get(3) == 4 && tables.step() == 7, "a row that was written");
      long mark = tables.mark();
      tables.writeRange(0, TablePart.WEIGHTS, 9, 1, Tensor.matrix(floats(1, 2, 3, 4), 1, 4));
      LongBuffer changed = Tensor.longs(0, 0);
      long count = tables.changedRows(mark, 0, 0, Tensor.vector(changed));
      check(count == tables.changedRows(mark, 0, 9, null) && changed.get(0) == 9 * count, "a row that has changed");
      tables.releaseMark(mark);
      check(tables.stat(Stat.STEPS, ShardRec.ALL_TABLES) >= 1 && tables.stat(Stat.TABLE_IDS, 0) >= 0
          && tables.stat(Stat.SECONDS_LOOKUP, ShardRec.ALL_TABLES) >= 0, "counters");
      check(comm.operationsJson().contains("["), "operations");
      try (Model own = tables.model(); Plan boxes = tables.plan()) {
        check(own.toJson().equals(model.toJson()) && boxes.toJson().equals(plan.toJson()), "model and plan of a collection");
      }
    }
    comm.shutdown();
  }

  static void abortsWithoutAReason() {
    try (Local group = new Local(1, 1); Comm comm = Comm.createLocal(group, 0)) {
      comm.abort(null);
      fails(Status.ABORTED, comm::barrier);
    }
  }

  static void meshes(Comm comm) {
    try (Mesh mesh = new Mesh(comm, 1, new MeshOptions().placement(Placement.SYNC)); Model model = model();
        Plan plan = Plan.collective(comm, mesh, model, null);
        EmbeddingCollection tables = new EmbeddingCollection(comm, mesh, model, plan, new CollectionOptions().syncEvery(16));
        EmbeddingCollection shared =
            new EmbeddingCollection(comm, mesh, model, plan, new CollectionOptions().replicaSync(ReplicaSync.SHARDED));
        Comm sharding = mesh.comm(MeshGroup.SHARDING); Comm replica = mesh.comm(MeshGroup.REPLICA)) {
      check(mesh.place().replicaSize() == 2 && sharding.size() == 1 && replica.size() == 2, mesh.place().toString());
      tables.syncReplicas();
      tables.syncBegin();
      tables.syncWait();
      tables.checkReplicas();
      shared.checkReplicas();
      tables.replicaFill(1);
      try (EmbeddingCollection later = new EmbeddingCollection(comm, mesh, model, plan, null)) {
        later.continueFrom(tables);
        check(later.step() == tables.step(), "steps go along");
      }
    }
    comm.shutdown();
  }

  static void layers(Comm comm) {
    MlpOptions adam = new MlpOptions().optimizer(Optimizer.ADAM).learningRate(0.1).seed(3);
    Mlp mlp = new Mlp(2, adam);
    try (Interaction interaction = new Interaction(1, 2, null); Ddp ddp = new Ddp(comm, null)) {
      mlp.addLinear(2, Activation.NONE);
      Mlp.Parameter early = mlp.parameter(0);
      mlp.addLinear(2, Activation.NONE);
      fails(Status.INVALID_STATE, () -> early.value().toFloats());
      check(mlp.info().parameters() == 4 && mlp.parameter(0).value().toFloats().length == 4, "parameters");
      ddp.addMlp("stack", mlp);
      ddp.commit();
      float[] before = mlp.parameter(0).value().toFloats();
      FloatBuffer in = floats(1, comm.rank() + 1), dense = Tensor.floats(2), gradient = Tensor.floats(2);
      ddp.begin(true);
      mlp.forward(Tensor.matrix(in, 1, 2), Tensor.matrix(dense, 1, 2));
      Tensor embeddings = Tensor.matrix(floats(3, 4), 1, 2);
      check(interaction.outputs() == 3, "outputs");
      FloatBuffer joined = Tensor.floats(3);
      interaction.forward(Tensor.matrix(dense, 1, 2), embeddings, Tensor.matrix(joined, 1, 3));
      interaction.backward(Tensor.matrix(floats(1, 1, 1), 1, 3), Tensor.matrix(gradient, 1, 2),
          Tensor.matrix(Tensor.floats(2), 1, 2));
      check(gradient.get(0) == 4 && gradient.get(1) == 5, "gradients of the interaction");
      mlp.backward(Tensor.matrix(gradient, 1, 2), null);
      ddp.end();
      ddp.await();
      mlp.setLearningRate(0.01);
      mlp.step();
      check(!Arrays.equals(before, mlp.parameter(0).value().toFloats()), "a step");
      mlp.zeroGradients();
      ddp.checkEqual();
      check(mlp.info().equals(new Mlp.Info(2, 2, 2, 4, 12, 1, 0.01, Optimizer.ADAM, 2, 1, 0)), mlp.info().toString());
      float[] means = mlp.state(0, 0).toFloats();
      check(means.length == 4 && means[0] != 0 && mlp.state(0, 1).toFloats()[0] > 0, "states");
      fails(Status.NOT_FOUND, () -> mlp.state(0, 2));
      Tensor view = mlp.parameter(0).value();
      refused(() -> ddp.addParameter("view", view, null));
      refused(() -> mlp.forward(view, Tensor.matrix(dense, 1, 2)));
      mlp.close();
      fails(Status.INVALID_HANDLE, view::toFloats);
    }
    comm.shutdown();
  }

  static void ownParameters(Comm comm) {
    FloatBuffer weight = floats(1, 2), bias = floats(3), flat = Tensor.floats(3);
    try (Ddp ddp = new Ddp(comm, new DdpOptions().firstBucketBytes(1).unused(Unused.ZERO))) {
      check(ddp.addParameter("weight", Tensor.vector(weight), null) == 0, "the first");
      check(ddp.addParameter("bias", Tensor.vector(bias), null) == 1, "the second");
      ddp.setFlatGradient(Tensor.vector(flat));
      ddp.setOptimizer(new OptimizerOptions().optimizer(Optimizer.ADAGRAD).learningRate(1));
      ddp.commit();
      check(ddp.bucketOf(1) == 0 && ddp.gradient(0).toFloats().length == 2, "buckets");
      ddp.begin(true);
      flat.put(0, 3).put(1, 3);
      ddp.markReady(0, 1);
      ddp.markUnused(1, 1);
      ddp.end();
      ddp.await();
      check(ddp.clipGradients(Clip.L2, 1) > 4, "a norm");
      ddp.step();
      check(weight.get(0) < 0.1f && ddp.state(0, 0).toFloats()[0] > 0, "a step");
      ddp.zeroGradients();
      ddp.setLearningRate(0.5);
      ddp.allReduce();
      ddp.broadcast(1);
      ddp.checkEqual();
      ddp.join();
      check(ddp.statisticsJson().contains("buckets"), ddp.statisticsJson());
    }
    comm.shutdown();
  }

  static void shardedParameters(Comm comm) {
    FloatBuffer given = floats(1, 2, 3), read = Tensor.floats(3);
    try (Fsdp fsdp = new Fsdp(comm, null, new FsdpOptions().prefetch(1).strategy(FsdpStrategy.FULL_SHARD))) {
      int unit = fsdp.addUnit("tower");
      int weight = fsdp.addParameter(unit, "weight", 40, 2), bias = fsdp.addParameter(unit, "bias", 3, 0);
      fsdp.setOptimizer(new OptimizerOptions().optimizer(Optimizer.ADAGRAD).learningRate(1));
      fsdp.commit();
      fsdp.setFull(bias, 0, Tensor.vector(given), 0);
      fsdp.begin(true);
      fsdp.unshard(unit);
      fsdp.waitUnshard(unit);
      check(fsdp.parameter(bias).toFloats()[2] == 3, "a parameter");
      fsdp.reshard(unit);
      fsdp.unshard(unit);
      check(fsdp.gradient(bias).toFloats()[2] == 0, "a gradient");
      fsdp.markReady(unit);
      fsdp.end();
      fsdp.await();
      check(fsdp.clipGradients(Clip.INFINITY, 8) == 0, "a norm");
      fsdp.step();
      fsdp.full(bias, 0, Tensor.vector(read));
      check(read.get(0) == 1 && read.get(2) == 3, "a whole parameter");
      Fsdp.Shard shard = fsdp.shard(weight, 2);
      check(shard.offset() == 64 * comm.rank() && shard.elements().toFloats().length > 0, "a shard");
      fsdp.zeroGradients();
      fsdp.setLearningRate(0.5);
      fsdp.checkEqual();
      check(fsdp.statisticsJson().contains("gathers"), fsdp.statisticsJson());
      try (Checkpoint checkpoint = new Checkpoint(comm, folder.resolve("sharded").toString(), null)) {
        checkpoint.addFsdp("tower", fsdp);
        checkpoint.commit(1, null);
      }
    }
    try (Fsdp fsdp = new Fsdp(comm, null, null); Mlp mlp = new Mlp(2, null)) {
      mlp.addLinear(1, Activation.NONE);
      mlp.parameter(0).value().setFloats(new float[] {1, 2});
      check(fsdp.addMlp("net", mlp, 1) == 0, "the first parameter");
      fsdp.setOptimizer(new OptimizerOptions().optimizer(Optimizer.SGD).learningRate(1));
      fsdp.commit();
      FloatBuffer out = Tensor.floats(1);
      fsdp.begin(true);
      mlp.forward(Tensor.matrix(floats(3, 4), 1, 2), Tensor.matrix(out, 1, 1));
      mlp.backward(Tensor.matrix(floats(1), 1, 1), null);
      fsdp.end();
      fsdp.await();
      fsdp.step();
      FloatBuffer weight = Tensor.floats(2);
      fsdp.full(0, 0, Tensor.vector(weight));
      check(weight.get(0) == -2 && weight.get(1) == -2, "a step of a stack");
      fails(Status.INVALID_STATE, () -> mlp.parameter(0));
    }
    comm.shutdown();
  }

  // A layer norm of 1 and 3 gives -1 and 1; cross layers without a matrix and with a bias of 1 add their origin to
  // their input; dropout leaves it alone in evaluation.
  static void layersOfAllKinds() {
    try (Mlp mlp = new Mlp(2, null); Mlp other = new Mlp(2, null)) {
      mlp.addLayerNorm();
      mlp.addCross();
      mlp.addCross(1);
      mlp.addDropout(0.5);
      check(mlp.info().layers() == 4 && mlp.info().parameters() == 2 + 2 + 3, mlp.info().toString());
      mlp.parameter(2).value().setFloats(new float[4]);
      mlp.parameter(5).value().setFloats(new float[2]);
      for (int bias : new int[] {3, 6}) mlp.parameter(bias).value().setFloats(new float[] {1, 1});
      FloatBuffer out = Tensor.floats(2);
      mlp.setTraining(false);
      mlp.forward(Tensor.matrix(floats(1, 3), 1, 2), Tensor.matrix(out, 1, 2));
      check(Math.abs(out.get(0) + 3) < 1e-4 && Math.abs(out.get(1) - 3) < 1e-4, out.get(0) + " " + out.get(1));
      FloatBuffer rows = Tensor.floats(200), dropped = Tensor.floats(200);
      for (int i = 0; i < 200; ++i) rows.put(i, 1 + i % 2);
      mlp.setTraining(true);
      mlp.forward(Tensor.matrix(rows, 100, 2), Tensor.matrix(dropped, 100, 2));
      int zeros = 0;
      for (int i = 0; i < 200; ++i) zeros += dropped.get(i) == 0 ? 1 : 0;
      check(zeros > 60 && zeros < 140, zeros + " of 200 were dropped");
      fails(Status.INVALID_STATE, () -> mlp.addDropout(0.5));
      fails(Status.INVALID_ARGUMENT, () -> other.addDropout(1));
      fails(Status.INVALID_ARGUMENT, () -> other.addLayerNorm(-1));
      fails(Status.INVALID_ARGUMENT, () -> other.addCross(-1));
      fails(Status.INVALID_ARGUMENT, () -> other.set(MlpSetting.TRAINING, 2));
    }
  }

  static void checkpoints(Comm comm) {
    String root = folder.resolve("run").toString();
    FloatBuffer weight = floats(1, 2);
    try (Model model = model(); Plan plan = Plan.collective(comm, null, model, new PlanOptions().sharding(Sharding.ROW_WISE));
        EmbeddingCollection tables = new EmbeddingCollection(comm, null, model, plan, null); Mlp mlp = new Mlp(2, null);
        Ddp ddp = new Ddp(comm, null); Checkpoint checkpoint = new Checkpoint(comm, root, new CheckpointOptions().keepLast(2).mostDeltas(3).deltaStates(false))) {
      mlp.addLinear(1, Activation.NONE);
      ddp.addParameter("weight", Tensor.vector(weight), null);
      ddp.commit();
      checkpoint.addCollection("tables", tables);
      checkpoint.addMlp("layers", mlp);
      checkpoint.addDdp("own", ddp);
      checkpoint.setTensor("position", Tensor.vector(Tensor.longs(comm.rank())));
      checkpoint.commitBegin(4, null);
      check(checkpoint.commitWait(-1), "the commit is over");
      check(!checkpoint.commitDelta(3, null) && checkpoint.commitDelta(4, null), "a delta behind a whole commit");
      check(checkpoint.commitDeltaBegin(5, null) && checkpoint.commitWait(-1), "a delta in the background");
      checkpoint.open(5);
      check(checkpoint.contentsJson().contains("\"states\": false"), "a delta of weights alone");
      weight.put(0, 9);
      checkpoint.open(3);
      checkpoint.load(null);
      checkpoint.open(5);
      weight.put(0, 9);
      String report = checkpoint.loadPartial("{\"version\": 1, \"load\": \"listed\", \"parameters\": [{\"name\": \"own\"}]}", null);
      check(report.contains("left_out"), report);
      fails(Status.INVALID_ARGUMENT, () -> checkpoint.loadPartial("{}", null));
      Checkpoint.Info opened = checkpoint.info();
      check(opened.step() == 5 && opened.ranks() == 2 && opened.collections() == 1 && opened.layers() == 1
          && opened.parameters() == 1 && opened.tensors() == 2 && weight.get(0) == 1, opened.toString());
      var position = Tensor.longs(7);
      Checkpoint.TensorInfo info = checkpoint.tensorInfo("position", 1);
      check(info.dtype() == Dtype.INT64 && Arrays.equals(info.shape(), new long[] {1}) && info.bytes() == 8, info.toString());
      checkpoint.getTensor("position", 1, Tensor.vector(position));
      check(position.get(0) == 1, "a rank's own tensor");
      try (Model saved = checkpoint.model("tables"); Plan boxes = checkpoint.plan("tables");
          Mlp layers = checkpoint.mlp("layers", null)) {
        check(saved.info().tables() == 2 && boxes.boxCount(0) >= 1 && layers.info().parameters() == 2,
            saved.info() + ", " + boxes.boxCount(0) + " boxes, " + layers.info());
      }
      checkpoint.verify(null);
      check(checkpoint.contentsJson().contains("tables") && ShardRec.checkpointListJson(root).contains("5"), "lists");
    }
    comm.shutdown();
  }

  /** A training publishes its changes; a scorer that follows answers with the rows of each of its steps. */
  static void follows(Comm comm) {
    String root = folder.resolve("follows").toString();
    try (Model model = model(); Plan plan = Plan.collective(comm, null, model, null);
        EmbeddingCollection tables = new EmbeddingCollection(comm, null, model, plan, null);
        Checkpoint checkpoint = new Checkpoint(comm, root, new CheckpointOptions().deltaStates(false))) {
      checkpoint.addCollection("tables", tables);
      check(!checkpoint.commitDelta(0, null), "the first one is whole");
      try (Scorer scorer = Scorer.open(root, -1, null, null)) {
        Tensor ids = Tensor.vector(Tensor.longs(7, 2)), lengths = Tensor.vector(Tensor.longs(1, 1));
        FloatBuffer out = Tensor.floats(6);
        for (int step = 1; step <= 12; ++step) {
          tables.writeRange(0, TablePart.WEIGHTS, 7, 1, Tensor.matrix(floats(step, step, step, step), 1, 4));
          check(checkpoint.commitDeltaBegin(step, null) && checkpoint.commitWait(-1), "a delta of step " + step);
          check(scorer.refresh(-1, null) == step, "the step that is served");
          check(scorer.lookup(0, new Batch(1, ids, lengths), Tensor.matrix(out, 1, 6)) == step && out.get(0) == step, "rows of step " + step);
        }
      }
    }
  }

  /** What ServeTest asks of scorers from many threads, for every function once. */
  static void scorers() {
    try (Scorer scorer = Scorer.open(folder.resolve("run").toString(), 5, new ScorerOptions().servedTables(ServedTables.MAPPED),
            null); Model model = scorer.model()) {
      check(model.info().tables() == 2 && scorer.info().step() == 5 && scorer.refresh(-1, null) == 5, scorer.info().toString());
      Tensor ids = Tensor.vector(Tensor.longs(1, 2)), lengths = Tensor.vector(Tensor.longs(1, 1));
      FloatBuffer out = Tensor.floats(6);
      check(scorer.lookup(0, new Batch(1, ids, lengths), Tensor.matrix(out, 1, 6)) == 5, "the step that has answered");
      fails(Status.UNSUPPORTED, () -> scorer.predict(new Batch(1, ids, lengths), Tensor.matrix(Tensor.floats(1), 1, 1), Tensor.vector(Tensor.floats(1)))); // there are no such layers
    }
    Tensor ids = Tensor.vector(Tensor.longs(7, -1)), rows = Tensor.vector(Tensor.longs(0, 0));
    ShardRec.hash64Ids(3, ids, 1000, rows);
    check(((java.nio.LongBuffer) rows.data).get(0) == Long.remainderUnsigned(ShardRec.hash64(3, bytesOf(7)), 1000)
        && ((java.nio.LongBuffer) rows.data).get(1) == Long.remainderUnsigned(ShardRec.hash64(3, bytesOf(-1)), 1000),
        "rows of ids");
  }

  static byte[] bytesOf(long id) {
    return ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN).putLong(id).array();
  }

  static void metrics(Comm comm) {
    try (Metrics metrics = new Metrics(comm, null)) {
      metrics.update(Tensor.vector(floats(0.9f, 0.1f)), Tensor.vector(floats(1, 0)));
      metrics.compute();
      check(metrics.get(Metric.AUC) == 1 && ShardRec.countersText().contains("shardrec"), "AUC " + metrics.get(Metric.AUC));
      metrics.reset();
    }
    try (Metrics own = new Metrics(null, null)) { // of this rank alone
      own.update(Tensor.vector(floats(0.9f, 0.1f)), Tensor.vector(floats(0, 1)));
      own.compute();
      check(own.get(Metric.AUC) == 0, "AUC " + own.get(Metric.AUC));
    }
    comm.shutdown();
  }

  /** Two ranks that meet as processes do, each on a thread of its own. */
  static void processes() throws Exception {
    fails(Status.INVALID_ARGUMENT, () -> Comm.createFromEnv(new CommOptions().engine(Engine.GLOO))); // there is none
    if (!ShardRec.capabilitiesJson().contains("gloo")) throw new AssertionError("the plug-in of gloo was not built");
    try (Rendezvous rendezvous = new Rendezvous(null)) {
      String token = rendezvous.token();
      AtomicReference<Throwable> failure = new AtomicReference<>();
      Thread[] ranks = new Thread[2];
      for (int rank = 0; rank < 2; ++rank) {
        int own = rank;
        ranks[rank] = new Thread(() -> {
          try (Comm comm = new Comm(Engine.GLOO, own, 2, token, new CommOptions().setupSeconds(60))) {
            check(comm.rank() == own, "its rank");
            comm.barrier();
            comm.shutdown();
          } catch (Throwable thrown) {
            failure.set(thrown);
          }
        });
        ranks[rank].start();
      }
      for (Thread rank : ranks) rank.join();
      if (failure.get() != null) throw new AssertionError(failure.get());
    }
  }
}
