/* The steps of steps.c as native methods of Overhead.java. */
#include <jni.h>

#include "steps.h"

JNIEXPORT jlong JNICALL Java_Overhead_open(JNIEnv *env, jclass of, jint kind, jint tables,
                                           jlong batch) {
  (void)env, (void)of;
  return (jlong)(intptr_t)overhead_open(kind, tables, batch);
}

JNIEXPORT jint JNICALL Java_Overhead_steps(JNIEnv *env, jclass of, jlong training, jlong count) {
  (void)env, (void)of;
  return overhead_steps((overhead_training *)(intptr_t)training, count);
}

JNIEXPORT void JNICALL Java_Overhead_close(JNIEnv *env, jclass of, jlong training) {
  (void)env, (void)of;
  overhead_close((overhead_training *)(intptr_t)training);
}
