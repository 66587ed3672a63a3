package org.shardrec;

import static org.shardrec.Checks.*;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.ShortBuffer;
import java.util.Arrays;

/** Tensors of every dtype, with up to eight dimensions and strides, and the memory that they are made of. */
public final class TensorTest {
  public static void main(String[] arguments) throws Exception {
    memoryIsAligned();
    numbersOf16BitsAreRounded();
    stridesAreFollowed();
    badViewsAreRefused();
    viewsChangeTheirLength();
    everyDtypeAndShapeCrosses();
    gradientsOf16BitsTrain();
    System.out.println("java: ok");
  }

  static void memoryIsAligned() {
    for (int length : new int[] {0, 1, 3, 15, 16, 17, 1000}) {
      ByteBuffer bytes = Tensor.allocate(Dtype.FLOAT64, length);
      check(bytes.capacity() == 8 * length && bytes.order() == ByteOrder.nativeOrder(), bytes.toString());
      check(bytes.alignmentOffset(0, 64) == 0, "the buffer begins at " + bytes.alignmentOffset(0, 64));
    }
    refused(() -> Tensor.of(Tensor.allocate(Dtype.INT32, 2), Dtype.INT32, 3));
    try {
      Tensor.allocate(Dtype.FLOAT32, 1L << 40);
      throw new AssertionError("accepted");
    } catch (ArithmeticException expected) {
      // More than a buffer may have.
    }
  }

  static void numbersOf16BitsAreRounded() {
    float[] values = {0, -0f, 1, -2.5f, 65504, 65519, 65520, 1e9f, 6e-8f, 2e-8f, 3e-5f, 0.1f, 1.00048828125f, 1.00146484375f,
        Float.NaN, Float.NEGATIVE_INFINITY};
    float[] halves = {0, -0f, 1, -2.5f, 65504, 65504, Float.POSITIVE_INFINITY, Float.POSITIVE_INFINITY, 5.9604645e-8f, 0,
        2.9981136e-5f, 0.099975586f, 1, 1.001953125f, Float.NaN, Float.NEGATIVE_INFINITY};
    check(Arrays.equals(throughMemory(Dtype.FLOAT16, values), halves), Arrays.toString(throughMemory(Dtype.FLOAT16, values)));
    float[] wide = {1, 1.00390625f, 1.01171875f, 0.1f, Float.MAX_VALUE, Float.NaN, -1e-40f};
    float[] brain = {1, 1, 1.015625f, 0.10009765625f, Float.POSITIVE_INFINITY, Float.NaN, -9.18355e-41f};
    float[] got = throughMemory(Dtype.BFLOAT16, wide);
    check(Arrays.equals(Arrays.copyOf(got, 6), Arrays.copyOf(brain, 6)) && Math.abs(got[6] - brain[6]) < 1e-42f,
        Arrays.toString(got));
    // All numbers of 16 bits are kept.
    for (int bits = 0; bits < 1 << 16; ++bits) {
      float half = Halves.fromFloat16((short) bits), brainy = Halves.fromBfloat16((short) bits);
      check(Float.isNaN(half) || Halves.toFloat16(half) == (short) bits, "binary16 " + bits);
      check(Float.isNaN(brainy) || Halves.toBfloat16(brainy) == (short) bits, "bfloat16 " + bits);
    }
  }

  static float[] throughMemory(Dtype dtype, float[] values) {
    ShortBuffer memory = Tensor.allocate(dtype, values.length).asShortBuffer();
    Tensor tensor = Tensor.of(memory, dtype, values.length);
    tensor.setFloats(values);
    return tensor.toFloats();
  }

  static void stridesAreFollowed() {
    Tensor transposed = Tensor.strided(floats(1, 2, 3, 4, 5, 6), Dtype.FLOAT32, new long[] {3, 2}, new long[] {1, 3});
    check(Arrays.equals(transposed.toFloats(), new float[] {1, 4, 2, 5, 3, 6}), Arrays.toString(transposed.toFloats()));
    Tensor eight = Tensor.of(Tensor.allocate(Dtype.FLOAT64, 12), Dtype.FLOAT64, 1, 2, 1, 3, 1, 1, 2, 1);
    check(eight.dimensions() == 8 && eight.stride(1) == 6 && eight.stride(3) == 2 && eight.size(6) == 2
        && eight.dtype() == Dtype.FLOAT64, "a layout");
    eight.setFloats(new float[] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    check(eight.toFloats()[11] == 12, "the last element");
    Tensor scalar = Tensor.of(floats(7, 8), Dtype.FLOAT32);
    check(scalar.dimensions() == 0 && Arrays.equals(scalar.toFloats(), new float[] {7}), "a scalar");
    check(Tensor.of(floats(), Dtype.FLOAT32, 3, 0).toFloats().length == 0, "no elements");
  }

  static void badViewsAreRefused() {
    refused(() -> Tensor.of(Tensor.floats(4), Dtype.INT32, 4));
    refused(() -> Tensor.of(Tensor.floats(4), Dtype.UINT8, 4));
    refused(() -> Tensor.of(Tensor.floats(4), Dtype.FLOAT32, 1, 1, 1, 1, 1, 1, 1, 1, 1));
    refused(() -> Tensor.strided(Tensor.floats(4), Dtype.FLOAT32, new long[] {2, 2}, new long[] {2}));
    refused(() -> Tensor.strided(Tensor.floats(4), Dtype.FLOAT32, new long[] {2, 2}, new long[] {-2, 1}));
    refused(() -> Tensor.of(ByteBuffer.allocateDirect(8), Dtype.INT64, 1)); // big-endian
    refused(() -> Tensor.vector(Tensor.longs(1)).toFloats());
    refused(() -> Tensor.vector(floats(1).asReadOnlyBuffer()).setFloats(new float[1]));
    refused(() -> Tensor.vector(floats(1)).setFloats(new float[2]));
    check(Tensor.vector(ByteBuffer.allocateDirect(3)).dtype() == Dtype.UINT8, "bytes have no order");
    // What Java cannot know, the library says: an address that is no multiple of the element's size.
    ByteBuffer odd = Tensor.allocate(Dtype.FLOAT32, 3).position(1).slice().order(ByteOrder.nativeOrder());
    fails(Status.INVALID_ARGUMENT, "aligned", () -> ShardRec.bceWithLogits(null, Tensor.of(odd, Dtype.FLOAT32, 2),
        Tensor.vector(floats(1, 0)), null, null));
  }

  static void viewsChangeTheirLength() {
    Tensor cube = Tensor.of(Tensor.allocate(Dtype.BFLOAT16, 24), Dtype.BFLOAT16, 2, 3, 4);
    check(cube.resize(1).toFloats().length == 12 && cube.resize(2).size(0) == 2, "another length");
    refused(() -> cube.resize(3));
    check(cube.size(0) == 2, "a refused size was taken");
    check(Tensor.vector(Tensor.allocate(Dtype.FLOAT64, 3).asDoubleBuffer()).resize(2).toFloats().length == 2, "doubles");
  }

  /** As a rank's own tensors of a checkpoint. */
  static void everyDtypeAndShapeCrosses() throws Exception {
    inFolder(folder -> {
      ShardRec.run(1, comm -> {
        try (Checkpoint checkpoint = new Checkpoint(comm, folder.resolve("run").toString(), null)) {
          for (Dtype dtype : Dtype.values()) checkpoint.setTensor(dtype.name(), numbered(dtype));
          checkpoint.setTensor("none", numbered(Dtype.UINT8));
          checkpoint.setTensor("none", null);
          checkpoint.commit(0, null);
          checkpoint.open(0);
          for (Dtype dtype : Dtype.values()) {
            Checkpoint.TensorInfo info = checkpoint.tensorInfo(dtype.name(), 0);
            check(info.dtype() == dtype && Arrays.equals(info.shape(), SHAPE), info.toString());
            ByteBuffer got = Tensor.allocate(dtype, 24);
            checkpoint.getTensor(dtype.name(), 0, Tensor.of(got, dtype, SHAPE));
            check(got.equals(numbers(dtype)), "elements of " + dtype);
          }
          fails(Status.NOT_FOUND, () -> checkpoint.tensorInfo("none", 0));
        }
        comm.shutdown();
      });
    });
  }

  static final long[] SHAPE = {2, 1, 1, 2, 3, 1, 2, 1};

  static Tensor numbered(Dtype dtype) {
    return Tensor.of(numbers(dtype), dtype, SHAPE);
  }

  static ByteBuffer numbers(Dtype dtype) {
    ByteBuffer bytes = Tensor.allocate(dtype, 24);
    for (int i = 0; i < bytes.capacity(); ++i) bytes.put(i, (byte) (i * 7));
    return bytes;
  }

  /** Outputs and gradients of bfloat16, from a table of binary16. */
  static void gradientsOf16BitsTrain() throws Exception {
    ShardRec.run(1, comm -> {
      try (Model model = new Model()) {
        model.setOptimizer(ShardRec.ALL_TABLES, new OptimizerOptions().learningRate(0.5));
        TableOptions zeros = new TableOptions().init(Init.ZEROS).dtype(Dtype.FLOAT16);
        model.addFeature(model.addTable("a", 4, 4, zeros), "id", Pooling.SUM);
        try (Plan plan = Plan.collective(comm, null, model, null); EmbeddingCollection tables = new EmbeddingCollection(comm, null, model,
                plan, new CollectionOptions().outputDtype(Dtype.BFLOAT16)); Lookup lookup = new Lookup(tables, null)) {
          Tensor out = Tensor.of(Tensor.allocate(Dtype.BFLOAT16, 8).asShortBuffer(), Dtype.BFLOAT16, 2, 4);
          for (int step = 0; step < 2; ++step) {
            lookup.begin(new Batch(2, Tensor.vector(Tensor.ints(1, 1, 3)), Tensor.vector(Tensor.ints(2, 1))));
            lookup.forward(0, out);
            check(out.toFloats()[0] == -2 * step && out.toFloats()[4] == -0.5f * step, Arrays.toString(out.toFloats()));
            out.setFloats(new float[] {1, 1, 1, 1, 1, 1, 1, 1});
            lookup.setGradient(0, out);
            lookup.backward(Update.APPLY);
          }
        }
      }
      comm.shutdown();
    });
  }
}
