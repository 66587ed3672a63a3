package org.shardrec;

import static org.shardrec.Checks.*;

import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.List;

/** Memory of devices: on the CPU everywhere, and a step with tensors on a device where CUDA, or what stands in for it on the
 * CPU, is there (bindings/run sets SHARDREC_TEST_DEVICE). */
public final class DeviceTest {
  static final long ROWS = 20;
  static final int DIM = 4, BAGS = 3;

  public static void main(String[] arguments) throws Exception {
    memoryOfTheCpu();
    misuseIsRefused();
    noDeviceIsProbed();
    Memory there;
    try {
      there = new Memory(DeviceType.CUDA, 0, 64);
    } catch (ShardRecException none) {
      boolean absent = none.status() == Status.UNSUPPORTED || none.status() == Status.DEVICE_ERROR;
      check(absent && System.getenv("SHARDREC_TEST_DEVICE") == null, none.getMessage());
      System.out.println("java: ok, but no step on a device: " + none.getMessage());
      return;
    }
    misuseIsRefused(there);
    stepsAreEqual();
    stacksAreAlike();
    lossesAreEqual();
    setsAreAlike();
    check(ShardRec.liveObjects() == 0, "live objects at the end: " + ShardRec.liveObjects());
    System.out.println("java: ok");
  }

  static void memoryOfTheCpu() {
    try (Memory memory = new Memory(DeviceType.CPU, 0, 64)) {
      Tensor tensor = memory.tensorAt(16, Dtype.FLOAT32, 2, 3);
      check(tensor.deviceType() == DeviceType.CPU && tensor.deviceId() == 0 && tensor.size(1) == 3, "a tensor of memory");
      check(Arrays.equals(tensor.toFloats(), new float[6]), "zeros");
      ShardRec.tensorCopy(tensor, Tensor.matrix(floats(1, 2, 3, 4, 5, 6), 2, 3), 0);
      FloatBuffer apart = Tensor.floats(8);
      ShardRec.tensorCopy(Tensor.matrix(apart, 2, 3, 4), tensor, 0);
      check(tensor.toFloats()[5] == 6 && apart.get(4) == 4 && apart.get(3) == 0, "what was copied");
      check(memory.tensor(Dtype.FLOAT32).dimensions() == 0, "a tensor of one element");
    }
  }

  static void misuseIsRefused() {
    Memory memory = new Memory(DeviceType.CPU, 0, 64);
    fails(Status.INVALID_ARGUMENT, "does not end within the memory's 64 bytes", () -> memory.tensor(Dtype.FLOAT32, 17));
    fails(Status.INVALID_ARGUMENT, "ndim is 9", () -> memory.tensor(Dtype.FLOAT32, 1, 1, 1, 1, 1, 1, 1, 1, 1));
    fails(Status.INVALID_ARGUMENT, "offset_bytes is 2", () -> memory.tensorAt(2, Dtype.FLOAT32, 1));
    fails(Status.INVALID_ARGUMENT, "bytes is -1", () -> new Memory(DeviceType.CPU, 0, -1));
    Tensor tensor = memory.tensor(Dtype.FLOAT32, 4);
    refused(() -> tensor.resize(5));
    refused(() -> ShardRec.tensorCopy(Tensor.of(Tensor.allocate(Dtype.FLOAT32, 4).asReadOnlyBuffer().order(
        java.nio.ByteOrder.nativeOrder()), Dtype.FLOAT32, 4), tensor, 0));
    FloatBuffer same = Tensor.floats(4);
    fails(Status.INVALID_ARGUMENT, "dtype", () -> ShardRec.tensorCopy(tensor, Tensor.vector(Tensor.ints(1, 2, 3, 4)), 0));
    memory.close();
    fails(Status.INVALID_HANDLE, "this Memory is closed", () -> ShardRec.tensorCopy(Tensor.vector(same), tensor, 0));
    fails(Status.INVALID_HANDLE, "this Memory is closed", tensor::toFloats);
    fails(Status.INVALID_HANDLE, "this Memory is closed", () -> memory.tensor(Dtype.FLOAT32, 4));
  }

  /** Which of the three, the plug-in decides. */
  static void noDeviceIsProbed() {
    try {
      ShardRec.probeJson("cuda:-1", 0, false, null);
      throw new AssertionError("accepted");
    } catch (ShardRecException refused) {
      check(List.of(Status.INVALID_ARGUMENT, Status.UNSUPPORTED, Status.DEVICE_ERROR).contains(refused.status()), refused.getMessage());
    }
  }

  static void misuseIsRefused(Memory memory) {
    Tensor tensor = memory.tensor(Dtype.FLOAT32, 16);
    check(tensor.deviceType() == DeviceType.CUDA && tensor.deviceId() == 0, "a tensor on a device");
    refused(tensor::toFloats);
    refused(() -> tensor.setFloats(new float[16]));
    refused(() -> tensor.resize(17));
    FloatBuffer two = Tensor.floats(2);
    ShardRec.tensorCopy(tensor.resize(2), Tensor.vector(floats(1, 2)), 0);
    ShardRec.tensorCopy(Tensor.vector(two), tensor, 0);
    check(two.get(0) == 1 && two.get(1) == 2, "the first two elements");
    fails(Status.INVALID_ARGUMENT, "device 99 does not exist", () -> new Memory(DeviceType.CUDA, 99, 64));
    try (Mlp mlp = new Mlp(16, null)) {
      mlp.addLinear(1, Activation.NONE);
      refused(() -> mlp.forward(tensor, Tensor.vector(two)));
    }
    try (Local group = new Local(1, 1); Comm comm = Comm.createLocal(group, 0)) {
      fails(Status.UNSUPPORTED, "on a CUDA device", () -> comm.allReduce(tensor, Reduction.SUM));
    }
    memory.close();
    fails(Status.INVALID_HANDLE, "this Memory is closed", () -> ShardRec.tensorCopy(Tensor.vector(two), tensor, 0));
  }

  static void stacksAreAlike() {
    float[] cpu = trained(-1), device = trained(0);
    for (int i = 0; i < cpu.length; ++i) check(Math.abs(cpu[i] - device[i]) < 1e-4, i + ": " + cpu[i] + ", " + device[i]);
    fails(Status.INVALID_ARGUMENT, "device 99 does not exist", () -> new Mlp(3, new MlpOptions().device(99)));
  }

  /** The outputs of a stack that was trained there, and its first weights. */
  static float[] trained(int device) {
    int batch = 5, inputs = 3;
    try (Mlp mlp = new Mlp(inputs, new MlpOptions().optimizer(Optimizer.ADAM).seed(3).device(device))) {
      mlp.addLinear(4, Activation.RELU);
      mlp.addCross(2);
      mlp.addLinear(1, Activation.NONE);
      FloatBuffer x = Tensor.floats(batch * inputs), y = Tensor.floats(batch), weights = Tensor.floats(4 * inputs);
      for (int i = 0; i < batch * inputs; ++i) x.put(i, i % 7 - 3);
      for (int step = 0; step < 3; ++step) {
        mlp.forward(Tensor.matrix(x, batch, inputs), Tensor.matrix(y, batch, 1));
        mlp.backward(Tensor.matrix(y, batch, 1), null);
        mlp.step();
      }
      Tensor weight = mlp.parameter(0).value();
      check(weight.deviceType() == (device < 0 ? DeviceType.CPU : DeviceType.CUDA), "where parameters are");
      ShardRec.tensorCopy(Tensor.matrix(weights, 4, inputs), weight, 0);
      float[] all = new float[batch + 4 * inputs];
      y.get(0, all, 0, batch);
      weights.get(0, all, batch, 4 * inputs);
      return all;
    }
  }

  /** The loss where a stack is, and metrics, with tensors there and here: the bits of the CPU. */
  static void lossesAreEqual() {
    Tensor logits = Tensor.vector(floats(0.5f, -2, 3, 0, -1)), labels = Tensor.vector(floats(1, 0, 1, 0, 1));
    Tensor p = Tensor.vector(Tensor.floats(5)), g = Tensor.vector(Tensor.floats(5));
    Tensor wrong = Tensor.vector(floats(1, 0, 2, 0, 1));
    double loss = ShardRec.bceWithLogits(null, logits, labels, p, g);
    try (Mlp stack = new Mlp(1, new MlpOptions().device(0)); Metrics cpu = new Metrics(null, null);
        Metrics device = new Metrics(null, new MetricsOptions().device(0)); There z = new There(logits);
        There predicted = new There(Tensor.vector(Tensor.floats(5))); There gradient = new There(Tensor.vector(Tensor.floats(5)))) {
      cpu.update(p, labels);
      cpu.compute();
      double found = ShardRec.bceWithLogits(stack, z.tensor, labels, predicted.tensor, null);
      check(found == loss, "loss " + found + ", " + loss);
      ShardRec.enqueueBceWithLogits(stack, z.tensor, labels, null, gradient.tensor);
      device.update(predicted.tensor, labels);
      device.compute();
      predicted.fetch();
      gradient.fetch();
      check(Arrays.equals(predicted.here.toFloats(), p.toFloats()), "probabilities");
      check(Arrays.equals(gradient.here.toFloats(), g.toFloats()), "gradients");
      for (Metric metric : new Metric[] {Metric.AUC, Metric.LOSS, Metric.SAMPLES}) {
        check(device.get(metric) == cpu.get(metric), metric + ": " + device.get(metric) + ", " + cpu.get(metric));
      }
      ShardRec.enqueueBceWithLogits(stack, z.tensor, wrong, null, gradient.tensor);
      fails(Status.INVALID_ARGUMENT, "the label at position 2", () -> ShardRec.bceWithLogits(stack, z.tensor, labels, null, null));
      device.update(predicted.tensor, wrong);
      fails(Status.INVALID_ARGUMENT, "the label at position 7", device::compute);
      fails(Status.UNSUPPORTED, "on a CUDA device", () -> ShardRec.bceWithLogits(null, z.tensor, labels, null, null));
    }
    fails(Status.INVALID_ARGUMENT, "device 99 does not exist", () -> new Metrics(null, new MetricsOptions().device(99)));
  }

  /** Layers of two ranks there, in a set: gradients are exchanged on the device, and close to those of the CPU. Parameters of
   * the program's own are the host's here. */
  static void setsAreAlike() throws Exception {
    float[][] cpu = trainedInASet(-1), device = trainedInASet(0);
    check(device[0][0] != 0 && Arrays.equals(device[0], device[1]), "ranks: " + Arrays.deepToString(device));
    for (int i = 0; i < 8; ++i) check(Math.abs(cpu[0][i] - device[0][i]) < 1e-4, i + ": " + cpu[0][i] + ", " + device[0][i]);
  }

  /** The first weights of each rank. */
  static float[][] trainedInASet(int device) throws Exception {
    int batch = 3;
    float[][] weights = new float[2][];
    ShardRec.run(2, comm -> {
      int rank = comm.rank();
      // Ranks begin apart: commit copies the values of rank 0.
      try (Mlp mlp = new Mlp(2, new MlpOptions().optimizer(Optimizer.ADAM).seed(3 + rank).device(device));
          Ddp ddp = new Ddp(comm, new DdpOptions().stream(0)); There there = new There(Tensor.vector(Tensor.floats(2)))) {
        refused(() -> ddp.addParameter("there", there.tensor, null));
        mlp.addLinear(4, Activation.RELU);
        mlp.addLinear(1, Activation.NONE);
        ddp.addMlp("stack", mlp);
        ddp.commit();
        FloatBuffer x = floats(1, rank, -0.5f, 2, rank + 1, 0.25f), y = Tensor.floats(batch);
        for (int step = 0; step < 2; ++step) {
          ddp.begin(true);
          mlp.forward(Tensor.matrix(x, batch, 2), Tensor.matrix(y, batch, 1));
          mlp.backward(Tensor.matrix(floats(rank + 0.5f, -1, 0.25f), batch, 1), null);
          ddp.end();
          ddp.await();
          ddp.clipGradients(Clip.L2, 1);
          mlp.step();
        }
        ddp.checkEqual();
        FloatBuffer first = Tensor.floats(8);
        ShardRec.tensorCopy(Tensor.matrix(first, 4, 2), mlp.parameter(0).value(), 0);
        weights[rank] = Tensor.vector(first).toFloats();
      }
    });
    return weights;
  }

  /** What a step leaves. */
  record Left(float[] output, float[] ofWeights, float[] rows) {}

  /** Memory on the device for a tensor, and what is there copied back. */
  static final class There implements AutoCloseable {
    final Memory memory;
    final Tensor tensor;
    final Tensor here;

    There(Tensor here) {
      long bytes = Buffers.sizeOf(here.dtype());
      long[] shape = new long[here.dimensions()];
      for (int i = 0; i < shape.length; ++i) bytes *= shape[i] = here.size(i);
      memory = new Memory(DeviceType.CUDA, 0, bytes);
      tensor = memory.tensor(here.dtype(), shape);
      this.here = here;
      ShardRec.tensorCopy(tensor, here, 0);
    }

    void fetch() {
      ShardRec.tensorCopy(here, tensor, 0);
    }

    @Override
    public void close() {
      memory.close();
    }
  }

  static Left step(boolean onDevice) throws Exception {
    Left[] left = new Left[1];
    ShardRec.run(1, comm -> {
      try (Model model = new Model()) {
        model.setOptimizer(ShardRec.ALL_TABLES, new OptimizerOptions().optimizer(Optimizer.ROWWISE_ADAGRAD).learningRate(0.5));
        model.addFeature(model.addTable("t", ROWS, DIM, null), "f", Pooling.SUM);
        try (Plan plan = Plan.collective(comm, null, model, null);
            EmbeddingCollection tables = new EmbeddingCollection(comm, null, model, plan, onDevice ? new CollectionOptions().device(0) : null);
            Lookup lookup = new Lookup(tables, new LookupOptions().weightGradient(true))) {
          Tensor ids = Tensor.vector(Tensor.longs(3, 7, 3, 19, 0)), lengths = Tensor.vector(Tensor.longs(2, 0, 3));
          Tensor weights = Tensor.vector(floats(1, 0.5f, -2, 3, 0.25f)), output = Tensor.matrix(Tensor.floats(BAGS * DIM), BAGS, DIM);
          Tensor gradient = Tensor.matrix(floats(1, 2, 3, 4, 5, 6, 7, 8, 9, 0.1f, 0.2f, 0.3f), BAGS, DIM);
          Tensor ofWeights = Tensor.vector(Tensor.floats(5)), rows = Tensor.matrix(Tensor.floats((int) ROWS * DIM), ROWS, DIM);
          for (int i = 0; i < 2; ++i) {
            if (onDevice) {
              try (There i1 = new There(ids); There l = new There(lengths); There w = new There(weights);
                  There o = new There(output); There g = new There(gradient); There ow = new There(ofWeights)) {
                lookup.begin(new Batch(BAGS, i1.tensor, l.tensor).weights(w.tensor));
                lookup.forward(0, o.tensor);
                lookup.setGradient(0, g.tensor);
                lookup.backward(Update.APPLY);
                lookup.weightGradient(ow.tensor);
                o.fetch();
                ow.fetch();
              }
            } else {
              lookup.begin(new Batch(BAGS, ids, lengths).weights(weights));
              lookup.forward(0, output);
              lookup.setGradient(0, gradient);
              lookup.backward(Update.APPLY);
              lookup.weightGradient(ofWeights);
            }
          }
          tables.readRange(0, TablePart.WEIGHTS, 0, ROWS, rows);
          left[0] = new Left(output.toFloats(), ofWeights.toFloats(), rows.toFloats());
        }
      }
    });
    return left[0];
  }

  static void stepsAreEqual() throws Exception {
    Left cpu = step(false), device = step(true);
    check(cpu.output()[0] != 0 && cpu.ofWeights()[4] != 0, "a step");
    check(Arrays.equals(cpu.output(), device.output()), "outputs: " + Arrays.toString(device.output()));
    check(Arrays.equals(cpu.ofWeights(), device.ofWeights()), "gradients of weights: " + Arrays.toString(device.ofWeights()));
    check(Arrays.equals(cpu.rows(), device.rows()), "rows: " + Arrays.toString(device.rows()));
  }
}
