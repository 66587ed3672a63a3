package org.shardrec;

import static org.shardrec.Checks.*;

import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.nio.file.Path;
import java.util.Set;

/** The raw layer, kind of argument by kind of argument. */
public final class CapiTest {
  /** A handle without methods of its own. */
  static final class Raw extends Handle {
    Raw(Create create, Destroy destroy) {
      super(create, destroy);
    }
  }

  public static void main(String[] arguments) throws Exception {
    namesAreNobodyElses();
    textsCrossWhole();
    outParametersOfEveryKind();
    tensorsCrossWithShapeAndStride();
    tensorsOfTheLibraryCanBeWritten();
    buffersThatWouldBeMisreadAreRefused();
    System.out.println("java: ok");
  }

  /** Of scala and its Predef, which every Scala program imports. */
  static final Set<String> SCALA = Set.of("AnyRef", "AnyVal", "Array", "Boolean", "Byte", "Char", "Double", "Either",
      "Equiv", "Float", "Function", "Int", "Integral", "Left", "List", "Long", "Map", "Nil", "None", "Nothing", "Null",
      "Numeric", "Option", "Ordered", "Ordering", "PartialFunction", "Product", "Range", "Right", "Seq", "Serializable",
      "Set", "Short", "Some", "Stream", "String", "StringBuilder", "Symbol", "Throwable", "Unit", "Vector");

  static void namesAreNobodyElses() throws Exception {
    Path classes = Path.of(Handle.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    int seen = 0;
    for (String file : classes.resolve("org/shardrec").toFile().list()) {
      String name = file.replace(".class", "");
      if (name.contains("$") || !Modifier.isPublic(Class.forName("org.shardrec." + name).getModifiers())) continue;
      ++seen;
      check(!SCALA.contains(name), name + " is also Scala's");
      for (String other : new String[] {"java.lang.", "java.util."}) {
        try {
          Class.forName(other + name);
          throw new AssertionError(name + " is also in " + other);
        } catch (ClassNotFoundException expected) {
          // No other class has the name.
        }
      }
    }
    check(seen > 30, "public classes seen: " + seen);
  }

  static void textsCrossWhole() {
    Raw model = new Raw(out -> Capi.model_create(null, out), Capi::model_destroy);
    String[] json = new String[1];
    Capi.model_add_table(model, "usér 😀", 3, 4, null, null);
    Capi.model_to_json(model, json);
    check(json[0].contains("usér 😀"), json[0]);
    refused(() -> Capi.model_add_table(model, "a\0b", 3, 4, null, null));
    refused(() -> Capi.model_add_table(model, "\ud83d", 3, 4, null, null));
    fails(Status.INVALID_ARGUMENT, () -> Capi.model_add_table(model, null, 3, 4, null, null));
    model.close();
    fails(Status.INVALID_HANDLE, () -> Capi.model_to_json(model, json));
    check(json[0] == null, "a failing call left its text");
    check(Capi.status_name(201).equals("SHARDREC_TIMEOUT"), Capi.status_name(201));
    check(Capi.hash64(7, new byte[0]) == Capi.hash64(7, null), "nothing hashes as nothing");
  }

  static void outParametersOfEveryKind() {
    Raw model = new Raw(out -> Capi.model_create(null, out), Capi::model_destroy);
    Raw group = new Raw(out -> Capi.local_create(3, 3, null, out), Capi::local_destroy);
    Raw comm = new Raw(out -> Capi.comm_create_local(group, 2, null, out), Capi::comm_destroy);
    long[] column = new long[1], width = new long[1];
    int[] table = new int[1], size = new int[1], level = new int[1], rank = new int[1];
    double[] seconds = new double[1];
    String[] text = {"before"};
    Capi.model_add_table(model, "a", 3, 4, null, null);
    Capi.model_add_table(model, "b", 3, 8, null, table);
    Capi.model_add_feature(model, 0, "a", Pooling.SUM.value);
    Capi.model_add_feature(model, 1, "b", Pooling.MEAN.value);
    Capi.flat_model_feature(model, 1, null, null, null, column, null, width, text);
    Capi.comm_size(comm, size);
    Capi.comm_set_f64(comm, CommProperty.STEP_SECONDS.value, 12.5);
    Capi.comm_get_f64(comm, CommProperty.STEP_SECONDS.value, seconds);
    check(text[0].equals("b"), "a name: " + text[0]);
    check(table[0] == 1 && column[0] == 4 && width[0] == 12 && size[0] == 3 && seconds[0] == 12.5, "out-parameters");
    Capi.log_next(0, level, rank, text);
    check(text[0] == null, "no message, but " + text[0]);
    comm.close();
    group.close();
    model.close();
  }

  static void tensorsCrossWithShapeAndStride() {
    FloatBuffer gradient = Tensor.floats(4);
    double[] loss = new double[1];
    Tensor labels = Tensor.matrix(floats(1, 0, 0, 1), 4, 1);
    Capi.bce_with_logits(null, Tensor.vector(Tensor.floats(4)), labels, null, Tensor.vector(gradient), loss);
    check(Math.abs(loss[0] - Math.log(2)) < 1e-6 && gradient.get(0) == -0.125f && gradient.get(1) == 0.125f, "loss");

    // Two vectors of two columns; rows of the embeddings are three elements apart, of the output five. The
    // embeddings start behind the buffer's first element.
    Raw interaction = new Raw(out -> Capi.interaction_create(1, 2, null, out), Capi::interaction_destroy);
    FloatBuffer output = Tensor.floats(8);
    Tensor embeddings = Tensor.matrix(floats(-9, 5, 6, -1, 7, 8).position(1), 2, 2, 3);
    Capi.interaction_forward(
        interaction, Tensor.matrix(floats(1, 2, 3, 4), 2, 2), embeddings, Tensor.matrix(output, 2, 3, 5));
    check(output.equals(floats(1, 2, 17, 0, 0, 3, 4, 53)), "interaction");
    interaction.close();
  }

  static void tensorsOfTheLibraryCanBeWritten() {
    Raw mlp = new Raw(out -> Capi.mlp_create(3, null, out), Capi::mlp_destroy);
    Tensor[] weights = new Tensor[1], bias = new Tensor[1];
    Capi.flat_mlp_add(mlp, LayerKind.LINEAR.value, Activation.NONE.value, 2, 0, 0, 0);
    Capi.mlp_parameter(mlp, 0, weights, null);
    Capi.mlp_parameter(mlp, 1, bias, null);
    check(weights[0].data.capacity() == 24 && bias[0].data.capacity() == 8, "sizes of the parameters");
    ((ByteBuffer) weights[0].data).asFloatBuffer().put(new float[] {1, 2, 3, 4, 5, 6});
    ((ByteBuffer) bias[0].data).asFloatBuffer().put(new float[] {10, 20});
    FloatBuffer output = Tensor.floats(2);
    Capi.mlp_forward(mlp, Tensor.matrix(floats(1, 1, 1), 1, 3), Tensor.matrix(output, 1, 2));
    check(output.get(0) == 16 && output.get(1) == 35, "a stack with given parameters");
    mlp.close();
  }

  static void buffersThatWouldBeMisreadAreRefused() {
    refused(() -> Tensor.vector(ByteBuffer.allocateDirect(32).asLongBuffer())); // big-endian
    refused(() -> Tensor.vector(FloatBuffer.allocate(4))); // on the heap
    refused(() -> Tensor.matrix(Tensor.floats(5), 2, 3));
    refused(() -> Tensor.matrix(Tensor.floats(5), 2, 2, 4));
  }
}
