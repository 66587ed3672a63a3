package org.shardrec;

import java.lang.ref.Reference;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** A view of a direct buffer in native byte order, from its position to its limit at the time the view is
 * made: no copy. Make it once and use it in every step; {@link #resize} fits it to batches of other lengths.
 * Tensors on devices are views of a {@link Memory}. */
public final class Tensor {
  private static final int MAX_DIMENSIONS = 8;
  private static final int DEVICE = 2 + 2 * MAX_DIMENSIONS;

  /** Starts at the first element; null: no buffer holds it, or the library says what a tensor is, not what it holds. Read
   * by the native wrapper. */
  final @Nullable Buffer data;

  /** dtype, ndim, shape[8], stride[8], the device's type and number, the address where there is no buffer. Read by the
   * native wrapper. */
  final long[] layout;

  /** Of memory without a buffer. */
  private final long elements;

  /** Whose memory it is; null: a buffer's. */
  private @Nullable Handle owner;
  private int version;

  /** A view of the library's own memory, made by the native wrapper; data null: none. */
  Tensor(@Nullable ByteBuffer data, long[] layout) {
    this.data = data == null ? null : data.order(ByteOrder.nativeOrder());
    this.layout = layout;
    long count = 1;
    for (int i = 0; i < layout[1]; ++i) count *= layout[2 + i];
    elements = count;
  }

  private Tensor(Buffer buffer, Dtype dtype, long[] shape, long @Nullable [] stride) {
    data = Buffers.checked(buffer, dtype);
    if (shape.length > MAX_DIMENSIONS || stride != null && stride.length != shape.length) {
      throw new IllegalArgumentException("a tensor has up to " + MAX_DIMENSIONS + " dimensions, and as many strides; given are "
          + shape.length + (stride == null ? "" : " and " + stride.length));
    }
    elements = 0;
    layout = new long[DEVICE + 3];
    layout[DEVICE] = DeviceType.CPU.value;
    layout[0] = dtype.value;
    layout[1] = shape.length;
    long compact = 1;
    for (int i = shape.length - 1; i >= 0; --i) {
      layout[2 + i] = shape[i];
      layout[2 + MAX_DIMENSIONS + i] = stride == null ? compact : stride[i];
      if (shape[i] < 0 || layout[2 + MAX_DIMENSIONS + i] < 0) {
        throw new IllegalArgumentException("sizes and strides of a tensor are not negative");
      }
      if (shape[i] > 1) compact = Math.multiplyExact(compact, shape[i]);
    }
    checkLast();
  }

  private void checkLast() {
    double last = 0; // exact as far as a buffer goes
    for (int i = 0; i < layout[1]; ++i) {
      long size = layout[2 + i];
      if (size == 0) return;
      last += (double) (size - 1) * layout[2 + MAX_DIMENSIONS + i];
    }
    long holds = data == null ? elements
        : data instanceof ByteBuffer ? data.capacity() / Buffers.sizeOf(dtype()) : data.capacity();
    if (last >= holds) {
      throw new IllegalArgumentException("the tensor's last element is " + (long) last + ", its memory holds " + holds);
    }
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

  /** For what the library writes. */
  static @Nullable Tensor writable(@Nullable Tensor tensor) {
    if (tensor != null && tensor.data != null && tensor.data.isReadOnly()) {
      throw new IllegalArgumentException("the library would write into a read-only buffer");
    }
    return tensor;
  }

  /**
   * What the elements are.
   *
   * @return their dtype
   */
  public Dtype dtype() {
    return Dtype.of((int) layout[0]);
  }

  /**
   * Where the elements are.
   *
   * @return the CPU, or a kind of devices
   */
  public @Nullable DeviceType deviceType() {
    return DeviceType.of((int) layout[DEVICE]);
  }

  /**
   * On which device of its kind the elements are.
   *
   * @return its number; 0 on the CPU
   */
  public int deviceId() {
    return (int) layout[DEVICE + 1];
  }

  /**
   * How many dimensions there are.
   *
   * @return 0 to 8
   */
  public int dimensions() {
    return (int) layout[1];
  }

  /**
   * The size of a dimension.
   *
   * @param dimension counts from 0
   * @return 0 or more
   */
  public long size(int dimension) {
    return layout[2 + Objects.checkIndex(dimension, dimensions())];
  }

  /**
   * How far elements that follow each other in a dimension are apart.
   *
   * @param dimension counts from 0
   * @return elements
   */
  public long stride(int dimension) {
    return layout[2 + MAX_DIMENSIONS + Objects.checkIndex(dimension, dimensions())];
  }

  /**
   * Changes the size of the first dimension, such as how many elements a vector or rows a matrix has, within the buffer
   * or memory that the view was made of. Makes nothing new; not for a thread while another one passes the view.
   *
   * @param size 0 or more
   * @return this
   */
  public Tensor resize(long size) {
    if (size < 0) throw new IllegalArgumentException("sizes and strides of a tensor are not negative");
    long before = layout[2 + Objects.checkIndex(0, dimensions())];
    layout[2] = size;
    try {
      checkLast();
    } catch (IllegalArgumentException tooLong) {
      layout[2] = before;
      throw tooLong;
    }
    return this;
  }

  /**
   * The elements of a tensor of a floating dtype, copied, in row-major order; FLOAT64 is rounded.
   *
   * @return row after row
   */
  public float[] toFloats() {
    float[] copy = new float[floats()];
    for (int i = 0; i < copy.length; ++i) copy[i] = Buffers.get(data, dtype(), index(i));
    Reference.reachabilityFence(owner);
    return copy;
  }

  /**
   * Writes all elements of a tensor of a floating dtype; numbers of 16 bits are rounded to the nearest, ties to even.
   *
   * @param values row after row
   */
  public void setFloats(float[] values) {
    if (values.length != floats()) {
      throw new IllegalArgumentException(values.length + " values for " + floats() + " elements");
    }
    writable(this);
    for (int i = 0; i < values.length; ++i) Buffers.put(data, dtype(), index(i), values[i]);
    Reference.reachabilityFence(owner);
  }

  /** How many floats there are. */
  private int floats() {
    live(this);
    if (data == null) {
      throw new IllegalArgumentException("no buffer holds this tensor's elements; ShardRec.copy copies them to one that does");
    }
    switch (dtype()) {
      case FLOAT16, BFLOAT16, FLOAT32, FLOAT64 -> {}
      default -> throw new IllegalArgumentException("a tensor of " + dtype() + ", not of a floating dtype");
    }
    long count = 1;
    for (int i = 0; i < dimensions(); ++i) count = Math.multiplyExact(count, size(i));
    return Math.toIntExact(count);
  }

  /** Where the element is that is the number-th in row-major order. */
  private int index(int number) {
    long rest = number, index = 0;
    for (int i = dimensions() - 1; i >= 0; --i) {
      index += rest % size(i) * stride(i);
      rest /= size(i);
    }
    return (int) index;
  }

  /**
   * A compact tensor, row-major.
   *
   * @param values a direct buffer, from its position on: of the dtype, a ShortBuffer for those of 16 bits, or a ByteBuffer
   *     for any
   * @param dtype of the elements
   * @param shape up to 8 sizes; none for one element
   * @return a view
   */
  public static Tensor of(Buffer values, Dtype dtype, long... shape) {
    return new Tensor(values, dtype, shape, null);
  }

  /**
   * A tensor with strides.
   *
   * @param values as above
   * @param dtype of the elements
   * @param shape up to 8 sizes
   * @param stride as many, in elements; 0 or more
   * @return a view
   */
  public static Tensor strided(Buffer values, Dtype dtype, long[] shape, long[] stride) {
    return new Tensor(values, dtype, shape, stride);
  }

  /**
   * A vector of INT64.
   *
   * @param values a direct buffer, from its position to its limit
   * @return a view
   */
  public static Tensor vector(LongBuffer values) {
    return of(values, Dtype.INT64, values.remaining());
  }

  /**
   * A vector of INT32.
   *
   * @param values a direct buffer, from its position to its limit
   * @return a view
   */
  public static Tensor vector(IntBuffer values) {
    return of(values, Dtype.INT32, values.remaining());
  }

  /**
   * A vector of FLOAT32.
   *
   * @param values a direct buffer, from its position to its limit
   * @return a view
   */
  public static Tensor vector(FloatBuffer values) {
    return of(values, Dtype.FLOAT32, values.remaining());
  }

  /**
   * A vector of FLOAT64.
   *
   * @param values a direct buffer, from its position to its limit
   * @return a view
   */
  public static Tensor vector(DoubleBuffer values) {
    return of(values, Dtype.FLOAT64, values.remaining());
  }

  /**
   * A vector of UINT8.
   *
   * @param values a direct buffer, from its position to its limit
   * @return a view
   */
  public static Tensor vector(ByteBuffer values) {
    return of(values, Dtype.UINT8, values.remaining());
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
    return of(values, Dtype.FLOAT32, rows, columns);
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
    return strided(values, Dtype.FLOAT32, new long[] {rows, columns}, new long[] {rowStride, 1});
  }

  /**
   * A direct buffer of elements of any dtype, in native order, that begins at a multiple of 64 bytes.
   *
   * @param dtype of the elements
   * @param length how many; of at most 2 GiB
   * @return zeros
   */
  public static ByteBuffer allocate(Dtype dtype, long length) {
    return Buffers.allocate(length, Buffers.sizeOf(dtype));
  }

  /**
   * A direct buffer of floats in native order, that begins at a multiple of 64 bytes.
   *
   * @param length of the buffer
   * @return zeros
   */
  public static FloatBuffer floats(int length) {
    return Buffers.allocate(length, Float.BYTES).asFloatBuffer();
  }

  /**
   * A direct buffer of the values in native order, that begins at a multiple of 64 bytes.
   *
   * @param values to be copied
   * @return the buffer, at its first element
   */
  public static LongBuffer longs(long... values) {
    return Buffers.allocate(values.length, Long.BYTES).asLongBuffer().put(values).rewind();
  }

  /**
   * A direct buffer of the values in native order, that begins at a multiple of 64 bytes.
   *
   * @param values to be copied
   * @return the buffer, at its first element
   */
  public static IntBuffer ints(int... values) {
    return Buffers.allocate(values.length, Integer.BYTES).asIntBuffer().put(values).rewind();
  }
}
