package org.shardrec;

import java.lang.ref.Reference;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import org.jspecify.annotations.Nullable;

/** A view of a direct buffer in native byte order, from its position to its limit at the time the view is
 * made: no copy. Make it once and use it in every step; {@link #resize} fits it to batches of other lengths. */
public final class Tensor {
  private static final int MAX_DIMENSIONS = 8;

  /** Starts at the first element. Read by the native wrapper. */
  final @Nullable Buffer data;

  /** dtype, ndim, shape[8], stride[8]. Read by the native wrapper. */
  final long[] layout;

  /** Whose memory it is; null: a buffer's. */
  private @Nullable Handle owner;
  private int version;

  /** A view of the library's own memory, made by the native wrapper; data null: none. */
  Tensor(@Nullable ByteBuffer data, long[] layout) {
    this.data = data == null ? null : data.order(ByteOrder.nativeOrder());
    this.layout = layout;
  }

  /** Says whose memory it is. */
  Tensor of(Handle owner) {
    this.owner = owner;
    version = owner.viewVersion();
    return this;
  }

  /** For the native wrappers: refuses a view of what is gone. */
  static @Nullable Tensor live(@Nullable Tensor tensor) {
    if (tensor == null || tensor.owner == null) return tensor;
    Handle.ticketOf(tensor.owner);
    if (tensor.version != tensor.owner.viewVersion()) {
      throw ShardRecException.of(Status.INVALID_STATE, "this view is of a stack that has got another layer since");
    }
    return tensor;
  }

  /** For what the library keeps: only memory that the host has. */
  static @Nullable Tensor own(@Nullable Tensor tensor) {
    if (tensor != null && tensor.owner != null) {
      throw new IllegalArgumentException("a view of the library's own memory, which may end before what keeps it; pass a buffer");
    }
    return tensor;
  }

  /**
   * The elements of a compact FLOAT32 tensor, copied.
   *
   * @return row after row
   */
  public float[] toFloats() {
    FloatBuffer from = floatsOf();
    float[] copy = new float[from.remaining()];
    from.get(copy);
    Reference.reachabilityFence(owner);
    return copy;
  }

  /**
   * Writes all elements of a compact FLOAT32 tensor.
   *
   * @param values row after row
   */
  public void setFloats(float[] values) {
    FloatBuffer to = floatsOf();
    if (values.length != to.remaining()) {
      throw new IllegalArgumentException(values.length + " values for " + to.remaining() + " elements");
    }
    to.put(values);
    Reference.reachabilityFence(owner);
  }

  private FloatBuffer floatsOf() {
    live(this);
    if (layout[0] != Dtype.FLOAT32.value) throw new IllegalArgumentException("not a tensor of FLOAT32");
    if (data instanceof FloatBuffer floats) return floats.duplicate();
    return ((ByteBuffer) data).duplicate().order(ByteOrder.nativeOrder()).asFloatBuffer();
  }

  private Tensor(Buffer data, Dtype dtype, long[] shape, long[] stride) {
    if (!data.isDirect()) {
      throw new IllegalArgumentException("a tensor needs a direct buffer, such as Tensor.floats(n)");
    }
    layout = new long[2 + 2 * MAX_DIMENSIONS];
    layout[0] = dtype.value;
    layout[1] = shape.length;
    for (int i = 0; i < shape.length; ++i) {
      if (shape[i] < 0 || stride[i] < 0) {
        throw new IllegalArgumentException("sizes and strides of a tensor are not negative");
      }
      layout[2 + i] = shape[i];
      layout[2 + MAX_DIMENSIONS + i] = stride[i];
    }
    this.data = data;
    checkLast();
  }

  private void checkLast() {
    double last = 0; // exact as far as a buffer goes
    for (int i = 0; i < layout[1]; ++i) {
      long size = layout[2 + i];
      if (size == 0) return;
      last += (double) (size - 1) * layout[2 + MAX_DIMENSIONS + i];
    }
    if (last >= data.capacity()) {
      throw new IllegalArgumentException(
          "the tensor's last element is " + (long) last + ", the buffer holds " + data.capacity());
    }
  }

  /**
   * Changes how many elements a vector, or rows a matrix, has, within the buffer that the view was made of. Makes
   * nothing new; not for a thread while another one passes the view.
   *
   * @param rows 0 or more
   * @return this
   */
  public Tensor resize(long rows) {
    if (rows < 0) throw new IllegalArgumentException("sizes and strides of a tensor are not negative");
    long before = layout[2];
    layout[2] = rows;
    try {
      checkLast();
    } catch (IllegalArgumentException tooLong) {
      layout[2] = before;
      throw tooLong;
    }
    return this;
  }

  /** For what the library writes. */
  static @Nullable Tensor writable(@Nullable Tensor tensor) {
    if (tensor != null && tensor.data.isReadOnly()) {
      throw new IllegalArgumentException("the library would write into a read-only buffer");
    }
    return tensor;
  }

  /**
   * A vector of INT64.
   *
   * @param values a direct buffer, from its position to its limit
   * @return a view
   */
  public static Tensor vector(LongBuffer values) {
    checkOrder(values.order());
    return vector(values.slice(), Dtype.INT64);
  }

  /**
   * A vector of INT32.
   *
   * @param values a direct buffer, from its position to its limit
   * @return a view
   */
  public static Tensor vector(IntBuffer values) {
    checkOrder(values.order());
    return vector(values.slice(), Dtype.INT32);
  }

  /**
   * A vector of FLOAT32.
   *
   * @param values a direct buffer, from its position to its limit
   * @return a view
   */
  public static Tensor vector(FloatBuffer values) {
    checkOrder(values.order());
    return vector(values.slice(), Dtype.FLOAT32);
  }

  /**
   * A matrix of FLOAT32 with compact rows.
   *
   * @param values a direct buffer, from its position on
   * @param rows how many
   * @param columns elements of a row
   * @return a view
   */
  public static Tensor matrix(FloatBuffer values, long rows, long columns) {
    return matrix(values, rows, columns, columns);
  }

  /**
   * A matrix of FLOAT32 whose rows start rowStride elements apart.
   *
   * @param values a direct buffer, from its position on
   * @param rows how many
   * @param columns elements of a row
   * @param rowStride elements
   * @return a view
   */
  public static Tensor matrix(FloatBuffer values, long rows, long columns, long rowStride) {
    checkOrder(values.order());
    return new Tensor(
        values.slice(), Dtype.FLOAT32, new long[] {rows, columns}, new long[] {rowStride, 1});
  }

  /**
   * A direct buffer of floats in native order.
   *
   * @param length of the buffer
   * @return zeros
   */
  public static FloatBuffer floats(int length) {
    return bytes(length, Float.BYTES).asFloatBuffer();
  }

  /**
   * A direct buffer of the values in native order.
   *
   * @param values to be copied
   * @return the buffer, at its first element
   */
  public static LongBuffer longs(long... values) {
    return bytes(values.length, Long.BYTES).asLongBuffer().put(values).rewind();
  }

  /**
   * A direct buffer of the values in native order.
   *
   * @param values to be copied
   * @return the buffer, at its first element
   */
  public static IntBuffer ints(int... values) {
    return bytes(values.length, Integer.BYTES).asIntBuffer().put(values).rewind();
  }

  private static ByteBuffer bytes(int length, int size) {
    return ByteBuffer.allocateDirect(Math.multiplyExact(length, size)).order(ByteOrder.nativeOrder());
  }

  private static Tensor vector(Buffer slice, Dtype dtype) {
    return new Tensor(slice, dtype, new long[] {slice.capacity()}, new long[] {1});
  }

  private static void checkOrder(ByteOrder order) {
    if (order != ByteOrder.nativeOrder()) {
      throw new IllegalArgumentException("the buffer is in " + order + " order; a tensor needs the native one,"
          + " set on the ByteBuffer before asLongBuffer() and the like");
    }
  }
}
