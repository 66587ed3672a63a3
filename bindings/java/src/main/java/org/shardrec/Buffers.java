package org.shardrec;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;

/** The memory of tensors: direct buffers in native byte order, that begin at a cache line. */
final class Buffers {
  static final int ALIGNMENT = 64;

  private Buffers() {}

  /** Zeros. */
  static ByteBuffer allocate(long length, int size) {
    int bytes = Math.toIntExact(Math.multiplyExact(length, (long) size));
    ByteBuffer whole = ByteBuffer.allocateDirect(Math.addExact(bytes, ALIGNMENT - 1));
    int begin = -whole.alignmentOffset(0, ALIGNMENT) & ALIGNMENT - 1;
    return whole.slice(begin, bytes).order(ByteOrder.nativeOrder());
  }

  /** From its position to its limit; refuses a buffer that the library would misread. */
  static Buffer checked(Buffer buffer, Dtype dtype) {
    if (!buffer.isDirect()) {
      throw new IllegalArgumentException("a tensor needs a direct buffer, such as Tensor.floats(n)");
    }
    boolean holds = buffer instanceof ByteBuffer || switch (dtype) {
      case UINT8 -> false;
      case INT32 -> buffer instanceof IntBuffer;
      case INT64 -> buffer instanceof LongBuffer;
      case FLOAT16, BFLOAT16 -> buffer instanceof ShortBuffer;
      case FLOAT32 -> buffer instanceof FloatBuffer;
      case FLOAT64 -> buffer instanceof DoubleBuffer;
    };
    if (!holds) throw new IllegalArgumentException("a buffer of another type than " + dtype + "; a ByteBuffer may hold any");
    ByteOrder order = orderOf(buffer);
    if (dtype != Dtype.UINT8 && order != ByteOrder.nativeOrder()) {
      throw new IllegalArgumentException("the buffer is in " + order + " order; a tensor needs the native one,"
          + " set on the ByteBuffer before asLongBuffer() and the like");
    }
    return buffer instanceof ByteBuffer bytes ? bytes.slice().order(ByteOrder.nativeOrder()) : buffer.slice();
  }

  private static ByteOrder orderOf(Buffer buffer) {
    if (buffer instanceof ByteBuffer bytes) return bytes.order();
    if (buffer instanceof LongBuffer longs) return longs.order();
    if (buffer instanceof IntBuffer ints) return ints.order();
    if (buffer instanceof ShortBuffer shorts) return shorts.order();
    if (buffer instanceof DoubleBuffer doubles) return doubles.order();
    return ((FloatBuffer) buffer).order();
  }

  /** Bytes of an element; DLPack's number holds its bits. */
  static int sizeOf(Dtype dtype) {
    return (dtype.value >> 8 & 0xff) / Byte.SIZE;
  }

  /** An element of a floating dtype. */
  static float get(Buffer buffer, Dtype dtype, int index) {
    if (buffer instanceof FloatBuffer floats) return floats.get(index);
    if (buffer instanceof DoubleBuffer doubles) return (float) doubles.get(index);
    if (buffer instanceof ShortBuffer shorts) return half(shorts.get(index), dtype);
    ByteBuffer bytes = (ByteBuffer) buffer;
    return switch (dtype) {
      case FLOAT32 -> bytes.getFloat(index * Float.BYTES);
      case FLOAT64 -> (float) bytes.getDouble(index * Double.BYTES);
      default -> half(bytes.getShort(index * Short.BYTES), dtype);
    };
  }

  static void put(Buffer buffer, Dtype dtype, int index, float value) {
    if (buffer instanceof FloatBuffer floats) {
      floats.put(index, value);
    } else if (buffer instanceof DoubleBuffer doubles) {
      doubles.put(index, value);
    } else if (buffer instanceof ShortBuffer shorts) {
      shorts.put(index, half(value, dtype));
    } else {
      ByteBuffer bytes = (ByteBuffer) buffer;
      switch (dtype) {
        case FLOAT32 -> bytes.putFloat(index * Float.BYTES, value);
        case FLOAT64 -> bytes.putDouble(index * Double.BYTES, value);
        default -> bytes.putShort(index * Short.BYTES, half(value, dtype));
      }
    }
  }

  private static float half(short bits, Dtype dtype) {
    return dtype == Dtype.FLOAT16 ? Halves.fromFloat16(bits) : Halves.fromBfloat16(bits);
  }

  private static short half(float value, Dtype dtype) {
    return dtype == Dtype.FLOAT16 ? Halves.toFloat16(value) : Halves.toBfloat16(value);
  }
}
