#include <gtest/gtest.h>

#include "namespaces.h"

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  shardrec::hosts::take_own_network();
  return RUN_ALL_TESTS();
}
