package shardrec_test

import (
	"fmt"
	"testing"

	. "shardrec.org/shardrec"
)

// What enumerators print is what options take.
func TestEnumeratorsPrintTheirNames(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{
		"timeout": StatusTimeout, "row_wise": ShardingRowWise, "Status(77)": Status(77), "sum": PoolingSum,
	} {
		if got.String() != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	if text := must(new(PlanOptions).Sharding(ShardingTableRowWise).Text(OptionSharding)); text != ShardingTableRowWise.String() {
		t.Error(text)
	}
}
