// Philox4x32-10 (philox.h). Text of formulas: included by scalar.h and compute/cpu/kernels/simd_math-inl.h.

// Makes the words of a counter its random words.
SHARDREC_MATH void philox_rounds(Word& word0, Word& word1, Word& word2, Word& word3,
                                 PhiloxKey key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    Word upper0, lower0, upper1, lower1;
    op::mul_wide(word0, op::word(kPhiloxMultiplier0), upper0, lower0);
    op::mul_wide(word2, op::word(kPhiloxMultiplier1), upper1, lower1);
    word0 = op::bit_xor(op::bit_xor(upper1, word1), op::word(key[0]));
    word1 = lower1;
    word2 = op::bit_xor(op::bit_xor(upper0, word3), op::word(key[1]));
    word3 = lower0;
    key = math::next_philox_key(key);
  }
}
