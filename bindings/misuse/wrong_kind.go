// Must not compile: options of a plan are none of a table, and a key takes its own enumerators.
package shardrec

func wrongKind(model *Model) (*TableOptions, error) {
	_, err := model.AddTable("a", 3, 4, new(PlanOptions))
	return new(TableOptions).Init(ShardingGrid), err
}
