// Must not compile: options of a plan are none of a table, a key takes its own enumerators, and no tensor has elements of
// 16-bit integers.
package shardrec

func wrongKind(model *Model) (*TableOptions, error) {
	_, err := model.AddTable("a", 3, 4, new(PlanOptions))
	return new(TableOptions).Init(ShardingGrid), err
}

func wrongElements() Tensor { return Vector([]int16{1}) }
