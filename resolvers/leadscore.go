package resolvers

import (
	"errors"
	"time"

	"sluice/internal/core/resolver"
)

// leadScore scores a lead from 0 to 100: by its company, and by whether it can be reached. A person decides about large
// companies; where nobody does within three days, the score stands as it is.
func leadScore(c resolver.Cell, with map[string]any) (any, error) {
	found, err := c.Call("acme.company", map[string]any{"domain": with["domain"]})
	if err != nil {
		return nil, err
	}
	if found == nil { // there is no such company
		return 0, nil
	}
	var company struct {
		Name      string
		Employees int
	}
	if err := resolver.Into(found, &company); err != nil {
		return nil, err
	}

	var phone, deliverable any
	err = c.Parallel(
		func(c resolver.Cell) (err error) {
			phone, err = c.Call("alpha.phone", map[string]any{"domain": with["domain"]})
			return err
		},
		func(c resolver.Cell) (err error) {
			deliverable, err = c.Call("mail.verify", map[string]any{"email": with["email"]})
			return err
		},
	)
	if err != nil {
		return nil, err
	}

	score := min(company.Employees/10, 50)
	if phone != nil {
		score += 20
	}
	if deliverable == true {
		score += 30
	}
	if company.Employees < 1000 {
		return score, nil
	}
	return reviewed(c, company.Name, score)
}

// reviewed asks a person for the score of a company.
func reviewed(c resolver.Cell, name string, score int) (any, error) {
	answer, err := c.Event(resolver.Event{Key: "score " + name, Expires: 72 * time.Hour})
	var e *resolver.Error
	switch {
	case errors.As(err, &e) && e.Code == resolver.CodeExpired:
		return score, nil
	case err != nil:
		return nil, err
	}
	return answer, nil
}
