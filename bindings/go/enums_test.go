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
	options := must(NewOptions(OptionsKindPlan))
	defer options.Close()
	if err := options.SetText(OptionSharding, ShardingTableRowWise.String()); err != nil {
		t.Error(err)
	}
	if text := must(options.Text(OptionSharding)); text != ShardingTableRowWise.String() {
		t.Error(text)
	}
}
