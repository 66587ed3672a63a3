package org.shardrec;

import java.nio.ByteBuffer;
import java.nio.FloatBuffer;

/** The raw layer, kind of argument by kind of argument. */
public final class CapiTest {
  public static void main(String[] arguments) {
    textsCrossWhole();
    outParametersOfEveryKind();
    tensorsCrossWithShapeAndStride();
    tensorsOfTheLibraryCanBeWritten();
    buffersThatWouldBeMisreadAreRefused();
    System.out.println("java: ok");
  }

  static void textsCrossWhole() {
    long[] model = new long[1];
    String[] json = new String[1];
    Capi.model_create(0, model);
    Capi.model_add_table(model[0], "usér 😀", 3, 4, 0, null);
    Capi.model_to_json(model[0], json);
    check(json[0].contains("usér 😀"), json[0]);
    refused(() -> Capi.model_add_table(model[0], "a\0b", 3, 4, 0, null));
    refused(() -> Capi.model_add_table(model[0], "\ud83d", 3, 4, 0, null));
    fails(Status.INVALID_ARGUMENT, () -> Capi.model_add_table(model[0], null, 3, 4, 0, null));
    Capi.model_destroy(model);
    fails(Status.INVALID_HANDLE, () -> Capi.model_to_json(model[0], json));
    check(model[0] == 0 && json[0] == null, "destroy did not clear the ticket, or a failing call left its text");
    check(Capi.status_name(201).equals("SHARDREC_TIMEOUT"), Capi.status_name(201));
    check(Capi.hash64(7, new byte[0]) == Capi.hash64(7, null), "nothing hashes as nothing");
  }

  static void outParametersOfEveryKind() {
    long[] model = new long[1], group = new long[1], comm = new long[1], column = new long[1], width = new long[1];
    int[] table = new int[1], size = new int[1], level = new int[1], rank = new int[1];
    double[] seconds = new double[1];
    String[] text = {"before"};
    Capi.model_create(0, model);
    Capi.model_add_table(model[0], "a", 3, 4, 0, null);
    Capi.model_add_table(model[0], "b", 3, 8, 0, table);
    Capi.model_add_feature(model[0], 0, "a", Pooling.SUM.value);
    Capi.model_add_feature(model[0], 1, "b", Pooling.MEAN.value);
    Capi.model_feature_columns(model[0], 1, column, null, width);
    Capi.local_create(3, 3, group);
    Capi.comm_create_local(group[0], 2, comm);
    Capi.comm_size(comm[0], size);
    Capi.comm_set_f64(comm[0], CommProperty.STEP_SECONDS.value, 12.5);
    Capi.comm_get_f64(comm[0], CommProperty.STEP_SECONDS.value, seconds);
    check(table[0] == 1 && column[0] == 4 && width[0] == 12 && size[0] == 3 && seconds[0] == 12.5, "out-parameters");
    Capi.log_next(0, level, rank, text);
    check(text[0] == null, "no message, but " + text[0]);
    Capi.comm_destroy(comm);
    Capi.local_destroy(group);
    Capi.model_destroy(model);
  }

  static void tensorsCrossWithShapeAndStride() {
    FloatBuffer gradient = Tensor.floats(4);
    double[] loss = new double[1];
    Tensor labels = Tensor.matrix(floats(1, 0, 0, 1), 4, 1);
    Capi.bce_with_logits(Tensor.vector(Tensor.floats(4)), labels, null, Tensor.vector(gradient), loss);
    check(Math.abs(loss[0] - Math.log(2)) < 1e-6 && gradient.get(0) == -0.125f && gradient.get(1) == 0.125f, "loss");

    // Two vectors of two columns; rows of the embeddings are three elements apart, of the output five. The
    // embeddings start behind the buffer's first element.
    long[] interaction = new long[1];
    Capi.interaction_create(1, 2, 0, interaction);
    FloatBuffer output = Tensor.floats(8);
    Tensor embeddings = Tensor.matrix(floats(-9, 5, 6, -1, 7, 8).position(1), 2, 2, 3);
    Capi.interaction_forward(
        interaction[0], Tensor.matrix(floats(1, 2, 3, 4), 2, 2), embeddings, Tensor.matrix(output, 2, 3, 5));
    check(output.equals(floats(1, 2, 17, 0, 0, 3, 4, 53)), "interaction");
    Capi.interaction_destroy(interaction);
  }

  static void tensorsOfTheLibraryCanBeWritten() {
    long[] mlp = new long[1];
    Tensor[] weights = new Tensor[1], bias = new Tensor[1];
    Capi.mlp_create(3, 0, mlp);
    Capi.mlp_add_linear(mlp[0], 2, Activation.NONE.value);
    Capi.mlp_parameter(mlp[0], 0, weights, null);
    Capi.mlp_parameter(mlp[0], 1, bias, null);
    check(weights[0].data.capacity() == 24 && bias[0].data.capacity() == 8, "sizes of the parameters");
    ((ByteBuffer) weights[0].data).asFloatBuffer().put(new float[] {1, 2, 3, 4, 5, 6});
    ((ByteBuffer) bias[0].data).asFloatBuffer().put(new float[] {10, 20});
    FloatBuffer output = Tensor.floats(2);
    Capi.mlp_forward(mlp[0], Tensor.matrix(floats(1, 1, 1), 1, 3), Tensor.matrix(output, 1, 2));
    check(output.get(0) == 16 && output.get(1) == 35, "a stack with given parameters");
    Capi.mlp_destroy(mlp);
  }

  static void buffersThatWouldBeMisreadAreRefused() {
    refused(() -> Tensor.vector(ByteBuffer.allocateDirect(32).asLongBuffer())); // big-endian
    refused(() -> Tensor.vector(FloatBuffer.allocate(4))); // on the heap
    refused(() -> Tensor.matrix(Tensor.floats(5), 2, 3));
    refused(() -> Tensor.matrix(Tensor.floats(5), 2, 2, 4));
  }

  static FloatBuffer floats(float... values) {
    return Tensor.floats(values.length).put(values).rewind();
  }

  static void refused(Runnable call) {
    try {
      call.run();
    } catch (IllegalArgumentException expected) {
      return;
    }
    throw new AssertionError("accepted");
  }

  static void fails(Status status, Runnable call) {
    try {
      call.run();
    } catch (ShardRecException e) {
      check(e.status() == status, e.getMessage());
      return;
    }
    throw new AssertionError("accepted");
  }

  static void check(boolean holds, String message) {
    if (!holds) throw new AssertionError(message);
  }
}
