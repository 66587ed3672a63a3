package org.shardrec;

/** Numbers of 16 bits, which Java 17 has no type for: IEEE binary16 and bfloat16. Rounding is to the nearest, ties to
 * even, as in the library. */
final class Halves {
  private Halves() {}

  static float fromFloat16(short half) {
    int sign = (half & 0x8000) << 16, exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
    if (exponent == 0x1f) return Float.intBitsToFloat(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0) { // subnormal: fraction * 2^-24
      float value = fraction * 0x1p-24f;
      return sign == 0 ? value : -value;
    }
    return Float.intBitsToFloat(sign | exponent + 112 << 23 | fraction << 13);
  }

  static short toFloat16(float value) {
    int bits = Float.floatToRawIntBits(value), sign = bits >>> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000) return (short) (sign | 0x7e00 | size >> 13 & 0x3ff);
    if (size >= 0x477ff000) return (short) (sign | 0x7c00); // would round to 65536 or more
    if (size < 0x38800000) { // subnormal: the unit is 2^-24
      return (short) (sign | (int) Math.rint(Math.abs(value) * 0x1p24));
    }
    int rounded = size + 0xfff + (size >> 13 & 1);
    return (short) (sign | (rounded >> 13) - (112 << 10));
  }

  static float fromBfloat16(short half) {
    return Float.intBitsToFloat(half << 16);
  }

  static short toBfloat16(float value) {
    int bits = Float.floatToRawIntBits(value);
    if (Float.isNaN(value)) return (short) (bits >>> 16 | 0x40);
    return (short) (bits + 0x7fff + (bits >>> 16 & 1) >>> 16);
  }
}
