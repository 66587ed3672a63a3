package org.shardrec;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/** Text at the native border: UTF-8 bytes, because JNI's own strings are modified UTF-8. */
final class Text {
  private Text() {}

  static byte @Nullable [] encode(@Nullable String text) {
    if (text == null) return null;
    if (text.indexOf('\0') >= 0) {
      throw new IllegalArgumentException("text holds U+0000, which no name or path may hold");
    }
    try {
      ByteBuffer bytes = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
      byte[] copy = new byte[bytes.remaining()];
      bytes.get(copy);
      return copy;
    } catch (CharacterCodingException e) {
      throw new IllegalArgumentException("text is not valid Unicode: it holds half of a surrogate pair", e);
    }
  }

  static @Nullable String decode(byte @Nullable [] bytes) {
    return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
  }
}
