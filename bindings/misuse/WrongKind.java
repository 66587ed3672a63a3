// Must not compile: options of a plan are none of a table, and a key takes its own enumerators.
package org.shardrec;

final class WrongKind {
  static void table(Model model) {
    model.addTable("a", 3, 4, new PlanOptions());
  }

  static TableOptions value() {
    return new TableOptions().init(Sharding.GRID);
  }
}
