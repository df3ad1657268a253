package page

import (
	"testing"
)

// A server that goes away is told, what was known stays, and all is well by itself once it is back.
func TestAServerThatGoesAwayAndComesBack(t *testing.T) {
	w := newWorld(t)
	w.gate.keep()
	w.drive(w.started("monday", mapText, "x", "ok1", "wait2"))
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.runPage("monday"))
	b.sees(".figures", "1 of 2 rows (50%)")
	s.down()
	b.sees("#trouble", "The server cannot be reached.")
	b.sees("#trouble", "Trying again")
	b.sees("#trouble", "as of")
	b.sees(".figures", "1 of 2 rows (50%)")
	b.picture("away")
	w.gate.open()
	s.up()
	b.sees(".figures", "2 of 2 rows (100%)")
	b.gone("#trouble")
	b.quiet(s.URL)
}

// Opened while there is no server behind the files, the page says so and fills itself later.
func TestAPageThatWasLoadedBeforeTheServerWasThere(t *testing.T) {
	w := newWorld(t)
	w.completed("monday", 1)
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.URL)
	b.sees("table.runs", "monday")
	s.down()
	b.click(`a[href="#/runs/monday"]`)
	b.sees("#trouble", "The server cannot be reached.")
	b.sees("h1", "monday")
	s.up()
	b.click("#trouble button")
	b.sees(".figures", "1 of 1 row (100%)")
	b.gone("#trouble")
	b.quiet(s.URL)
}
