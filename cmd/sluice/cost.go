package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"

	"sluice/internal/core/sheet"
	"sluice/internal/cost"
)

func billOf(r *sheet.Run) *cost.Bill {
	b := cost.Of(cost.Used(r))
	b.Note = cost.LaptopNote
	return &b
}

// writeBill prints the bill of an entry for people.
func writeBill(w io.Writer, e entry) error {
	b := e.Bill
	fmt.Fprintf(w, "run %s (%s): %s, %s\n", e.ID, clean(e.Name), e.status(), plural(b.Rows, "row", "rows"))
	if b.Note != "" {
		fmt.Fprintln(w, b.Note)
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%s\tused\t\tdollars\tper million rows\t\n", nameCell(""))
	for _, l := range b.Lines {
		fmt.Fprintf(t, "%s\t%s\t%s\t%.6f\t%.4f\t\n", nameCell(l.Name), amount(l.Quantity), l.Unit, l.Dollars, b.Scaled(l.Dollars))
	}
	fmt.Fprintf(t, "%s\t\t\t%.6f\t%.4f\t\n", nameCell("total"), b.Total, b.PerMillion)
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s. Prices change: see docs/cost.md.\n", b.Prices)
	return err
}

// nameCell fills a name up, so that it stands left among figures that stand right.
func nameCell(name string) string { return fmt.Sprintf("%-24s", name) }

// amount writes whole numbers in groups, others with three decimals.
func amount(q float64) string {
	if q == math.Trunc(q) {
		return number(int64(q))
	}
	return strconv.FormatFloat(q, 'f', 3, 64)
}
