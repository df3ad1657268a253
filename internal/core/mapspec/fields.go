package mapspec

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// mapping reports whether n is a mapping, and reports keys that are not known.
func (c *compiler) mapping(n *node, what string, known []string) bool {
	if n.kind != kindMap {
		c.add(n.at, "its keys: "+strings.Join(known, ", "), "%s must be a mapping, not %s", what, describe(n))
		return false
	}
	for _, f := range n.fields {
		if !slices.Contains(known, f.name) {
			c.add(f.at, suggest(f.name, known, "keys"), "%s has no key `%s`", what, f.name)
		}
	}
	return true
}

// plain reads text without expressions.
func (c *compiler) plain(n *node, what, remedy string) (string, bool) {
	if n.kind != kindString || strings.TrimSpace(n.scalar.(string)) == "" {
		c.add(n.at, remedy, "%s must be text, not %s", what, describeText(n))
		return "", false
	}
	s := n.scalar.(string)
	if strings.Contains(s, "${") {
		c.add(n.at, remedy, "%s cannot hold expressions", what)
		return "", false
	}
	return s, true
}

func describeText(n *node) string {
	if n.kind == kindString {
		return "empty"
	}
	return describe(n)
}

// oneOf reads one of a few words.
func (c *compiler) oneOf(n *node, what string, words ...string) string {
	if s, ok := n.scalar.(string); ok {
		if slices.Contains(words, s) {
			return s
		}
		c.add(n.at, suggest(s, words, "it can be"), "%s cannot be `%s`", what, s)
		return ""
	}
	c.add(n.at, "it can be: "+strings.Join(words, ", "), "%s cannot be %s", what, describe(n))
	return ""
}

// whole reads a whole number within bounds; a mistake gives low.
func (c *compiler) whole(n *node, what string, low, high int64) int64 {
	i, ok := n.scalar.(int64)
	if !ok || n.kind != kindInt || i < low || i > high {
		c.add(n.at, "", "%s must be a whole number from %d to %d, not %s", what, low, high, describe(n))
		return low
	}
	return i
}

func (c *compiler) boolean(n *node, what string) bool {
	b, ok := n.scalar.(bool)
	if !ok {
		c.add(n.at, "", "%s must be true or false, not %s", what, describe(n))
	}
	return b
}

// duration reads a duration greater than zero and at most high; a mistake gives high.
func (c *compiler) duration(n *node, what string, high time.Duration) time.Duration {
	s, ok := n.scalar.(string)
	if !ok {
		c.add(n.at, errDuration.Error(), "%s must be a duration, not %s", what, describe(n))
		return high
	}
	d, err := parseDuration(s)
	switch {
	case err != nil:
		c.add(n.at, err.Error(), "%s is not a duration: `%s`", what, s)
	case d <= 0:
		c.add(n.at, "", "%s must be longer than zero", what)
	case d > high:
		c.add(n.at, "", "%s is too long: at most %s", what, DurationText(high))
	default:
		return d
	}
	return high
}

// DurationText is a duration as a user would write it: 2d, 30m, 1m30s.
func DurationText(d time.Duration) string {
	if d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// texts reads a list of texts.
func (c *compiler) texts(n *node, what string) []string {
	if n.kind != kindList {
		c.add(n.at, "write [a, b]", "%s must be a list of texts, not %s", what, describe(n))
		return nil
	}
	var out []string
	for _, item := range n.items {
		if s, ok := c.plain(item, "an entry of "+what, ""); ok {
			if slices.Contains(out, s) {
				c.add(item.at, "keep one of them", "`%s` is listed twice in %s", s, what)
			}
			out = append(out, s)
		}
	}
	return out
}

// version requires `version: 1`, so that later versions of the language can mean something else.
func (c *compiler) version(root *node) {
	v := root.get("version")
	switch {
	case v == nil:
		c.add(root.at, "begin with `version: 1`", "the version is missing")
	case v.scalar != int64(1):
		c.add(v.at, "write `version: 1`", "version %s is not known to this version of Sluice", strings.TrimPrefix(describe(v), "the number "))
	}
}
