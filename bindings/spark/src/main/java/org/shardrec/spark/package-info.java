/** Training of recommendation models on the rows of Spark's data frames: {@link org.shardrec.spark.DlrmTrainer}. */
@NullMarked
package org.shardrec.spark;

import org.jspecify.annotations.NullMarked;
