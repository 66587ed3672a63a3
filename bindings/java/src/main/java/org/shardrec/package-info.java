/** The library: {@link org.shardrec.ShardRec#run} and {@link org.shardrec.Comm} are where programs begin. */
@NullMarked
package org.shardrec;

import org.jspecify.annotations.NullMarked;
